//! What CSV and NDJSON have in common: batches from a stream of text, and where in it a fault is.
//!
//! The decoders tell little of where they failed: the number of a record, or nothing. A line is what
//! an editor goes to. So the place where each batch starts is kept, and after an error the batch is
//! read again, a record at a time, counting lines, until the same error comes back:
//!
//! ```text
//!  offset, line        ..batch that fails..              next batch
//!     |-- record -- record -- RECORD (line found here) -- record --|
//! ```
//! A stream that passes once cannot be read again: its message says between which lines to look.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use memchr::memchr_iter;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::longest::Need;
use crate::watch::Watch;

use super::dialect::{BUFFER, Columns, Decoder, Dialect};
use super::json_text;
use super::origin::{Faults, Origin, Stream};
use super::quotes::Quotes;
use super::{Batches, Content, CsvOptions, Opened, Span};

/// Text that is decoded at a time.
const BATCH_BYTES: usize = 1 << 20;

/// What is said of a row of another length.
const FIELDS: &str = "incorrect number of fields";

/// What a decoder keeps of every field beside its text: where it ends, and a value of fixed width.
const FIELD_PLACES: usize = 40;

/// Times that a long line is there while it is decoded: as it was read, its values, and these in an array.
const COPIES: usize = 3;

/// A text file whose columns are known.
pub(super) struct TextFile {
    pub(super) origin: Arc<Origin>,
    pub(super) dialect: Dialect,
    pub(super) columns: Columns,
    /// Bytes of a line of the sample, on average, and of the longest.
    pub(super) line_bytes: usize,
    pub(super) longest: usize,
    /// Why there are no columns, where there is no text.
    pub(super) lacks: Option<&'static str>,
}

impl TextFile {
    /// The file as one unit.
    pub(super) fn opened(self, batch_rows: usize) -> Opened {
        let fields = self.columns.schema.fields().len().max(1);
        let batch_rows = self.batch_rows(batch_rows);
        // Buffers of many pages grow in place, and what is not touched is not there.
        let copies = if self.line_bytes >= BATCH_BYTES { COPIES } else { 4 };
        // A line that is longer than a batch has one to itself, and to those before it.
        let longer = COPIES * self.longest.saturating_sub(batch_rows * self.line_bytes);
        Opened {
            format: match self.dialect {
                Dialect::Csv(_) => Format::Csv,
                Dialect::Ndjson => Format::Ndjson,
            },
            schema: self.columns.schema.clone(),
            bytes: self.origin.len(),
            rows: None,
            spans: match self.lacks {
                None => vec![Span { part: 0..1, first_row: 0, rows: None }],
                Some(_) => Vec::new(),
            },
            // The text of a batch and the values made of it, which grow by doubling; their places.
            reader_bytes: 2 * BUFFER
                + self.origin.stream_bytes()
                + batch_rows * (copies * self.line_bytes + fields * FIELD_PLACES)
                + longer,
            row_bytes: self.line_bytes,
            longest_row: self.longest,
            copies: COPIES,
            content: Box::new(self),
        }
    }

    /// The rows of a batch: fewer where lines are long.
    fn batch_rows(&self, most: usize) -> usize {
        most.min(BATCH_BYTES / self.line_bytes.max(1)).max(1)
    }
}

/// The mean length of the lines of `sample`, the head of `origin`, from byte `first` on. The last of them
/// counts with all its bytes, if they can be read again.
pub(super) fn line_bytes(origin: &Origin, sample: &[u8], first: usize) -> usize {
    let lines = usize::try_from(newlines(&sample[first..])).unwrap_or(0);
    let bytes = sample.len() - first;
    match rest_of_line(origin, sample) {
        0 => bytes / lines.max(1),
        rest => (bytes + rest) / (lines + 1),
    }
}

/// The length of the longest line in `sample`, the head of `origin`.
pub(super) fn longest_line(origin: &Origin, sample: &[u8]) -> usize {
    let ends = memchr_iter(b'\n', sample).chain([sample.len() + rest_of_line(origin, sample)]);
    let mut start = 0;
    let lines = ends.map(|end| end - std::mem::replace(&mut start, end));
    lines.max().unwrap_or(0)
}

/// Bytes of the line that `sample`, the head of `origin`, breaks off in; none if they pass once.
pub(super) fn rest_of_line(origin: &Origin, sample: &[u8]) -> usize {
    origin.again_from(sample.len() as u64).map_or(0, |rest| {
        // A fault is told when the file is read.
        BufReader::with_capacity(BUFFER, rest).skip_until(b'\n').unwrap_or(0)
    })
}

impl Content for TextFile {
    fn name(&self) -> &Arc<str> {
        self.origin.name()
    }

    fn faults(&self) -> Faults {
        self.origin.faults()
    }

    fn csv(&self) -> Option<&CsvOptions> {
        match &self.dialect {
            Dialect::Csv(csv) => Some(csv),
            Dialect::Ndjson => None,
        }
    }

    fn lacks(&self) -> Option<&'static str> {
        self.lacks
    }

    fn read(&self, _: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Batches> {
        Ok(Box::new(TextBatches {
            text: self.dialect.open(self.origin.whole()?, 0),
            quotes: Quotes::new(&self.dialect),
            decoder: self
                .columns
                .decoder(&self.dialect, self.batch_rows(batch_rows))
                .map_err(|cause| self.origin.error(tidy(&cause, &self.columns.schema)))?,
            origin: self.origin.clone(),
            dialect: self.dialect.clone(),
            columns: self.columns.clone(),
            place: Place { offset: 0, line: 1 },
            start: None,
            record: Place { offset: 0, line: 1 },
            watch: watch.clone(),
        }))
    }
}

/// A place in the text: bytes before it, and the line it is on.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    line: u64,
}

impl Place {
    fn pass(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.line += newlines(bytes);
    }
}

pub(super) fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

struct TextBatches {
    origin: Arc<Origin>,
    dialect: Dialect,
    columns: Columns,
    text: BufReader<Stream>,
    decoder: Decoder,
    quotes: Quotes,
    place: Place,
    /// Where the batch begins that is being decoded, and the record that the text is in.
    start: Option<Place>,
    record: Place,
    watch: Watch,
}

/// Why there is no batch.
enum Fault {
    Text(ArrowError),
    /// A record is too long for the job.
    Long(Need),
}

impl<E: Into<ArrowError>> From<E> for Fault {
    fn from(fault: E) -> Self {
        Self::Text(fault.into())
    }
}

impl Iterator for TextBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = *self.start.get_or_insert(self.place);
        let batch = self.batch(start.offset).map_err(|fault| match fault {
            Fault::Text(fault) => self.explain(&fault, start),
            Fault::Long(need) => {
                let line = self.record.line;
                need.error(self.origin.name(), &format!("the row on line {line}")).at_line(line)
            }
        });
        batch.transpose()
    }
}

impl TextBatches {
    /// The next batch; one without rows where a long record comes next.
    fn batch(&mut self, start: u64) -> Result<Option<RecordBatch>, Fault> {
        loop {
            if self.makes_room()? {
                return Ok(Some(RecordBatch::new_empty(self.columns.schema.clone())));
            }
            let mut bytes = self.text.fill_buf()?;
            if bytes.is_empty()
                && let Some(line) = self.quotes.unclosed()
            {
                // The decoder takes what was cut off for the last field.
                let what = format!("the quote that opens on line {line} is never closed");
                return Err(ArrowError::CsvError(what).into());
            }
            // Where lines are longer than those of the sample a batch ends by its bytes.
            let enough = self.place.offset - start >= BATCH_BYTES as u64;
            if enough && let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                bytes = &bytes[..=end];
            }
            let step = self.decoder.decode(bytes)?;
            let taken = &bytes[..step.taken];
            let ended = self.quotes.pass(taken, self.place.line);
            if let Some(end) = ended {
                self.record = self.place;
                self.record.pass(&taken[..end]);
            }
            self.place.pass(taken);
            let whole = enough && ended == Some(taken.len());
            self.text.consume(step.taken);
            if step.done {
                self.start = None;
                return Ok(self.decoder.flush()?);
            }
            if whole && !self.decoder.is_within_record() {
                // There is none if all of it was blank.
                if let Some(batch) = self.decoder.flush()? {
                    self.start = None;
                    return Ok(Some(batch));
                }
            }
        }
    }

    /// Makes room for the record that the text is in, if it is a long one; true if what others hold has to leave
    /// first.
    fn makes_room(&self) -> Result<bool, Fault> {
        let so_far = self.place.offset - self.record.offset;
        if so_far <= self.watch.longest.planned() {
            return Ok(false);
        }
        // Of what passes once, or would be decompressed beside itself, it is taken to be half.
        let again = self.origin.unpacking_bytes() == 0;
        let rest = again.then(|| self.origin.again_from(self.place.offset)).flatten();
        let rest = rest.map_or(so_far, |text| self.rest_of_record(text));
        self.watch.longest.admit(so_far + rest).map_err(Fault::Long)
    }

    /// Bytes of the record that the text is in, in `text` behind it.
    fn rest_of_record(&self, text: Stream) -> u64 {
        let mut text = BufReader::with_capacity(BUFFER, text);
        let (mut quotes, mut rest) = (self.quotes.clone(), 0);
        loop {
            // A fault is told when it is come to.
            let Ok(bytes @ [_, ..]) = text.fill_buf() else { return rest };
            if let Some(end) = quotes.first_end(bytes) {
                return rest + end as u64;
            }
            let length = bytes.len();
            rest += length as u64;
            text.consume(length);
        }
    }

    /// The error for a `fault` in the batch that starts at `start`.
    fn explain(&self, fault: &ArrowError, start: Place) -> Error {
        if let ArrowError::IoError(_, cause) = fault {
            return self.origin.unreadable(cause);
        }
        let again = self.origin.again_from(start.offset);
        let found = again.and_then(|text| self.find(text, start));
        let number = found.as_ref().map(|(line, _)| *line);
        let (line, what) = match found {
            Some((line, what)) => (format!("line {line}"), what),
            None => (format!("line {} or later", start.line), tidy(fault, &self.columns.schema)),
        };
        let advice = if what.starts_with(FIELDS) {
            "correct it: a field that holds the separator must be in quotes, and what stands in front of \
             the line with the names must go"
        } else if self.columns.can_be_named(&what) {
            "correct it, or name the types of the columns with `schema`"
        } else {
            "correct it, or have a row that is like it among the first"
        };
        let told = number.and_then(|number| json_text::fault(&self.line(start, number)?));
        let error = self.origin.error(match told {
            Some(what) => format!("{line}: {what}"),
            None => format!("{line}: {what}; {advice}"),
        });
        number.map_or(error.clone(), |line| error.at_line(line))
    }

    /// The head of the line of this number in NDJSON, behind `start`.
    fn line(&self, start: Place, number: u64) -> Option<Vec<u8>> {
        if let Dialect::Csv(_) = self.dialect {
            return None;
        }
        let mut text = self.dialect.open(self.origin.again_from(start.offset)?, start.offset);
        for _ in start.line..number {
            text.skip_until(b'\n').ok()?;
        }
        let mut line = Vec::new();
        text.take(BUFFER as u64).read_until(b'\n', &mut line).ok()?;
        Some(line)
    }

    /// Reads again from `place` and returns the line of the first record that fails, and why.
    fn find(&self, text: Stream, mut place: Place) -> Option<(u64, String)> {
        let mut text = self.dialect.open(text, place.offset);
        let mut dialect = self.dialect.clone();
        if let Dialect::Csv(options) = &mut dialect {
            options.has_header &= place.offset == 0;
        }
        let mut decoder = self.columns.decoder(&dialect, 1).ok()?;
        loop {
            // The line of the record, once a byte of it was seen.
            let (mut line, mut in_comment) = (None, false);
            loop {
                let bytes = text.fill_buf().ok()?;
                let lead = line.map_or_else(|| dialect.lead(bytes, &mut in_comment), |_| 0);
                let at = line.unwrap_or(place.line + newlines(&bytes[..lead]));
                if lead < bytes.len() {
                    line = Some(at);
                }
                let step = match decoder.decode(bytes) {
                    Ok(step) => step,
                    Err(fault) => return Some((at, tidy(&fault, &self.columns.schema))),
                };
                place.pass(&bytes[..step.taken]);
                // A decoder that stops short of its bytes without a record was at the header.
                if !step.done && step.taken < bytes.len() {
                    line = None;
                }
                text.consume(step.taken);
                if step.done {
                    break;
                }
            }
            match decoder.flush() {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(fault) => {
                    return Some((line.unwrap_or(place.line), tidy(&fault, &self.columns.schema)));
                }
            }
        }
    }
}

/// What a decoder says, with columns by name and without the numbers that count from the wrong place.
fn tidy(fault: &ArrowError, schema: &SchemaRef) -> String {
    let text = match fault {
        ArrowError::CsvError(text)
        | ArrowError::JsonError(text)
        | ArrowError::ParseError(text)
        | ArrowError::InvalidArgumentError(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some((_, counts)) = text
        .strip_prefix("incorrect number of fields for line ")
        .and_then(|rest| rest.split_once(", "))
    {
        return format!("{FIELDS}: {counts}");
    }
    if text.starts_with("Encountered invalid UTF-8 data") {
        let field = text
            .rsplit_once("field ")
            .and_then(|(_, field)| field.parse::<usize>().ok())
            .and_then(|field| schema.fields().get(field.checked_sub(1)?));
        return match field {
            Some(field) => format!("column '{}' is not valid UTF-8", field.name()),
            None => "not valid UTF-8".into(),
        };
    }
    // What is parsed after the decoder names its column, and may hold any words.
    if text.starts_with("column '") {
        return text;
    }
    let (text, _row) = text.split_once(" at line ").unwrap_or((&text, ""));
    if let Some((what, field)) = text.rsplit_once(" for column ")
        && let Some(field) = field.parse().ok().and_then(|i: usize| schema.fields().get(i))
    {
        return format!("{what} for column '{}'", field.name());
    }
    text.to_string()
}
