//! Unused buffers, kept for reuse by size.
//!
//! ```text
//! newest last   | 341 KiB | 64 KiB | 64 KiB | 341 KiB |      one chunk size, or two with indexes
//! ```

use crate::buffer::Buffer;

/// Unused buffers, with their leases.
#[derive(Debug, Default)]
pub(super) struct Recycled {
    buffers: Vec<Buffer>,
    /// The bytes of all buffers.
    pub(super) bytes: usize,
    /// How many buffers were reused.
    pub(super) reused: u64,
}

impl Recycled {
    /// Takes the newest buffer of exactly `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Option<Buffer> {
        let at = self.buffers.iter().rposition(|buffer| buffer.len() == len)?;
        self.reused += 1;
        self.bytes -= len;
        Some(self.buffers.remove(at))
    }

    /// Keeps a buffer.
    pub(super) fn put(&mut self, buffer: Buffer) {
        self.bytes += buffer.len();
        self.buffers.push(buffer);
    }

    /// Takes the buffers beyond the first `kept` bytes: the newest.
    pub(super) fn take_beyond(&mut self, kept: usize) -> Vec<Buffer> {
        let mut bytes = 0;
        let within = |buffer: &Buffer| {
            bytes += buffer.len();
            bytes <= kept
        };
        let at = self.buffers.iter().map(within).position(|within| !within);
        let taken = self.buffers.split_off(at.unwrap_or(self.buffers.len()));
        self.bytes -= taken.iter().map(|buffer| buffer.len()).sum::<usize>();
        taken
    }
}
