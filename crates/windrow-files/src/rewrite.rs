//! Text that is rewritten as it is read, whatever pieces it comes in.

use std::io::{self, Read};

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;

/// How text is rewritten.
pub(crate) trait Rewrite {
    /// Takes the text that comes next; what it becomes goes behind `out`, now or later.
    ///
    /// # Errors
    /// If the text is not what it must be.
    fn take(&mut self, text: &[u8], out: &mut Vec<u8>) -> io::Result<()>;

    /// Puts behind `out` what is left when there is no more text; it may be asked again.
    ///
    /// # Errors
    /// If more was to come.
    fn end(&mut self, _out: &mut Vec<u8>) -> io::Result<()> {
        Ok(())
    }
}

/// The text of `inner`, rewritten.
pub(crate) struct Rewritten<R, W> {
    inner: R,
    rewrite: W,
    /// What is to be passed on, and how much of it was.
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

/// Text that comes a byte at a time.
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
