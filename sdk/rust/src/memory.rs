use crate::{Error, Result};
use core::arch::wasm32::{memory_grow, memory_size};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

/// A variable of the module, which one thread calls.
pub struct Global<T>(UnsafeCell<T>);

// Safety: there are no threads.
unsafe impl<T> Sync for Global<T> {}

impl<T> Global<T> {
    pub const fn new(value: T) -> Self {
        Global(UnsafeCell::new(value))
    }

    /// The variable. No two of these references may be in use at a time.
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // Safety: there are no threads, and callers take turns.
        unsafe { &mut *self.0.get() }
    }
}

extern "C" {
    /// Defined by the linker: the end of data and stack.
    static __heap_base: u8;
}

/// Memory below it is allocated.
static TOP: Global<usize> = Global::new(0);

/// Allocates memory that is never freed, aligned to 16 and zeroed.
fn take(n: usize) -> Option<usize> {
    let top = TOP.get();
    if *top == 0 {
        // Safety: only its address is used.
        *top = unsafe { core::ptr::addr_of!(__heap_base) as usize };
    }
    let from = (*top as u64 + 15) & !15;
    let end = from + ((n as u64 + 15) & !15);
    let have = (memory_size(0) as u64) << 16;
    if end >= 1 << 32 {
        return None;
    }
    if end > have && memory_grow(0, ((end - have + 65535) >> 16) as usize) == usize::MAX {
        return None;
    }
    *top = end as usize;
    Some(from as usize)
}

/// The buffer that cede_alloc has returned.
struct Room {
    at: usize,
    size: usize,
}

static ROOM: Global<Room> = Global::new(Room { at: 0, size: 0 });

/// cede_alloc. The buffer is extended if it is last in memory; otherwise a new one of
/// twice the size is allocated, so that abandoned memory is never more than memory in
/// use.
pub(crate) fn room(size: usize) -> usize {
    let room = ROOM.get();
    if size <= room.size {
        return room.at;
    }
    if room.at != 0 && room.at + room.size == *TOP.get() {
        if take(size - room.size).is_none() {
            return 0;
        }
    } else {
        match take(size.max(room.size.saturating_mul(2))) {
            Some(at) => room.at = at,
            None => return 0,
        }
    }
    room.size = *TOP.get() - room.at;
    room.at
}

/// Reports whether a frame is in the buffer of cede_alloc.
pub(crate) fn is_room(at: usize, size: usize) -> bool {
    at != 0 && at == ROOM.get().at && size <= ROOM.get().size
}

/// A growing list that a policy keeps, for its configuration and for
/// intermediate results. It allocates memory only when it grows, and never frees any.
pub struct Buffer<T: Copy> {
    at: *mut T,
    len: usize,
    cap: usize,
}

impl<T: Copy> Buffer<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Buffer { at: core::mem::align_of::<T>() as *mut T, len: 0, cap: 0 }
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Retains the first n elements.
    pub fn truncate(&mut self, n: usize) {
        self.len = self.len.min(n);
    }

    /// Adds an element.
    pub fn push(&mut self, value: T) -> Result<()> {
        self.reserve(self.len + 1)?;
        // Safety: the capacity suffices for one more.
        unsafe { self.at.add(self.len).write(value) };
        self.len += 1;
        Ok(())
    }

    /// Replaces the content by n elements that equal the value.
    pub fn fill(&mut self, n: usize, value: T) -> Result<&mut [T]> {
        self.clear();
        self.reserve(n)?;
        for i in 0..n {
            // Safety: the capacity suffices for n.
            unsafe { self.at.add(i).write(value) };
        }
        self.len = n;
        Ok(self)
    }

    fn reserve(&mut self, n: usize) -> Result<()> {
        if n <= self.cap {
            return Ok(());
        }
        let cap = n.max(2 * self.cap);
        let bytes = cap.checked_mul(core::mem::size_of::<T>()).ok_or(Error::OUT_OF_MEMORY)?;
        let at = take(bytes).ok_or(Error::OUT_OF_MEMORY)? as *mut T;
        // Safety: the new memory is larger, aligned, and not shared.
        unsafe { at.copy_from_nonoverlapping(self.at, self.len) };
        self.at = at;
        self.cap = cap;
        Ok(())
    }
}

impl<T: Copy> Default for Buffer<T> {
    fn default() -> Self {
        Buffer::new()
    }
}

impl<T: Copy> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // Safety: len elements were written.
        unsafe { core::slice::from_raw_parts(self.at, self.len) }
    }
}

impl<T: Copy> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // Safety: len elements were written, and the list is borrowed as a whole.
        unsafe { core::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

/// Copies a text to permanent memory: for configure and not for hooks, since the
/// memory is never freed.
pub fn keep(text: &str) -> Result<&'static str> {
    let at = take(text.len()).ok_or(Error::OUT_OF_MEMORY)? as *mut u8;
    // Safety: the memory is new, and what was UTF-8 still is.
    unsafe {
        at.copy_from_nonoverlapping(text.as_ptr(), text.len());
        Ok(core::str::from_utf8_unchecked(core::slice::from_raw_parts(at, text.len())))
    }
}
