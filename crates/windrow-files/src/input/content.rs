//! The common interface of all formats: an opened file, its parts, and the memory for reading.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::csv_options::CsvOptions;
use super::expand::Source;
use super::info::FileInfo;
use super::origin::Faults;
use super::parquet;
use super::row_groups::RowGroups;
use super::unify::Order;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::watch::Watch;

/// Batches in the order of the file.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Pieces in the order of the file.
pub(super) type Pieces = Box<dyn Iterator<Item = Result<Piece>> + Send>;

/// A piece of a file, in the form that a reader returns.
pub(super) enum Piece {
    /// Rows. An empty batch announces a row longer than all earlier rows, for which memory
    /// suffices.
    Rows(RecordBatch),
    /// A number of omitted rows.
    Left(u64),
    /// Text that any thread can decode.
    Text(Box<dyn Undecoded>),
}

/// A piece before decoding.
pub(super) trait Undecoded: Send {
    /// Does the part of decoding that is independent of earlier pieces.
    fn decode(&mut self);

    /// Returns the rows of the piece, after earlier pieces were finished.
    ///
    /// # Errors
    /// The first error in the piece.
    fn finish(self: Box<Self>) -> Result<Vec<RecordBatch>>;
}

/// Record batches as pieces.
pub(super) fn decoded(
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Pieces {
    Box::new(batches.map(|batch| batch.map(Piece::Rows)))
}

/// A file opened for planning.
pub(super) struct File {
    pub(super) content: Box<dyn Content>,
    pub(super) order: Order,
}

/// An opened file of any format.
pub(super) trait Content: Send + Sync {
    /// Returns the name for messages.
    fn name(&self) -> &Arc<str>;

    /// Reads one of the parts found by opening, as pieces with rows of the file's own schema.
    ///
    /// # Errors
    /// Includes errors of `watch`, for rows that are too long for the job: returned here, or in
    /// place of a piece.
    fn read(&self, part: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Pieces>;

    /// Reads a part like [`read`](Self::read), but may omit rows outside of the ascending ranges
    /// `rows`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_some(
        &self,
        part: Range<usize>,
        _rows: &[Range<u64>],
        batch_rows: usize,
        watch: &Watch,
    ) -> Result<Pieces> {
        self.read(part, batch_rows, watch)
    }

    /// Returns the Parquet footer with the page index, if the index is small.
    fn page_index(&self) -> Option<Result<parquet::Footer>> {
        None
    }

    /// Returns the footer of a Parquet file, with statistics.
    fn footer(&self) -> Option<Result<parquet::Footer>> {
        None
    }

    /// Returns the row groups of a local Parquet file for an unchanged copy, if its page index is
    /// small and its footer is `wanted`. `wanted` gets the footer without statistics.
    fn row_groups(&self, _wanted: &dyn Fn(&parquet::Footer) -> bool) -> Result<Option<RowGroups>> {
        Ok(None)
    }

    /// Returns whether the file has Bloom filters.
    fn has_bloom_filters(&self) -> bool {
        false
    }

    /// Returns the faults of the file's store, which decoders take for damage.
    fn faults(&self) -> Faults {
        Faults::default()
    }

    /// Prefetches a part. Local files are not prefetched.
    fn ask_for(&self, _part: Range<usize>) {}

    /// Returns the options of a CSV file.
    fn csv(&self) -> Option<&CsvOptions> {
        None
    }

    /// Returns why an empty file declares no columns. Another file must declare the columns.
    fn lacks(&self) -> Option<&'static str> {
        None
    }

    /// Returns notes about a readable file, for users.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Returns the number of lines that seem to precede the column names of CSV.
    fn preamble(&self) -> Option<usize> {
        None
    }

    /// Returns the value of a column in all rows, if known.
    fn value(&self, _column: &str) -> Option<&ArrayRef> {
        None
    }
}

/// An opened file and the facts found by opening.
pub(super) struct Opened {
    pub(super) format: Format,
    pub(super) schema: SchemaRef,
    pub(super) bytes: Option<u64>,
    pub(super) rows: Option<u64>,
    pub(super) spans: Vec<Span>,
    pub(super) reader_bytes: usize,
    /// Average bytes of a row, in the region with the longest rows.
    pub(super) row_bytes: usize,
    /// Bytes of the longest known row; included in `reader_bytes`.
    pub(super) longest_row: usize,
    /// Copies of a longer row in memory while it is read.
    pub(super) copies: usize,
    pub(super) content: Box<dyn Content>,
}

impl Opened {
    /// Returns an error if the file declares no columns.
    pub(super) fn lacks(&self) -> Option<Error> {
        let name = self.content.name();
        let what = self.content.lacks()?;
        Some(Error::data(format!("{name}: {what}")).in_file(name.clone()))
    }

    /// Returns the public information about the file.
    pub(super) fn info(&self, source: &Source) -> FileInfo {
        FileInfo {
            name: self.content.name().clone(),
            format: self.format,
            bytes: self.bytes,
            rows: self.rows,
            source: source.clone(),
        }
    }
}

/// A part of a file and the rows in it.
pub(super) struct Span {
    pub(super) part: Range<usize>,
    pub(super) first_row: u64,
    pub(super) rows: Option<u64>,
}

/// Memory for reading: the maxima over all opened files.
#[derive(Clone, Copy, Default)]
pub(super) struct Needs {
    pub(super) reader_bytes: usize,
    pub(super) row_bytes: usize,
    pub(super) longest_row: usize,
    pub(super) copies: usize,
}

impl Needs {
    /// Includes another file in the maxima.
    pub(super) fn take_in(&mut self, opened: &Opened) {
        self.reader_bytes = self.reader_bytes.max(opened.reader_bytes);
        self.row_bytes = self.row_bytes.max(opened.row_bytes);
        self.longest_row = self.longest_row.max(opened.longest_row);
        self.copies = self.copies.max(opened.copies);
    }
}
