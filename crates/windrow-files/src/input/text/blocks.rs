//! Blocks of text that can be decoded independently, since each block ends with a record.
//!
//! ```text
//!  read   |-- record -- record -- rec|ord -- record -- ...
//!  block   text of the first         | rest: the head of the next
//!
//!  a record longer than a block:  |rec...|...|...ord| -- record -- |
//!                          begins  yes    no  no     yes
//! ```
//! CSV determines the ends of records. NDJSON does not: a record may continue after a line end,
//! even after a brace at a line end. A block of NDJSON is therefore cut between two probable
//! objects, or else at a line end, and the decoder of the block detects a wrong cut.
//!
//! Invariant: the blocks are the text, in order, and the cuts depend on the text alone.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::Result;
use crate::input::charset::newlines;
use crate::input::source::origin::{Origin, Stream};
use crate::watch::Watch;

use super::dialect::{BUFFER, Dialect};
use super::quoted_nulls::QuotedNulls;
use super::quotes::{Ends, Quotes};

/// The byte order mark, as UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the length of the byte order mark at the head of a file. The parser of CSV skips the
/// mark.
pub(super) fn mark(text: &[u8], start: Position) -> usize {
    if start.offset == 0 && text.starts_with(MARK) { MARK.len() } else { 0 }
}

/// A position in the text: byte offset and line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) offset: u64,
    pub(super) line: u64,
}

impl Position {
    pub(super) const START: Self = Self { offset: 0, line: 1 };

    /// Returns the position after `bytes`.
    pub(super) fn behind(self, bytes: &[u8]) -> Self {
        Self { offset: self.offset + bytes.len() as u64, line: self.line + newlines(bytes) }
    }
}

/// A block of a file's text.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) text: Vec<u8>,
    pub(super) start: Position,
    /// State of a CSV parser at the start of the block, until quoted nulls are marked.
    pub(super) quotes: Option<Quotes>,
    /// Whether a record begins with the block, as far as the cut knows.
    pub(super) begins: bool,
    /// Whether the last record ends with the block, as far as the cut knows.
    pub(super) ends: bool,
    /// Whether the input ends with the block.
    pub(super) is_last: bool,
    /// Line of a quote that is open at the end of the input.
    pub(super) unclosed: Option<u64>,
}

/// Reusable buffers of decoded blocks.
#[derive(Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// Returns a buffer of `bytes` bytes with arbitrary content.
    fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = buffers.pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    pub(super) fn give_back(&self, buffer: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Maximum size of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) bytes: usize,
    /// Records of CSV, lines of NDJSON.
    pub(crate) records: usize,
}

/// Cuts the text of one file.
pub(super) struct Blocks {
    origin: Arc<Origin>,
    dialect: Dialect,
    text: Stream,
    end: End,
    most: Most,
    buffers: Buffers,
    watch: Watch,
    /// Text after the last block, and its position.
    rest: Vec<u8>,
    place: Position,
    /// Whether a record begins at `place`, and the start of the current record.
    begins: bool,
    record: Position,
    /// For CSV: the parser state; the line of the last opening quote; whether the column names are
    /// yet to come, and whether a comment before the column names continues.
    quotes: Option<Quotes>,
    quote: u64,
    /// Maximum bytes of a quoted null, including one byte after its closing quote.
    reach: usize,
    header: bool,
    in_comment: bool,
    /// A block that waits until other blocks have released memory.
    ready: Option<Block>,
    is_done: bool,
}

/// State of the input after the text read so far.
enum End {
    More,
    Nothing,
    Fault(io::Error),
}

/// The result of a call of `next`.
pub(super) enum Next {
    Block(Block),
    /// The next block has a record longer than all earlier records: other holders must release
    /// memory first.
    Room,
}

/// The end of a block at the end of a record, if any, and the longest record in the block.
struct Cut {
    end: Option<usize>,
    longest: Range<usize>,
    /// End of the block if no record ends in it.
    else_at: usize,
}

impl Blocks {
    pub(super) fn new(
        origin: &Arc<Origin>,
        dialect: &Dialect,
        most: Most,
        buffers: &Buffers,
        watch: &Watch,
    ) -> Result<Self> {
        let (quotes, header, nulls) = match dialect {
            Dialect::Csv(csv) => (Some(Quotes::new(csv)), csv.has_header, QuotedNulls::of(csv)),
            Dialect::Ndjson => (None, false, None),
        };
        Ok(Self {
            text: dialect.stream(origin.whole()?, 0),
            end: End::More,
            origin: Arc::clone(origin),
            dialect: dialect.clone(),
            most,
            buffers: buffers.clone(),
            watch: watch.clone(),
            rest: Vec::new(),
            place: Position::START,
            begins: true,
            record: Position::START,
            quotes,
            quote: 0,
            reach: nulls.map_or(0, |nulls| nulls.reach()),
            header,
            in_comment: false,
            ready: None,
            is_done: false,
        })
    }

    /// Returns the next block; `None` after the last.
    ///
    /// # Errors
    /// A fault of the input, after all records before the fault were returned in blocks; or a
    /// record that is too long for the job.
    pub(super) fn next(&mut self) -> Result<Option<Next>> {
        if let Some(block) = self.ready.take() {
            return Ok(Some(Next::Block(block)));
        }
        if self.is_done {
            return Ok(None);
        }
        let next = self.cut();
        self.is_done |= next.is_err();
        next.map(Some)
    }

    fn cut(&mut self) -> Result<Next> {
        let mut text = self.fill();
        let quotes = self.quotes.clone();
        let Cut { end, longest, else_at } = match self.quotes.clone() {
            Some(quotes) => self.cut_csv(&text, quotes),
            None => self.cut_ndjson(&text),
        };
        if let (None, End::Fault(cause)) = (end, &self.end) {
            return Err(self.origin.unreadable(cause));
        }
        let is_longer = match end {
            Some(_) => self.admit(&text, &longest)?,
            None => self.admit_begun(&text)?,
        };
        let at = end.unwrap_or(else_at);
        self.rest.clear();
        self.rest.extend_from_slice(&text[at..]);
        text.truncate(at);
        self.header = self.header && self.is_lead(&text);
        self.is_done = matches!(self.end, End::Nothing) && self.rest.is_empty();
        let is_open = self.is_done && self.quotes.as_ref().is_some_and(Quotes::are_open);
        let behind = self.place.behind(&text);
        let block = Block {
            start: self.place,
            quotes,
            begins: self.begins,
            ends: end.is_some() && !self.header,
            is_last: self.is_done,
            unclosed: is_open.then_some(self.quote),
            text,
        };
        self.place = behind;
        self.begins = block.ends;
        if end.is_some() {
            self.record = behind;
        }
        Ok(match is_longer {
            true => {
                self.ready = Some(block);
                Next::Room
            }
            false => Next::Block(block),
        })
    }

    /// Returns the remaining text, followed by new text.
    fn fill(&mut self) -> Vec<u8> {
        // The parser of CSV looks for a mark in its first bytes. A block must be longer than
        // `reach`, or a cut before a quoted null could be at its start.
        let least = MARK.len().max(self.reach + 1);
        let mut text = self.buffers.take(self.most.bytes.max(least));
        text[..self.rest.len()].copy_from_slice(&self.rest);
        let mut filled = self.rest.len();
        while filled < text.len() && matches!(self.end, End::More) {
            match self.text.read(&mut text[filled..]) {
                Ok(0) => self.end = End::Nothing,
                Ok(read) => filled += read,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => self.end = End::Fault(cause),
            }
        }
        text.truncate(filled);
        text
    }

    fn cut_csv(&mut self, text: &[u8], mut quotes: Quotes) -> Cut {
        let mark = mark(text, self.place);
        // Other threads wait for the rest of a begun record, so the block ends with this record.
        let most = if self.begins || self.header { self.most.records } else { 1 };
        let before = quotes.clone();
        let Ends { last, longest, quote, .. } = quotes.pass(&text[mark..], most);
        let mut else_at = text.len();
        if let (None, Some(quote), End::More) = (last, quote, &self.end)
            && text.len() - (mark + quote) <= self.reach
        {
            // The quoted field may continue in the next block.
            else_at = mark + quote;
            quotes = before;
            quotes.pass(&text[mark..else_at], most);
        } else if let (None, Some(quote)) = (last, quote) {
            self.quote = self.place.line + newlines(&text[..mark + quote]);
        }
        // Text after the last record is parsed again in the next block.
        if last.is_none() || self.quotes.is_none() {
            self.quotes = Some(quotes);
        } else if let Some(quotes) = &mut self.quotes {
            quotes.restart();
        }
        let longest = mark + longest.start..mark + longest.end;
        Cut { end: last.map(|last| mark + last), longest, else_at }
    }

    fn cut_ndjson(&self, text: &[u8]) -> Cut {
        let end = match self.begins {
            false => memchr(b'\n', text).map(|end| end + 1),
            true => {
                let last = memchr_iter(b'\n', text).nth(self.most.records - 1);
                let text = &text[..last.map_or(text.len(), |last| last + 1)];
                between_objects(text).or_else(|| memrchr(b'\n', text).map(|end| end + 1))
            }
        };
        let mut longest = 0..0;
        if self.watch.longest.planned() < u64::MAX {
            let mut start = 0;
            for line in memchr_iter(b'\n', &text[..end.unwrap_or(0)]) {
                let line = std::mem::replace(&mut start, line + 1)..line + 1;
                if line.len() > longest.len() {
                    longest = line;
                }
            }
        }
        Cut { end, longest, else_at: text.len() }
    }

    /// Reserves memory for the longest record in `text`. Returns true if other holders must release
    /// memory first.
    fn admit(&self, text: &[u8], longest: &Range<usize>) -> Result<bool> {
        let begun = self.place.offset - self.record.offset;
        let bytes = match longest.start {
            0 => begun + longest.len() as u64,
            _ => longest.len() as u64,
        };
        let start = || match longest.start {
            0 => self.record,
            start => self.place.behind(&text[..start]),
        };
        self.admit_record(bytes, start)
    }

    /// Reserves memory for the current record, which does not end in `text`.
    fn admit_begun(&self, text: &[u8]) -> Result<bool> {
        let behind = self.place.offset + text.len() as u64;
        let so_far = behind - self.record.offset;
        if so_far <= self.watch.longest.planned() {
            return Ok(false);
        }
        let rest = match self.end {
            End::Nothing | End::Fault(_) => 0,
            // A stream cannot be read ahead, and a second decompression needs memory: assume that
            // half of the record is read.
            End::More => {
                let again = self.origin.unpacking == 0;
                let rest = again.then(|| self.origin.again_from(behind)).flatten();
                rest.map_or(so_far, |text| self.rest_of_record(text))
            }
        };
        self.admit_record(so_far + rest, || self.record)
    }

    fn admit_record(&self, bytes: u64, start: impl Fn() -> Position) -> Result<bool> {
        self.watch.longest.admit(bytes).map_err(|need| {
            let line = start().line;
            need.error(self.origin.name(), &format!("the row on line {line}")).at_line(line)
        })
    }

    /// Returns how many bytes of `text`, the text after the block, belong to the current record.
    fn rest_of_record(&self, text: Stream) -> u64 {
        let mut text = BufReader::with_capacity(BUFFER, text);
        let (mut quotes, mut rest) = (self.quotes.clone(), 0);
        loop {
            // A later read reports the fault.
            let Ok(bytes @ [_, ..]) = text.fill_buf() else { return rest };
            let end = match &mut quotes {
                Some(quotes) => quotes.pass(bytes, 1).first,
                None => memchr(b'\n', bytes).map(|end| end + 1),
            };
            if let Some(end) = end {
                return rest + end as u64;
            }
            let length = bytes.len();
            rest += length as u64;
            text.consume(length);
        }
    }

    /// Returns whether `text`, the next block, lies entirely before the column names.
    fn is_lead(&mut self, text: &[u8]) -> bool {
        let text = &text[mark(text, self.place)..];
        self.dialect.lead(text, &mut self.in_comment) == text.len()
    }
}

/// Returns the position after the last line end between a closing and an opening brace: in JSON, a
/// position between two objects.
fn between_objects(text: &[u8]) -> Option<usize> {
    let (mut next, mut end) = (b'{', None);
    for (place, &byte) in text.iter().enumerate().rev() {
        match byte {
            b'\n' if next == b'{' => end = end.or(Some(place + 1)),
            b'\n' | b'\r' | b' ' | b'\t' => {}
            b'}' if end.is_some() => return end,
            byte => (next, end) = (byte, None),
        }
    }
    None
}
