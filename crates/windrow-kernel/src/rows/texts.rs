//! Strings at any place in rows, and the destination of what a kernel reads of them.

use super::text::Form;

/// Strings at any place in rows.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    pub bytes: &'a [u8],
    /// The ends of the rows: no string reaches further.
    pub ends: &'a [usize],
    pub form: Form,
    /// The byte before a null; any other byte precedes a string. `None` if no byte precedes
    /// strings. A string in blocks has no separate byte: its code begins with one.
    pub null: Option<u8>,
}

/// A destination of strings that kernels read.
#[cfg(target_arch = "x86_64")]
pub(super) trait Sink {
    /// Whether [`Sink::put`] needs `ascii`; otherwise callers may always pass false.
    const ASKS: bool;

    /// Takes the string of `row`, the `len` bytes at `at` of `data`; `ascii` if all of them are
    /// known to be ASCII. Returns the number of bytes to keep: the next string overwrites all
    /// others. Returns `None` if the string is invalid.
    ///
    /// # Safety
    /// `row` exists. The string's bytes are readable at `at`, and sixteen bytes there in any case.
    /// If `ascii`, the string is ASCII.
    unsafe fn put(
        &mut self,
        row: usize,
        data: *const u8,
        at: usize,
        len: usize,
        ascii: bool,
    ) -> Option<usize>;
}

/// The result of a kernel.
pub(super) struct Taken {
    pub(super) texts: usize,
    /// Whether all of the texts were seen to be ASCII.
    pub(super) ascii: bool,
}
