use crate::memory::Global;
use core::fmt;

/// The reason why a hook cannot answer: a message for the operator.
pub struct Error(pub(crate) Reason);

/// The result of hooks.
pub type Result<T> = core::result::Result<T, Error>;

pub(crate) enum Reason {
    Message, // in MESSAGE
    OutOfMemory,
}

/// The longest message that a host accepts, in bytes.
const LIMIT: usize = 1024;

pub(crate) struct Text {
    pub(crate) text: [u8; LIMIT],
    pub(crate) used: usize,
}

pub(crate) static MESSAGE: Global<Text> = Global::new(Text { text: [0; LIMIT], used: 0 });

impl Error {
    /// No memory is available.
    pub const OUT_OF_MEMORY: Error = Error(Reason::OutOfMemory);

    /// Returns an error with this message.
    pub fn new(what: &str) -> Error {
        MESSAGE.get().used = 0;
        MESSAGE.get().add(what);
        Error(Reason::Message)
    }

    /// Returns an error with the message `what: name`.
    pub fn about(what: &str, name: &str) -> Error {
        let e = Error::new(what);
        MESSAGE.get().add(": ");
        MESSAGE.get().add(name);
        e
    }

    /// Returns an error with a formatted message. It links the formatting of core,
    /// which is larger than most policies.
    pub fn format(what: fmt::Arguments) -> Error {
        let e = Error::new("");
        let _ = fmt::write(MESSAGE.get(), what);
        e
    }
}

impl Text {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(to) = self.text.get_mut(self.used) {
                *to = byte;
                self.used += 1;
            }
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text);
        Ok(())
    }
}
