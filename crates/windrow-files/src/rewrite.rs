//! Rewriting of text while it is read, independent of the division into pieces.

use std::io::{self, Read};

/// Bytes to read at a time.
pub(crate) const CHUNK: usize = 64 << 10;

/// A rule for rewriting text.
pub(crate) trait Rewrite {
    /// Takes the next text. Appends its replacement to `out`, now or later.
    ///
    /// # Errors
    /// If the text is malformed.
    fn take(&mut self, text: &[u8], out: &mut Vec<u8>) -> io::Result<()>;

    /// Appends the rest to `out` at the end of the text. May be called repeatedly.
    ///
    /// # Errors
    /// If the text is incomplete.
    fn end(&mut self, _out: &mut Vec<u8>) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the text of `inner`, rewritten.
pub(crate) struct Rewritten<R, W> {
    inner: R,
    rewrite: W,
    /// Rewritten text, of which the first `passed` bytes were returned.
    ready: Vec<u8>,
    passed: usize,
    chunk: Vec<u8>,
}

impl<R: Read, W: Rewrite> Rewritten<R, W> {
    pub(crate) fn new(inner: R, rewrite: W) -> Self {
        Self { inner, rewrite, ready: Vec::new(), passed: 0, chunk: vec![0; CHUNK] }
    }
}

impl<R: Read, W: Rewrite> Read for Rewritten<R, W> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.passed == self.ready.len() {
            self.ready.clear();
            self.passed = 0;
            let read = self.inner.read(&mut self.chunk)?;
            if read > 0 {
                self.rewrite.take(&self.chunk[..read], &mut self.ready)?;
                continue;
            }
            self.rewrite.end(&mut self.ready)?;
            if self.ready.is_empty() {
                return Ok(0);
            }
        }
        let count = out.len().min(self.ready.len() - self.passed);
        out[..count].copy_from_slice(&self.ready[self.passed..self.passed + count]);
        self.passed += count;
        Ok(count)
    }
}

/// A reader of one byte at a time.
#[cfg(test)]
pub(crate) struct Drops<'a>(pub(crate) &'a [u8]);

#[cfg(test)]
impl Read for Drops<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let one = self.0.len().min(1).min(out.len());
        out[..one].copy_from_slice(&self.0[..one]);
        self.0 = &self.0[one..];
        Ok(one)
    }
}
