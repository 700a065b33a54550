//! Removal of lines in front of CSV.
//!
//! The bytes of these lines are replaced by carriage returns, which CSV parsers skip at the start
//! of a record: offsets and line numbers stay valid.

use std::io::{self, Read};

/// A stream with its first lines blanked.
pub(super) struct Preamble<R> {
    inner: R,
    lines: usize,
}

impl<R: Read> Preamble<R> {
    pub(super) fn new(inner: R, lines: usize) -> Self {
        Self { inner, lines }
    }
}

impl<R: Read> Read for Preamble<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        for byte in &mut out[..count] {
            match *byte {
                _ if self.lines == 0 => break,
                b'\n' => self.lines -= 1,
                _ => *byte = b'\r',
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_lines_are_blank() {
        for (lines, expected) in
            [(0, "ab\n\nc\n"), (1, "\r\r\n\nc\n"), (3, "\r\r\n\n\r\n"), (9, "\r\r\n\n\r\n")]
        {
            let mut text = String::new();
            Preamble::new("ab\n\nc\n".as_bytes(), lines).read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }
}
