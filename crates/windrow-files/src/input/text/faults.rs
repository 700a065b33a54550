//! Location of a fault in a text.
//!
//! Decoders report little about the location of a fault: the number of a record, or nothing. Users
//! need a line for their editor. The start of each block is therefore kept. After an error, the
//! block is decoded again, one record at a time with a count of lines, until the same error occurs:
//!
//! ```text
//!  offset, line        ..block that fails..              next block
//!     |-- record -- record -- RECORD (line found here) -- record --|
//! ```
//! A record from an earlier block is read again from its start. A stream cannot be read again: the
//! message names the line after which the fault is.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow_schema::{ArrowError, SchemaRef};

use crate::error::Error;
use crate::input::charset::newlines;
use crate::input::source::origin::{Origin, Stream};

use super::blocks::{Position, mark};
use super::dialect::{BUFFER, Columns, Dialect};
use super::json::fault as json_text;

/// Start of the message about a row with another number of fields.
const FIELDS: &str = "incorrect number of fields";

/// The text of one file, for a search of faults.
pub(super) struct Faulty<'a> {
    pub(super) origin: &'a Arc<Origin>,
    pub(super) dialect: &'a Dialect,
    pub(super) columns: &'a Columns,
    /// Start of the records with the fault.
    pub(super) start: Position,
    /// Text of the records from `start` on, if in memory.
    pub(super) text: Option<&'a [u8]>,
}

impl Faulty<'_> {
    /// Returns the text from `start` on, if in memory or readable again.
    fn again(&self) -> Option<BufReader<Stream>> {
        let text: Stream = match self.text {
            Some(text) => Box::new(std::io::Cursor::new(text.to_vec())),
            None => self.origin.again_from(self.start.offset)?,
        };
        let text = self.dialect.stream(text, self.start.offset);
        Some(BufReader::with_capacity(BUFFER, text))
    }

    /// Returns the error for a `fault` in one of the records.
    pub(super) fn explain(&self, fault: &ArrowError) -> Error {
        let start = self.start;
        let found = self.find();
        let number = found.as_ref().map(|(line, _)| *line);
        let (line, what) = match found {
            Some((line, what)) => (format!("line {line}"), what),
            None => (format!("line {} or later", start.line), tidy(fault, &self.columns.schema)),
        };
        let can_be_named = self.columns.can_be_named(&what);
        let what = self.columns.of_row(what);
        let advice = if what.starts_with(FIELDS) {
            "correct it: a field that holds the separator must be in quotes, and what stands in front of \
             the line with the names must go, or be left out with `csv_skip_lines`"
        } else if what.ends_with("missing from schema") {
            "name all columns with `schema`, or take those of all files with `union_by_name`"
        } else if can_be_named {
            "correct it, or name the types of the columns with `schema`"
        } else {
            "correct it, or have a row that is like it among the first"
        };
        let told = number.and_then(|number| json_text::fault(&self.line(number)?));
        let error = self.origin.error(match told {
            Some(what) => format!("{line}: {what}"),
            None => format!("{line}: {what}; {advice}"),
        });
        number.map_or(error.clone(), |line| error.at_line(line))
    }

    /// Returns the head of an NDJSON line, by the number of the line.
    fn line(&self, number: u64) -> Option<Vec<u8>> {
        if let Dialect::Csv(_) = self.dialect {
            return None;
        }
        let mut text = self.again()?;
        for _ in self.start.line..number {
            text.skip_until(b'\n').ok()?;
        }
        let mut line = Vec::new();
        text.take(BUFFER as u64).read_until(b'\n', &mut line).ok()?;
        Some(line)
    }

    /// Returns the line of the first faulty record, and the fault.
    fn find(&self) -> Option<(u64, String)> {
        let (mut text, mut place, dialect) = (self.again()?, self.start, self.dialect);
        let mut decoder = self.columns.decoder(dialect, 1, place.offset == 0).ok()?;
        loop {
            // Line of the record, known from its first byte on.
            let (mut line, mut in_comment) = (None, false);
            loop {
                let bytes = text.fill_buf().ok()?;
                let lead = line.map_or_else(
                    || {
                        let mark = mark(bytes, place);
                        mark + dialect.lead(&bytes[mark..], &mut in_comment)
                    },
                    |_| 0,
                );
                let at = line.unwrap_or(place.line + newlines(&bytes[..lead]));
                if lead < bytes.len() {
                    line = Some(at);
                }
                let step = match decoder.decode(bytes) {
                    Ok(step) => step,
                    Err(fault) => return Some((at, tidy(&fault, &self.columns.schema))),
                };
                place = place.behind(&bytes[..step.taken]);
                // A decoder that stops within its bytes, without a record, has read the header.
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

/// Returns the message of a decoder with column names, and without line numbers that are relative
/// to the block.
pub(super) fn tidy(fault: &ArrowError, schema: &SchemaRef) -> String {
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
    // The parsers after the decoder name the column, and their message may contain any words.
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
