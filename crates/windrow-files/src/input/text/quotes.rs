//! Ends of CSV records, from quotes and comments as the decoder interprets them.
//!
//! ```text
//!  1,"a ""b"" c",x          between quotes only a quote is looked for, outside of them only a quote and line ends
//!    |   ||  ||  |
//!    open    ..  close      a quote in the middle of a field, as in 5'10", is a byte like any other
//! ```
//! With a comment byte, text outside of quotes is scanned byte by byte.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

use crate::input::options::csv::CsvOptions;

/// The position within a CSV field: state of the decoder that the decoder does not expose.
#[derive(Clone, Debug)]
pub(super) struct Quotes {
    marks: Marks,
    at: Field,
}

/// The special bytes.
#[derive(Clone, Copy, Debug)]
struct Marks {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    /// At the possible start of a record.
    Record,
    Comment,
    Start,
    Plain,
    Quoted,
    /// After an escape within quotes.
    Escaped,
    /// After a quote that closes the field, or is the first of two.
    Closed,
}

/// Ends of the records in a text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Ends {
    /// Positions after the first record, and after the last.
    pub(super) first: Option<usize>,
    pub(super) last: Option<usize>,
    /// Number of records.
    pub(super) count: usize,
    /// The longest record.
    pub(super) longest: Range<usize>,
    /// Position of the last opening quote.
    pub(super) quote: Option<usize>,
}

impl Ends {
    /// Adds a record with its line end at `place`.
    fn push(&mut self, place: usize) {
        let record = self.last.unwrap_or(0)..place + 1;
        self.first.get_or_insert(record.end);
        self.last = Some(record.end);
        self.count += 1;
        if record.len() > self.longest.len() {
            self.longest = record;
        }
    }
}

impl Quotes {
    pub(super) fn new(csv: &CsvOptions) -> Self {
        let marks = Marks {
            delimiter: csv.separator(),
            quote: csv.quote_byte(),
            escape: csv.escape,
            comment: csv.comment,
        };
        Self { marks, at: Field::Record }
    }

    /// Moves to the possible start of a record.
    pub(super) fn restart(&mut self) {
        self.at = Field::Record;
    }

    /// Returns whether a quote is open.
    pub(super) fn are_open(&self) -> bool {
        matches!(self.at, Field::Quoted | Field::Escaped)
    }

    /// Scans `bytes` up to the end of record number `most`. After a line end, the state is the
    /// possible start of a record.
    pub(super) fn pass(&mut self, bytes: &[u8], most: usize) -> Ends {
        let mut ends = Ends::default();
        let mut place = 0;
        while place < bytes.len() && ends.count < most {
            place = self.advance(bytes, place, most, &mut ends);
        }
        ends
    }

    /// Scans `bytes`, and calls `opened` with the position of each opening quote.
    pub(super) fn each_quoted(&mut self, bytes: &[u8], mut opened: impl FnMut(usize)) {
        let mut ends = Ends::default();
        let mut place = 0;
        while place < bytes.len() {
            place = self.advance(bytes, place, usize::MAX, &mut ends);
            ends.quote.take().into_iter().for_each(&mut opened);
        }
    }

    /// Scans from `place`, at most to the next quote; returns the new position.
    fn advance(&mut self, bytes: &[u8], place: usize, most: usize, ends: &mut Ends) -> usize {
        match self.at {
            Field::Quoted => self.within(bytes, place),
            _ if self.marks.comment.is_some() => self.step(bytes, place, ends),
            Field::Escaped | Field::Closed | Field::Comment => self.step(bytes, place, ends),
            Field::Record | Field::Start | Field::Plain => self.outside(bytes, place, most, ends),
        }
    }

    /// Scans from `place` between quotes, to the position after a possible closing quote.
    fn within(&mut self, bytes: &[u8], place: usize) -> usize {
        let Marks { quote, escape, .. } = self.marks;
        let found = match escape {
            Some(escape) => memchr2(quote, escape, &bytes[place..]),
            None => memchr(quote, &bytes[place..]),
        };
        let Some(found) = found else { return bytes.len() };
        let is_quote = bytes[place + found] == quote;
        self.at = if is_quote { Field::Closed } else { Field::Escaped };
        place + found + 1
    }

    /// Scans from `place` outside of quotes, to the position after the next quote.
    fn outside(&mut self, bytes: &[u8], place: usize, most: usize, ends: &mut Ends) -> usize {
        let quote = memchr(self.marks.quote, &bytes[place..]).map(|found| place + found);
        let plain = &bytes[place..quote.unwrap_or(bytes.len())];
        for end in memchr_iter(b'\n', plain) {
            ends.push(place + end);
            if ends.count == most {
                self.at = Field::Record;
                return place + end + 1;
            }
        }
        self.at = match plain.last() {
            None => self.at,
            Some(b'\n' | b'\r') => Field::Record,
            Some(byte) if *byte == self.marks.delimiter => Field::Start,
            Some(_) => Field::Plain,
        };
        quote.map_or(bytes.len(), |quote| self.step(bytes, quote, ends))
    }

    /// Scans the byte at `place`.
    fn step(&mut self, bytes: &[u8], place: usize, ends: &mut Ends) -> usize {
        let (marks, byte) = (self.marks, bytes[place]);
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
                ends.quote = Some(place);
                Field::Quoted
            }
            (_, byte) if byte == marks.delimiter => Field::Start,
            _ => Field::Plain,
        };
        if byte == b'\n' && self.at == Field::Record {
            ends.push(place);
        }
        place + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scans byte by byte.
    fn slowly(mut quotes: Quotes, bytes: &[u8], most: usize) -> (Ends, bool) {
        let mut ends = Ends::default();
        for place in 0..bytes.len() {
            quotes.step(bytes, place, &mut ends);
            if ends.count == most {
                break;
            }
        }
        (ends, quotes.are_open())
    }

    #[test]
    fn leaps_end_where_steps_do() {
        let csv = CsvOptions::default;
        let dialects = [
            csv(),
            csv().escape('\\').unwrap(),
            csv().comment('#').unwrap(),
            csv().quote(None).unwrap(),
        ];
        let alphabet = *b"a,\"\n\r\\#";
        for csv in dialects {
            // All texts of six bytes.
            for number in 0..alphabet.len().pow(6) {
                let text = [0, 1, 2, 3, 4, 5]
                    .map(|digit| alphabet[number / alphabet.len().pow(digit) % alphabet.len()]);
                for most in [1, usize::MAX] {
                    let mut quotes = Quotes::new(&csv);
                    let ends = quotes.pass(&text, most);
                    assert_eq!(
                        (ends, quotes.are_open()),
                        slowly(Quotes::new(&csv), &text, most),
                        "{text:?}"
                    );
                }
            }
        }
    }
}
