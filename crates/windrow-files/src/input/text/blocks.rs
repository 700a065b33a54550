//! Text as blocks that can be decoded apart from each other, since each ends where a record does.
//!
//! ```text
//!  read   |-- record -- record -- rec|ord -- record -- ...
//!  block   text of the first         | rest: the head of the next
//!
//!  a record longer than a block:  |rec...|...|...ord| -- record -- |
//!                          begins  yes    no  no     yes
//! ```
//! Of CSV it is known where records end. Of NDJSON it is not: a record may go on behind a line, even behind one that
//! ends in a brace. So a block is cut between what looks like two objects, or else behind a line, and who decodes it
//! finds out whether that was right.
//!
//! Invariant: the blocks are the text, in its order, and the cuts are a function of it alone.

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

/// Bytes of the mark that `text` begins with, if it is the head of a file: the parser of CSV passes over it.
pub(super) fn mark(text: &[u8], start: Position) -> usize {
    if start.offset == 0 && text.starts_with(MARK) { MARK.len() } else { 0 }
}

/// A place in the text: bytes before it, and the line it is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) offset: u64,
    pub(super) line: u64,
}

impl Position {
    pub(super) const START: Self = Self { offset: 0, line: 1 };

    /// The place behind `bytes`.
    pub(super) fn behind(self, bytes: &[u8]) -> Self {
        Self { offset: self.offset + bytes.len() as u64, line: self.line + newlines(bytes) }
    }
}

/// Some text of a file.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) text: Vec<u8>,
    pub(super) start: Position,
    /// Where a parser of CSV is in front of it, until quoted fields that stand for null were marked.
    pub(super) quotes: Option<Quotes>,
    /// Whether a record begins with it, as far as the cut knows.
    pub(super) begins: bool,
    /// Whether the last record ends with it, as far as the cut knows.
    pub(super) ends: bool,
    /// Whether the input ends with it.
    pub(super) is_last: bool,
    /// The line of a quote that is open at the end of the input.
    pub(super) unclosed: Option<u64>,
}

/// Buffers of blocks that were decoded.
#[derive(Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// A buffer of `bytes` bytes, whatever is in it.
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

/// The most that a block has.
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
    /// Text behind the last block, and where it begins.
    rest: Vec<u8>,
    place: Position,
    /// Whether a record begins there, and where the one did that the text is in.
    begins: bool,
    record: Position,
    /// Of CSV; the line of the quote that was opened last; whether the names of the columns are yet to come, and a
    /// comment in front of them goes on.
    quotes: Option<Quotes>,
    quote: u64,
    /// Bytes of a quoted field that stands for null, at the most, and of the one behind it.
    reach: usize,
    header: bool,
    in_comment: bool,
    /// A block for which others make room.
    ready: Option<Block>,
    is_done: bool,
}

/// What there is behind the text that was read.
enum End {
    More,
    Nothing,
    Fault(io::Error),
}

/// What there is next.
pub(super) enum Next {
    Block(Block),
    /// A block that has a record longer than all before it: what others hold has to leave first.
    Room,
}

/// Where a block is to end, if a record does, and the longest record in it.
struct Cut {
    end: Option<usize>,
    longest: Range<usize>,
    /// Where it ends if no record does.
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

    /// The next block; none behind the last.
    ///
    /// # Errors
    /// If the text cannot be read on, once all records before that were in blocks; or a record is too long for the job.
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

    /// The text that is left, and what can be read behind it.
    fn fill(&mut self) -> Vec<u8> {
        // The parser of CSV looks for a mark in the first bytes that it gets; and what is within reach of the end is not all.
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
        // The rest of a record that has begun is decoded while others wait.
        let most = if self.begins || self.header { self.most.records } else { 1 };
        let before = quotes.clone();
        let Ends { last, longest, quote, .. } = quotes.pass(&text[mark..], most);
        let mut else_at = text.len();
        if let (None, Some(quote), End::More) = (last, quote, &self.end)
            && text.len() - (mark + quote) <= self.reach
        {
            // What these quotes are around may go on in the next block.
            else_at = mark + quote;
            quotes = before;
            quotes.pass(&text[mark..else_at], most);
        } else if let (None, Some(quote)) = (last, quote) {
            self.quote = self.place.line + newlines(&text[..mark + quote]);
        }
        // What is behind the last record is passed once more, from there.
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

    /// Makes room for the longest record in `text`; true if what others hold has to leave first.
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

    /// The same for the record that `text` is in and that does not end in it.
    fn admit_begun(&self, text: &[u8]) -> Result<bool> {
        let behind = self.place.offset + text.len() as u64;
        let so_far = behind - self.record.offset;
        if so_far <= self.watch.longest.planned() {
            return Ok(false);
        }
        let rest = match self.end {
            End::Nothing | End::Fault(_) => 0,
            // Of what passes once, or would be decompressed beside itself, it is taken to be half.
            End::More => {
                let again = self.origin.unpacking_bytes() == 0;
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

    /// Bytes of the record that the text is in, in `text` behind it.
    fn rest_of_record(&self, text: Stream) -> u64 {
        let mut text = BufReader::with_capacity(BUFFER, text);
        let (mut quotes, mut rest) = (self.quotes.clone(), 0);
        loop {
            // A fault is told when it is come to.
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

    /// Whether `text`, which is next, stands in front of the names of the columns.
    fn is_lead(&mut self, text: &[u8]) -> bool {
        let text = &text[mark(text, self.place)..];
        self.dialect.lead(text, &mut self.in_comment) == text.len()
    }
}

/// Behind the last line end that has a closing brace before it and an opening one behind it: in JSON that is between
/// two objects.
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
