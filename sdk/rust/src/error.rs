use crate::memory::Global;
use core::fmt;

/// Why a hook could not answer, in words for the operator.
pub struct Error(pub(crate) Reason);

/// What hooks return.
pub type Result<T> = core::result::Result<T, Error>;

pub(crate) enum Reason {
    Said, // the words are in WORDS
    OutOfMemory,
}

/// As much as a host takes.
const LIMIT: usize = 1024;

pub(crate) struct Words {
    pub(crate) text: [u8; LIMIT],
    pub(crate) used: usize,
}

pub(crate) static WORDS: Global<Words> = Global::new(Words { text: [0; LIMIT], used: 0 });

impl Error {
    /// There is no memory.
    pub const OUT_OF_MEMORY: Error = Error(Reason::OutOfMemory);

    /// Says what went wrong.
    pub fn new(what: &str) -> Error {
        WORDS.get().used = 0;
        WORDS.get().add(what);
        Error(Reason::Said)
    }

    /// Says what went wrong, and with which name: `what: name`.
    pub fn about(what: &str, name: &str) -> Error {
        let e = Error::new(what);
        WORDS.get().add(": ");
        WORDS.get().add(name);
        e
    }

    /// Says what `format_args!` makes. It links the formatting of core, which is
    /// larger than most policies.
    pub fn format(what: fmt::Arguments) -> Error {
        let e = Error::new("");
        let _ = fmt::write(WORDS.get(), what);
        e
    }
}

impl Words {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(to) = self.text.get_mut(self.used) {
                *to = byte;
                self.used += 1;
            }
        }
    }
}

impl fmt::Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text);
        Ok(())
    }
}
