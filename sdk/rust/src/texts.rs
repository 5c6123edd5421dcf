/// The table that columns of texts refer to.
#[derive(Clone, Copy, Default)]
pub struct Texts<'a> {
    pub(crate) end: &'a [i32],
    pub(crate) bytes: &'a [u8],
}

impl<'a> Texts<'a> {
    /// The text with a number, or an empty one if it is not in the table.
    #[inline(never)]
    pub fn get(&self, id: i32) -> &'a str {
        let id = id as usize;
        let from = if id == 0 { Some(&0) } else { self.end.get(id.wrapping_sub(1)) };
        let text = match (from, self.end.get(id)) {
            (Some(from), Some(end)) => self.bytes.get(*from as usize..*end as usize),
            _ => None,
        };
        core::str::from_utf8(text.unwrap_or_default()).unwrap_or_default()
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// Reports whether there are none.
    pub fn is_empty(&self) -> bool {
        self.end.is_empty()
    }
}
