//! Rows as lines of CSV.
//!
//! ```text
//!  value                                     field
//!  null                                      what stands for null
//!  text without a character, text that       in quotes, so that it is no null
//!    stands for null
//!  what holds a delimiter, a quote, a line   in quotes, quotes in it doubled
//!    end
//!  all other                                 as it is
//! ```
//! Known limit: a line without a character is no row. So the null of a row of one column is `""` where nulls have no text.

use std::fmt::Write as _;
use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, Schema};

use crate::input::CsvOptions;

/// Bytes that are written together.
const LINES: usize = 64 << 10;

/// Writes lines.
pub(super) struct Lines<'a, W> {
    out: W,
    csv: &'a CsvOptions,
    /// Bytes of a field that needs quotes.
    special: [bool; 256],
}

/// The values of a column.
enum Cells<'a> {
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Other(ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    fn of(column: &'a ArrayRef, options: &'a FormatOptions) -> Result<Self, ArrowError> {
        use arrow_schema::DataType as D;
        Ok(match column.data_type() {
            D::Utf8 => Self::Text(column.as_string()),
            D::LargeUtf8 => Self::LargeText(column.as_string()),
            D::Utf8View => Self::TextView(column.as_string_view()),
            _ => Self::Other(ArrayFormatter::try_new(column, options)?),
        })
    }

    /// The text of the value at `row`, which is no null.
    fn text<'b>(&'b self, row: usize, buffer: &'b mut String) -> Result<&'b str, ArrowError> {
        Ok(match self {
            Self::Text(values) => values.value(row),
            Self::LargeText(values) => values.value(row),
            Self::TextView(values) => values.value(row),
            Self::Other(values) => {
                buffer.clear();
                write!(buffer, "{}", values.value(row))
                    .map_err(|_| ArrowError::CsvError(format!("row {row} has no text")))?;
                buffer
            }
        })
    }
}

impl<'a, W: Write> Lines<'a, W> {
    pub(super) fn new(out: W, csv: &'a CsvOptions) -> Self {
        let mut special = [false; 256];
        for byte in [csv.separator(), b'\n', b'\r'].into_iter().chain(csv.quote) {
            special[usize::from(byte)] = true;
        }
        Self { out, csv, special }
    }

    /// Writes the names of the columns.
    pub(super) fn header(&mut self, schema: &Schema) -> Result<(), ArrowError> {
        let mut line = Vec::new();
        let is_alone = schema.fields().len() == 1;
        for field in schema.fields() {
            self.put(field.name(), is_alone && field.name().is_empty(), &mut line);
        }
        self.end(&mut line);
        self.out.write_all(&line).map_err(ArrowError::from)
    }

    /// Writes the rows of `batch`.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let options = FormatOptions::new();
        let cells = batch.columns().iter().map(|column| Cells::of(column, &options));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let nulls: Vec<Option<NullBuffer>> =
            batch.columns().iter().map(|column| column.logical_nulls()).collect();
        let (csv, is_alone) = (self.csv, batch.num_columns() == 1);
        let null = csv.null_text();
        let (mut lines, mut buffer) = (Vec::with_capacity(LINES + (LINES >> 3)), String::new());
        for row in 0..batch.num_rows() {
            for (cells, nulls) in cells.iter().zip(&nulls) {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    self.put(null, is_alone && null.is_empty(), &mut lines);
                } else {
                    let text = cells.text(row, &mut buffer)?;
                    self.put(text, text == null || is_alone && text.is_empty(), &mut lines);
                }
            }
            self.end(&mut lines);
            if lines.len() >= LINES {
                self.out.write_all(&lines)?;
                lines.clear();
            }
        }
        self.out.write_all(&lines).map_err(ArrowError::from)
    }

    /// Appends a field and a delimiter to `line`.
    fn put(&self, text: &str, is_quoted: bool, line: &mut Vec<u8>) {
        let bytes = text.as_bytes();
        match self.csv.quote {
            Some(quote)
                if is_quoted || bytes.iter().any(|byte| self.special[usize::from(*byte)]) =>
            {
                line.push(quote);
                for part in bytes.split_inclusive(|byte| *byte == quote) {
                    line.extend_from_slice(part);
                    if part.last() == Some(&quote) {
                        line.push(quote);
                    }
                }
                line.push(quote);
            }
            _ => line.extend_from_slice(bytes),
        }
        line.push(self.csv.separator());
    }

    /// Ends a line after its last field.
    fn end(&self, line: &mut Vec<u8>) {
        line.pop();
        line.push(b'\n');
    }
}
