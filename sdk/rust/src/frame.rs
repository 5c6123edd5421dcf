//! The frame: header, entries, columns and answers by id. ../../ABI.md is its
//! specification.

use crate::memory::is_room;
use core::slice::{from_raw_parts, from_raw_parts_mut};

const MAGIC: u32 = 0x4544_4543;
const HEADER: usize = 80;
const ENTRY: usize = 16;
/// Ids 0xGGNN: groups 1 to 7 of at most 24 columns.
const GROUP: u32 = 24;
const COLUMNS: usize = 7 * GROUP as usize;
const ANSWERS: usize = 22;

/// The element type of a column.
pub trait Element: Copy {
    const TYPE: u32;
}

impl Element for u8 {
    const TYPE: u32 = 1;
}
impl Element for i32 {
    const TYPE: u32 = 2;
}
impl Element for i64 {
    const TYPE: u32 = 3;
}
impl Element for f64 {
    const TYPE: u32 = 4;
}

/// The frame is malformed.
pub struct Bad;

#[derive(Clone, Copy)]
struct Entry {
    kind: u32, // 0: the frame has no such entry
    count: u32,
    at: usize,    // of the data, from the start of the frame
    entry: usize, // of the entry itself
}

/// A frame with a valid header and valid entries. `bad` is set if anything that was
/// read since is malformed.
pub struct Frame {
    data: *mut u8,
    length: usize,
    pub now: i64,
    pub options: usize,
    pub rows: usize,
    pub dims: usize,
    pub requests: usize,
    pub bad: bool,
    columns: [Entry; COLUMNS],
    answers: [Entry; ANSWERS],
}

impl Frame {
    /// Reads header and entries of a frame, which must be in the buffer of cede_alloc.
    pub fn load(data: *mut u8, length: usize, op: u32) -> Result<Frame, Bad> {
        if !is_room(data as usize, length) || length < HEADER {
            return Err(Bad);
        }
        let none = Entry { kind: 0, count: 0, at: 0, entry: 0 };
        let mut f = Frame {
            data,
            length,
            now: 0,
            options: 0,
            rows: 0,
            dims: 0,
            requests: 0,
            bad: false,
            columns: [none; COLUMNS],
            answers: [none; ANSWERS],
        };
        let size = f.word(12) as usize;
        let version = f.word(4) & 0xffff;
        if f.word(0) != MAGIC || version != 1 || (f.word(8) as usize) < HEADER || size < HEADER || size > length {
            return Err(Bad);
        }
        f.length = size;
        f.now = ((f.word(28) as i64) << 32) | f.word(24) as i64;
        f.options = f.word(32) as usize;
        f.rows = f.word(36) as usize;
        f.dims = f.word(40) as usize;
        f.requests = f.word(44) as usize;
        // Every row and every option occupies at least one byte of the frame.
        if f.word(16) != op || f.options > size || f.rows > size || f.dims > 1024 || f.requests > 1024 {
            return Err(Bad);
        }
        f.list(f.word(48) as usize, f.word(52) as usize)?;
        f.list(f.word(56) as usize, f.word(60) as usize)?;
        Ok(f)
    }

    /// Reads the entries of columns or of answers.
    fn list(&mut self, count: usize, from: usize) -> Result<(), Bad> {
        if from > self.length || count > (self.length - from) / ENTRY {
            return Err(Bad);
        }
        for k in 0..count {
            let entry = from + k * ENTRY;
            let (id, kind) = (self.word(entry), self.word(entry + 4));
            let (at, count) = (self.word(entry + 8) as usize, self.word(entry + 12));
            let found = match kind {
                1..=4 => Entry { kind, count, at, entry },
                _ => Entry { kind: u32::MAX, count: 0, at: 0, entry }, // a type that a newer host defines
            };
            let size = [0, 1, 4, 8, 8].get(kind as usize).copied().unwrap_or(0);
            if size > 0 && (at % 8 != 0 || at > self.length || count as usize > (self.length - at) / size) {
                return Err(Bad);
            }
            if let Some(slot) = self.slot(id) {
                *slot = found;
            }
        }
        Ok(())
    }

    /// The entry of an ID, or none for an ID of a newer host.
    fn slot(&mut self, id: u32) -> Option<&mut Entry> {
        let (group, k) = ((id >> 8).wrapping_sub(1), (id & 255).wrapping_sub(1));
        if k < GROUP && group < COLUMNS as u32 / GROUP {
            return self.columns.get_mut((GROUP * group + k) as usize);
        }
        self.answers.get_mut(id.wrapping_sub(0x1001) as usize)
    }

    #[inline(never)]
    fn entry(&mut self, id: u32) -> Entry {
        match self.slot(id) {
            Some(e) => *e,
            None => Entry { kind: 0, count: 0, at: 0, entry: 0 },
        }
    }

    /// A word of the frame, at an offset that lies in it.
    fn word(&self, at: usize) -> u32 {
        // Safety: callers have compared the offset with the length.
        unsafe { (self.data.add(at) as *const u32).read_unaligned() }
    }

    fn put_word(&mut self, at: usize, value: u32) {
        // Safety: as for word.
        unsafe { (self.data.add(at) as *mut u32).write_unaligned(value) }
    }

    /// The number of elements of a column, 0 if the frame has none.
    pub fn count(&mut self, id: u32) -> usize {
        self.entry(id).count as usize
    }

    /// Reports whether the frame has a column.
    pub fn has(&mut self, id: u32) -> bool {
        self.entry(id).kind != 0
    }

    #[inline(never)]
    fn find(&mut self, id: u32, kind: u32, count: Option<u64>) -> (usize, usize) {
        let e = self.entry(id);
        if e.kind == 0 {
            return (0, 0);
        }
        if e.kind != kind || count.map_or(false, |n| n != e.count as u64) {
            self.bad = true;
            return (0, 0);
        }
        (e.at, e.count as usize)
    }

    /// A column of any number of elements; empty if the frame has none.
    #[inline(never)]
    pub fn any<'a, T: Element>(&mut self, id: u32) -> &'a [T] {
        let (at, n) = self.find(id, T::TYPE, None);
        self.view(at, n)
    }

    /// A column of so many elements; empty if the frame has none.
    #[inline(never)]
    pub fn column<'a, T: Element>(&mut self, id: u32, count: u64) -> &'a [T] {
        let (at, n) = self.find(id, T::TYPE, Some(count));
        self.view(at, n)
    }

    /// A required column.
    #[inline(never)]
    pub fn must<'a, T: Element>(&mut self, id: u32, count: u64) -> &'a [T] {
        let c = self.column(id, count);
        if c.len() as u64 != count {
            self.bad = true;
        }
        c
    }

    /// A column of one element; zero if the frame has none.
    #[inline(never)]
    pub fn one<T: Element + Default>(&mut self, id: u32) -> T {
        self.column(id, 1).first().copied().unwrap_or_default()
    }

    fn view<'a, T>(&self, at: usize, n: usize) -> &'a [T] {
        if n == 0 {
            return &[];
        }
        // Safety: list has checked that the elements lie in the frame, and their
        // alignment; the frame outlives the call.
        unsafe { from_raw_parts(self.data.add(at) as *const T, n) }
    }

    /// The area for an answer of so many elements.
    #[inline(never)]
    pub fn answer<'a, T: Element>(&mut self, id: u32, count: Option<u64>) -> &'a mut [T] {
        let (at, n) = self.find(id, T::TYPE, count);
        if !self.has(id) && count != Some(0) {
            self.bad = true;
        }
        if n == 0 {
            return &mut [];
        }
        // Safety: as for view; the areas of answers do not overlap.
        unsafe { from_raw_parts_mut(self.data.add(at) as *mut T, n) }
    }

    /// Sets the number of elements of an answer.
    pub fn put_count(&mut self, id: u32, n: usize) {
        let at = self.entry(id).entry;
        self.put_word(at + 12, n as u32);
    }

    /// Writes the error message, truncated to the available space.
    pub fn put_error(&mut self, text: &[u8]) {
        let (at, room) = (self.word(64) as usize, self.word(68) as usize);
        if at > self.length - 4 || room > self.length - 4 - at {
            return;
        }
        let n = text.len().min(room);
        // Safety: the text fits into the frame.
        unsafe { self.data.add(at + 4).copy_from_nonoverlapping(text.as_ptr(), n) };
        self.put_word(at, n as u32);
    }
}
