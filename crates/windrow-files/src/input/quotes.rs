//! Where the quotes of CSV open and close.

use memchr::{memchr_iter, memrchr};

use super::dialect::Dialect;

/// Where in a CSV field the text is: what the decoder knows and does not tell.
#[derive(Clone)]
pub(super) struct Quotes {
    /// None for text without such quotes.
    delimiter: Option<u8>,
    at: Field,
    /// The line of the quote that opened last.
    line: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Start,
    Plain,
    Quoted,
    /// Behind a quote that closes the field, or is the first of two.
    Closed,
}

impl Quotes {
    pub(super) fn new(dialect: Dialect) -> Self {
        let delimiter = match dialect {
            Dialect::Csv(options) => Some(options.delimiter),
            Dialect::Ndjson => None,
        };
        Self { delimiter, at: Field::Start, line: 0 }
    }

    /// The line of the quote that is open.
    pub(super) fn unclosed(&self) -> Option<u64> {
        (self.at == Field::Quoted).then_some(self.line)
    }

    /// Takes note of `bytes`, the first of which is on `line`; returns where the last record ends in them.
    pub(super) fn pass(&mut self, bytes: &[u8], mut line: u64) -> Option<usize> {
        let Some(delimiter) = self.delimiter else {
            return memrchr(b'\n', bytes).map(|end| end + 1);
        };
        let mut ended = None;
        for (place, &byte) in bytes.iter().enumerate() {
            self.at = match (self.at, byte) {
                (Field::Start, b'"') => {
                    self.line = line;
                    Field::Quoted
                }
                (Field::Quoted, b'"') => Field::Closed,
                (Field::Closed, b'"') | (Field::Quoted, _) => Field::Quoted,
                (_, b'\n' | b'\r') => Field::Start,
                (_, byte) if byte == delimiter => Field::Start,
                _ => Field::Plain,
            };
            line += u64::from(byte == b'\n');
            if byte == b'\n' && self.at == Field::Start {
                ended = Some(place + 1);
            }
        }
        ended
    }

    /// Where the first record ends in `bytes`, of which note is taken up to there.
    pub(super) fn first_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        for line in memchr_iter(b'\n', bytes) {
            if let Some(end) = self.pass(&bytes[start..=line], 0) {
                return Some(start + end);
            }
            start = line + 1;
        }
        self.pass(&bytes[start..], 0);
        None
    }
}
