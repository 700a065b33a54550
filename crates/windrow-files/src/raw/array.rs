//! Conversion of JSON arrays of objects into a sequence of objects.
//!
//! The brackets of an array become blanks, and so do the commas between its objects. A comma
//! without a line end after it becomes a line end instead, so that an array on one line becomes one
//! line for each object:
//!
//! ```text
//!  [{"a":[1,2]},{"a":[]}]          [
//!                                    {"a":1},
//!                                    {"a":2}
//!                                  ]
//!   {"a":[1,2]}                     ...
//!  {"a":[]}
//! ```
//! Invariant: the output has as many bytes as the input. An unclosed array is an error, since its
//! missing end may have contained objects.

use std::io;

use super::json::Scan;
use super::records::Fault;
use crate::rewrite::Rewrite;

/// Returns true if text with this head consists of arrays.
pub(crate) fn is_array(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Position in the text of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before or after an array.
    Outside,
    /// After the opening bracket.
    Opened,
    /// After a comma. The next line end or value decides about its replacement.
    Comma,
    /// After a comma with its replacement written.
    Between,
    /// In an object.
    Within,
    /// In a value of another type, refused by the decoder.
    Scalar,
    /// After an object.
    Behind,
}

/// Extracts the objects of arrays.
pub(crate) struct Elements {
    at: At,
    scan: Scan,
    /// Blanks since the comma.
    blanks: Vec<u8>,
    line: u64,
}

impl Elements {
    pub(crate) fn new() -> Self {
        Self { at: At::Outside, scan: Scan::default(), blanks: Vec::new(), line: 1 }
    }

    /// Writes the replacement of a pending comma.
    fn settle(&mut self, becomes: u8, out: &mut Vec<u8>) {
        if self.at == At::Comma {
            out.push(becomes);
            out.append(&mut self.blanks);
            self.at = At::Between;
        }
    }

    fn fault(&self, what: &str) -> io::Error {
        io::Error::other(Fault { line: self.line, what: what.to_owned() })
    }

    /// Takes a byte outside of objects. Returns its replacement, unless that is still open.
    fn between(&mut self, byte: u8) -> io::Result<Option<u8>> {
        let becomes = match (self.at, byte) {
            (At::Outside, 0xEF | 0xBB | 0xBF) => byte,
            (At::Outside, b'[') => {
                self.at = At::Opened;
                b' '
            }
            (At::Outside, _) => return Err(self.fault("there is text behind the JSON array")),
            (At::Opened | At::Behind | At::Scalar, b']') => {
                self.at = At::Outside;
                b'\n'
            }
            (At::Behind | At::Scalar, b',') => {
                self.at = At::Comma;
                return Ok(None);
            }
            (At::Behind, _) => {
                return Err(self.fault("there is no comma between two values of the JSON array"));
            }
            (_, b',' | b']') => {
                return Err(self.fault("there is no value at a comma of the JSON array"));
            }
            (_, byte) => {
                self.at = At::Scalar;
                byte
            }
        };
        Ok(Some(becomes))
    }
}

impl Rewrite for Elements {
    fn take(&mut self, mut text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while let Some((&byte, rest)) = text.split_first() {
            if self.at == At::Within {
                let (part, rest, ends) = self.scan.split(text);
                self.line += memchr::memchr_iter(b'\n', part).count() as u64;
                out.extend_from_slice(part);
                if ends {
                    self.at = At::Behind;
                }
                text = rest;
                continue;
            }
            if byte == b'{' && matches!(self.at, At::Opened | At::Comma | At::Between) {
                self.settle(b'\n', out);
                (self.at, self.scan) = (At::Within, Scan::default());
                continue;
            }
            text = rest;
            if byte.is_ascii_whitespace() {
                if byte == b'\n' {
                    self.line += 1;
                    self.settle(b' ', out);
                }
                match self.at {
                    At::Comma => self.blanks.push(byte),
                    _ => out.push(byte),
                }
                continue;
            }
            self.settle(b'\n', out);
            out.extend(self.between(byte)?);
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> io::Result<()> {
        match self.at {
            At::Outside => Ok(()),
            _ => Err(self.fault("the JSON array is never closed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::rewrite::{Drops, Rewritten};

    fn elements(text: &str) -> io::Result<String> {
        let (mut whole, mut drops) = (String::new(), String::new());
        let read = Rewritten::new(text.as_bytes(), Elements::new()).read_to_string(&mut whole);
        let again =
            Rewritten::new(Drops(text.as_bytes()), Elements::new()).read_to_string(&mut drops);
        assert_eq!(read.is_ok(), again.is_ok());
        read?;
        assert_eq!((&whole, whole.len()), (&drops, text.len()));
        Ok(whole)
    }

    #[test]
    fn arrays_fall_into_objects() {
        for (text, expected) in [
            ("[]", " \n"),
            ("[{\"a\":[1,2]},{\"a\":\"],{\"}]", " {\"a\":[1,2]}\n{\"a\":\"],{\"}\n"),
            ("[\n {\"a\":1},\n {\"a\":2} ]\n", " \n {\"a\":1} \n {\"a\":2} \n\n"),
            ("[{} ,  {},{}]", " {} \n  {}\n{}\n"),
            ("[{}, \r\n{}\n,{}]", " {}  \r\n{}\n\n{}\n"),
            ("\u{feff}[{}]\n[{}]", "\u{feff} {}\n\n {}\n"),
            ("[null,{}]", " null\n{}\n"),
            ("[1,[2]]", " 1\n[2\n]"),
        ] {
            if text == "[1,[2]]" {
                assert!(elements(text).is_err(), "{text}");
            } else {
                assert_eq!(elements(text).unwrap(), expected, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_array_is_an_error() {
        for (text, what) in [
            ("[{}", "never closed"),
            ("[{},", "never closed"),
            ("[{\"a\":[}]", "never closed"),
            ("[", "never closed"),
            ("[{}{}]", "no comma"),
            ("[{},]", "no value"),
            ("[,{}]", "no value"),
            ("[{},,{}]", "no value"),
            ("[{}] {}", "behind the JSON array"),
            ("[\n{}\n]]", "line 3"),
        ] {
            let error = elements(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
