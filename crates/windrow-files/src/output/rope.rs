//! A byte buffer that grows without moving its bytes.
//!
//! A growing `Vec` doubles, and holds three times its bytes during a move. A part of text has tens
//! of megabytes.

use std::io::{self, Write};

/// Bytes in pieces of [`Self::PIECE`].
#[derive(Default)]
pub(super) struct Rope {
    pieces: Vec<Vec<u8>>,
}

impl Rope {
    /// Bytes of a piece: above glibc's threshold for mapped memory, so a dropped piece returns to
    /// the system.
    pub(super) const PIECE: usize = 256 << 10;

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// Passes all bytes to `write`. Each piece is freed after it is written.
    pub(super) fn drain<E>(self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.pieces.into_iter().try_for_each(|piece| write(&piece))
    }
}

impl Write for Rope {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pieces.last().is_none_or(|last| last.len() == Self::PIECE) {
            self.pieces.push(Vec::with_capacity(Self::PIECE));
        }
        let Some(last) = self.pieces.last_mut() else {
            return Ok(0);
        };
        let taken = bytes.len().min(Self::PIECE - last.len());
        last.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
