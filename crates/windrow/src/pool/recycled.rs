//! Buffers that nobody uses, for the next one who asks for as much.
//!
//! ```text
//! newest last   | 341 KiB | 64 KiB | 64 KiB | 341 KiB |      chunks are of one size, or of two if there are indexes
//! ```

use super::Buffer;

/// Buffers that keep their leases.
#[derive(Debug, Default)]
pub(super) struct Recycled {
    buffers: Vec<Buffer>,
    bytes: usize,
    reused: u64,
}

impl Recycled {
    /// How many were used again.
    pub(super) fn reused(&self) -> u64 {
        self.reused
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The newest of exactly `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Option<Buffer> {
        let at = self.buffers.iter().rposition(|buffer| buffer.len() == len)?;
        self.reused += 1;
        self.bytes -= len;
        Some(self.buffers.remove(at))
    }

    /// Keeps one.
    pub(super) fn put(&mut self, buffer: Buffer) {
        self.bytes += buffer.len();
        self.buffers.push(buffer);
    }

    /// Those that are beyond `kept` bytes: the newest.
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
