//! NDJSON without its lines that are `null` and its byte order marks.
//!
//! Editors and shells of Windows put a mark in front of a file, and files that were joined have it inside.
//! Kafka's tombstones come out of a console consumer as a bare `null`: a record without a value. The
//! decoder takes objects only, so both are read as blanks, of which there are as many: offsets and line
//! numbers stay what they are.

use std::io::{self, Read};

use memchr::memchr;

/// Bytes read at a time.
const BUFFER: usize = 64 << 10;

/// The byte order mark, as UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A stream whose `null` lines and byte order marks are blank.
pub(super) struct NullLines<R> {
    inner: R,
    /// What was read, and how much of it was passed on.
    ready: Vec<u8>,
    passed: usize,
    /// The start of a line that may still turn out to be a mark or `null`; `None` in the rest of another
    /// line.
    held: Option<Vec<u8>>,
    chunk: Vec<u8>,
}

impl<R: Read> NullLines<R> {
    pub(super) fn new(inner: R) -> Self {
        let chunk = vec![0; BUFFER];
        Self { inner, ready: Vec::new(), passed: 0, held: Some(Vec::new()), chunk }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            match &mut self.held {
                Some(held) if first == b'\n' => {
                    blank(held);
                    self.ready.append(held);
                    self.ready.push(first);
                    bytes = rest;
                }
                Some(held) => {
                    held.push(first);
                    bytes = rest;
                    let text = held.strip_prefix(MARK).unwrap_or(held).trim_ascii();
                    let may_be = MARK.starts_with(held)
                        || b"null".starts_with(text) && held.len() <= text.len() + 64;
                    if !may_be {
                        blank(held);
                        self.ready.append(held);
                        self.held = None;
                    }
                }
                None => {
                    let end = memchr(b'\n', bytes);
                    let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
                    self.ready.extend_from_slice(line);
                    self.held = end.map(|_| Vec::new());
                    bytes = rest;
                }
            }
        }
    }
}

fn blank(line: &mut [u8]) {
    if line.starts_with(MARK) {
        line[..MARK.len()].fill(b' ');
    }
    if line.trim_ascii() == b"null" {
        line.fill(b' ');
    }
}

impl<R: Read> Read for NullLines<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.passed == self.ready.len() {
            self.ready.clear();
            self.passed = 0;
            let mut chunk = std::mem::take(&mut self.chunk);
            let read = self.inner.read(&mut chunk);
            if let Ok(read) = read {
                self.take(&chunk[..read]);
            }
            self.chunk = chunk;
            if read? == 0 {
                let mut last = self.held.take().unwrap_or_default();
                if last.is_empty() {
                    return Ok(0);
                }
                blank(&mut last);
                self.ready.append(&mut last);
            }
        }
        let count = out.len().min(self.ready.len() - self.passed);
        out[..count].copy_from_slice(&self.ready[self.passed..self.passed + count]);
        self.passed += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = 1.min(self.0.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn byte_order_marks_are_blank_where_a_line_starts() {
        let text = b"\xEF\xBB\xBF{\"a\":\"\xEF\xBB\xBF\"}\n\xEF\xBB\xBFnull\n\xEF\xBB\n\xEF";
        let blank = b"   {\"a\":\"\xEF\xBB\xBF\"}\n       \n\xEF\xBB\n\xEF";
        let (mut whole, mut slow) = (Vec::new(), Vec::new());
        NullLines::new(&text[..]).read_to_end(&mut whole).unwrap();
        NullLines::new(Slow(text)).read_to_end(&mut slow).unwrap();
        assert_eq!((whole.as_slice(), slow.as_slice()), (&blank[..], &blank[..]));
    }

    #[test]
    fn only_lines_that_are_null_become_blank() {
        let text = "null\n{\"a\":null}\n  null \r\n\nnull5\nnu\nnullnull\n\"null\"\nnull";
        let blank = "    \n{\"a\":null}\n        \n\nnull5\nnu\nnullnull\n\"null\"\n    ";
        let (mut whole, mut slow) = (String::new(), String::new());
        NullLines::new(text.as_bytes()).read_to_string(&mut whole).unwrap();
        NullLines::new(Slow(text.as_bytes())).read_to_string(&mut slow).unwrap();
        assert_eq!(whole.replace('\r', " "), blank);
        assert_eq!(whole, slow);
        assert_eq!(whole.len(), text.len());
    }
}
