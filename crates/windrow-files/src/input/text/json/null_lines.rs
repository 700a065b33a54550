//! Removal of `null` lines and byte order marks from NDJSON.
//!
//! Editors and shells of Windows put a mark in front of a file, and concatenated files have marks
//! inside. Kafka's tombstones, records without a value, leave a console consumer as a bare `null`.
//! The decoder accepts objects only, so both are replaced by as many blanks: offsets and line
//! numbers stay valid.

use std::io::{self, Read};

use memchr::memchr;

use crate::rewrite::{Rewrite, Rewritten};

/// The byte order mark, as UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads `inner` with blanks in place of `null` lines and byte order marks.
pub(crate) fn without_nulls<R: Read>(inner: R) -> Rewritten<R, NullLines> {
    Rewritten::new(inner, NullLines { held: Some(Vec::new()) })
}

/// A rewriter of `null` lines and byte order marks into blanks.
pub(crate) struct NullLines {
    /// Start of a line that may still be a mark or `null`; `None` in the rest of another line.
    held: Option<Vec<u8>>,
}

impl Rewrite for NullLines {
    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while let Some((&first, rest)) = bytes.split_first() {
            match &mut self.held {
                Some(held) if first == b'\n' => {
                    blank(held);
                    out.append(held);
                    out.push(first);
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
                        out.append(held);
                        self.held = None;
                    }
                }
                None => {
                    let end = memchr(b'\n', bytes);
                    let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
                    out.extend_from_slice(line);
                    self.held = end.map(|_| Vec::new());
                    bytes = rest;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut last = self.held.take().unwrap_or_default();
        blank(&mut last);
        out.append(&mut last);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::Drops;

    #[test]
    fn byte_order_marks_are_blank_where_a_line_starts() {
        let text = b"\xEF\xBB\xBF{\"a\":\"\xEF\xBB\xBF\"}\n\xEF\xBB\xBFnull\n\xEF\xBB\n\xEF";
        let blank = b"   {\"a\":\"\xEF\xBB\xBF\"}\n       \n\xEF\xBB\n\xEF";
        let (mut whole, mut slow) = (Vec::new(), Vec::new());
        without_nulls(&text[..]).read_to_end(&mut whole).unwrap();
        without_nulls(Drops(text)).read_to_end(&mut slow).unwrap();
        assert_eq!((whole.as_slice(), slow.as_slice()), (&blank[..], &blank[..]));
    }

    #[test]
    fn only_lines_that_are_null_become_blank() {
        let text = "null\n{\"a\":null}\n  null \r\n\nnull5\nnu\nnullnull\n\"null\"\nnull";
        let blank = "    \n{\"a\":null}\n        \n\nnull5\nnu\nnullnull\n\"null\"\n    ";
        let (mut whole, mut slow) = (String::new(), String::new());
        without_nulls(text.as_bytes()).read_to_string(&mut whole).unwrap();
        without_nulls(Drops(text.as_bytes())).read_to_string(&mut slow).unwrap();
        assert_eq!(whole.replace('\r', " "), blank);
        assert_eq!(whole, slow);
        assert_eq!(whole.len(), text.len());
    }
}
