//! The encoding of text in rows: a constant is added to every byte, and an end follows.
//! [`super::exact`] writes it, and [`super::take_text`] reads it.

use super::block;

/// The encoding of a text column: `shift` is added to every byte, then the bits of `flip` are
/// complemented. `end`, also complemented, follows the last byte. `end` is below 2, and every
/// shifted byte is at least 2.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub shift: u8,
    pub end: u8,
    pub flip: u8,
}

/// Escape before a byte of a byte string up to `ESCAPE`; the escaped byte is increased by one.
pub const ESCAPE: u8 = 2;

impl Form {
    /// Returns the constant that decodes a byte, before the bits of `flip` are complemented. Both
    /// directions are an addition and a flip, since (b ^ ff) - 2 = (b + 2) ^ ff.
    #[inline(always)]
    pub(super) fn back(self) -> u8 {
        if self.flip == 0 { 0u8.wrapping_sub(self.shift) } else { self.shift }
    }
}

/// A string; for a null, any string.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The string's bytes, and further readable bytes after it.
    pub(super) beyond: &'a [u8],
    pub len: usize,
    pub valid: bool,
}

impl<'a> Text<'a> {
    /// Takes the first `len` bytes of `beyond`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn new(beyond: &'a [u8], len: usize, valid: bool) -> Self {
        assert!(len <= beyond.len(), "a string lies within its bytes");
        Self { beyond, len, valid }
    }

    #[inline(always)]
    pub fn bytes(self) -> &'a [u8] {
        &self.beyond[..self.len]
    }

    /// Returns the first readable bytes, if they fill a block.
    #[inline(always)]
    pub(super) fn block(self) -> Option<block::Block> {
        self.beyond.first_chunk().copied()
    }
}

impl<'a> From<(&'a [u8], bool)> for Text<'a> {
    #[inline(always)]
    fn from((bytes, valid): (&'a [u8], bool)) -> Self {
        Self { beyond: bytes, len: bytes.len(), valid }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    /// Start and end of a string.
    type Span = (usize, usize);

    /// The span of a null.
    const NULL: Span = (1, 0);

    /// Texts one after the other, and their spans.
    #[derive(Debug)]
    pub(in super::super) struct Source {
        pub(in super::super) bytes: Vec<u8>,
        pub(in super::super) spans: Vec<Span>,
    }

    /// Texts of up to 200 bytes or of up to 20, some of them null.
    pub(in super::super) fn source() -> impl Strategy<Value = Source> {
        let text = prop::option::of(prop::collection::vec(0u8..254, 0..200));
        (prop::collection::vec(text, 1..200), any::<bool>()).prop_map(|(texts, short)| {
            let mut bytes = Vec::new();
            let span = |text: Option<Vec<u8>>| {
                let text = text?;
                let start = bytes.len();
                bytes.extend(&text[..if short { text.len() % 20 } else { text.len() }]);
                Some((start, bytes.len()))
            };
            let spans = texts.into_iter().map(span).map(|span| span.unwrap_or(NULL)).collect();
            Source { bytes, spans }
        })
    }

    /// Returns the starts of adjacent codes of these lengths, and the end of the last one.
    pub(in super::super) fn starts(lens: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
        let mut end = 0;
        let start = |len| {
            end += len;
            end - len
        };
        (lens.map(start).collect(), end)
    }
}
