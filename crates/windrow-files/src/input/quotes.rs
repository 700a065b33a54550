//! Where the quotes of CSV open and close.

use super::text::Dialect;

/// Where in a CSV field the text is: what the decoder knows and does not tell.
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

    /// Takes note of `bytes`, the first of which is on `line`.
    pub(super) fn pass(&mut self, bytes: &[u8], mut line: u64) {
        let Some(delimiter) = self.delimiter else { return };
        for &byte in bytes {
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
        }
    }

    /// Whether a field, and so maybe a record, is about to begin.
    pub(super) fn at_start(&self) -> bool {
        self.at == Field::Start
    }
}
