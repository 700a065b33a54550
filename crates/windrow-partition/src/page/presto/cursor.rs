//! A reader's position in the bytes of a page, with the remaining memory.

use crate::page::common::damaged;
use windrow_rows::{Error, Result};

/// The place of damage, in errors.
pub(super) const PLACE: &str = "Presto page";

/// Bytes, read from front to back.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Remaining memory in bytes.
    allowed: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], allowed: usize) -> Self {
        Self { bytes, at: 0, allowed }
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        if bytes > self.left() {
            return Err(self.error(format!("expected {bytes} bytes more, got {}", self.left())));
        }
        let taken = &self.bytes[self.at..self.at + bytes];
        self.at += bytes;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn int(&mut self) -> Result<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    /// Reads a count: a number that is not negative.
    pub(super) fn count(&mut self) -> Result<usize> {
        let int = self.int()?;
        usize::try_from(int).map_err(|_| self.error(format!("{int} is no count")))
    }

    /// Reads `count` offsets, none negative.
    pub(super) fn counts(&mut self, count: usize) -> Result<Vec<usize>> {
        let bytes = self.take(count.saturating_mul(4))?;
        self.claim(count.saturating_mul(8))?;
        let mut counts = Vec::with_capacity(count);
        for bytes in bytes.chunks_exact(4) {
            let mut int = [0; 4];
            int.copy_from_slice(bytes);
            let int = i32::from_le_bytes(int);
            counts
                .push(usize::try_from(int).map_err(|_| self.error(format!("{int} is no offset")))?);
        }
        Ok(counts)
    }

    /// Subtracts memory from the limit before an allocation.
    pub(super) fn claim(&mut self, bytes: usize) -> Result<()> {
        match self.allowed.checked_sub(bytes) {
            Some(allowed) => {
                self.allowed = allowed;
                Ok(())
            }
            None => Err(self.error("the page takes more memory than it may".to_owned())),
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> windrow_rows::Error {
        damaged(&format!("{PLACE}, byte {}", self.at), message)
    }
}

/// Converts a count to the format's 31 bits.
pub(super) fn int(count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| Error::Value {
        column: "(page)".to_owned(),
        message: format!("{count} does not fit the 31 bits of a Presto page; send fewer rows"),
    })
}
