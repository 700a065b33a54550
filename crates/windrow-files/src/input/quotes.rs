//! Where the quotes of CSV open and close, and its comments.

use memchr::{memchr_iter, memrchr};

use super::dialect::Dialect;

/// Where in a CSV field the text is: what the decoder knows and does not tell.
#[derive(Clone)]
pub(super) struct Quotes {
    /// None for text without such quotes.
    marks: Option<Marks>,
    at: Field,
    /// The line of the quote that opened last.
    line: u64,
}

/// The bytes that mean something.
#[derive(Clone, Copy)]
struct Marks {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    /// Where a record may begin.
    Record,
    Comment,
    Start,
    Plain,
    Quoted,
    /// Behind an escape within quotes.
    Escaped,
    /// Behind a quote that closes the field, or is the first of two.
    Closed,
}

impl Quotes {
    pub(super) fn new(dialect: &Dialect) -> Self {
        let marks = match dialect {
            Dialect::Csv(csv) => Some(Marks {
                delimiter: csv.separator(),
                quote: csv.quote_byte(),
                escape: csv.escape,
                comment: csv.comment,
            }),
            Dialect::Ndjson => None,
        };
        Self { marks, at: Field::Record, line: 0 }
    }

    /// The line of the quote that is open.
    pub(super) fn unclosed(&self) -> Option<u64> {
        matches!(self.at, Field::Quoted | Field::Escaped).then_some(self.line)
    }

    /// Takes note of `bytes`, the first of which is on `line`; returns where the last record ends in them.
    pub(super) fn pass(&mut self, bytes: &[u8], mut line: u64) -> Option<usize> {
        let Some(marks) = self.marks else {
            return memrchr(b'\n', bytes).map(|end| end + 1);
        };
        let mut ended = None;
        for (place, &byte) in bytes.iter().enumerate() {
            let is_quote = byte == marks.quote;
            self.at = match (self.at, byte) {
                (Field::Quoted, _) if is_quote => Field::Closed,
                (Field::Quoted, _) if marks.escape == Some(byte) => Field::Escaped,
                (Field::Quoted | Field::Escaped, _) => Field::Quoted,
                (Field::Closed, _) if is_quote => Field::Quoted,
                (Field::Comment, b'\n') => Field::Record,
                (Field::Comment, _) => Field::Comment,
                (_, b'\n' | b'\r') => Field::Record,
                (Field::Record, _) if marks.comment == Some(byte) => Field::Comment,
                (Field::Record | Field::Start, _) if is_quote => {
                    self.line = line;
                    Field::Quoted
                }
                (_, byte) if byte == marks.delimiter => Field::Start,
                _ => Field::Plain,
            };
            line += u64::from(byte == b'\n');
            if byte == b'\n' && self.at == Field::Record {
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
