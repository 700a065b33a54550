//! The common interface of all formats: an opened file, its parts, and the memory for reading.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::input::options::csv::CsvOptions;
use crate::input::row_groups::{Footer, RowGroups};
use crate::input::source::expand::Source;
use crate::input::source::info::FileInfo;
use crate::input::source::origin::Faults;
use crate::settings::Format;
use crate::watch::Watch;

/// Batches in the order of the file.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Pieces in the order of the file.
pub(crate) type Pieces = Box<dyn Iterator<Item = Result<Piece>> + Send>;

/// A piece of a file, in the form that a reader returns.
pub(crate) enum Piece {
    /// Rows. An empty batch announces a row longer than all earlier rows, for which memory
    /// suffices.
    Rows(RecordBatch),
    /// A number of omitted rows.
    Left(u64),
    /// Text that any thread can decode.
    Text(Box<dyn Undecoded>),
}

/// A piece before decoding.
pub(crate) trait Undecoded: Send {
    /// Does the part of decoding that is independent of earlier pieces.
    fn decode(&mut self);

    /// Returns the rows of the piece, after earlier pieces were finished.
    ///
    /// # Errors
    /// The first error in the piece.
    fn finish(self: Box<Self>) -> Result<Vec<RecordBatch>>;
}

/// Record batches as pieces.
pub(crate) fn decoded(
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Pieces {
    Box::new(batches.map(|batch| batch.map(Piece::Rows)))
}

/// An opened file of any format.
pub(crate) trait Content: Send + Sync {
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
    fn page_index(&self) -> Result<Option<Footer>> {
        Ok(None)
    }

    /// Returns the footer of a Parquet file, with statistics.
    fn footer(&self) -> Result<Option<Footer>> {
        Ok(None)
    }

    /// Returns the row groups of a local Parquet file for an unchanged copy, if its page index is
    /// small and its footer is `wanted`. `wanted` gets the footer without statistics.
    fn row_groups(&self, _wanted: &dyn Fn(&Footer) -> bool) -> Result<Option<RowGroups>> {
        Ok(None)
    }

    /// Returns all row groups of a Parquet file, with its page index and its Bloom filters as
    /// far as it has them.
    fn whole_row_groups(&self) -> Result<Option<RowGroups>> {
        Ok(None)
    }

    /// Prefetches a part. Local files are not prefetched.
    fn ask_for(&self, _part: Range<usize>) {}

    /// Frees what was loaded and not read.
    fn forget(&self) {}
}

/// Facts about a file beside its rows.
#[derive(Default)]
pub(crate) struct About {
    /// The name for messages.
    pub(crate) name: Arc<str>,
    /// Errors of its bytes other than damage.
    pub(crate) faults: Faults,
    /// The options of CSV, as far as the file says them.
    pub(crate) csv: Option<CsvOptions>,
    /// The reason why a file tells no columns: nothing is in it. Another file has to.
    pub(crate) lacks: Option<&'static str>,
    /// Notes for users on a file that is read all the same.
    pub(crate) notes: Vec<String>,
    /// The number of lines that seem to precede the names of the columns, of CSV.
    pub(crate) preamble: Option<usize>,
    pub(crate) has_bloom_filters: bool,
}

/// An opened file and the facts found by opening.
pub(crate) struct Opened {
    pub(crate) format: Format,
    pub(crate) schema: SchemaRef,
    pub(crate) bytes: Option<u64>,
    pub(crate) rows: Option<u64>,
    pub(crate) spans: Vec<Span>,
    pub(crate) reader_bytes: usize,
    /// Average bytes of a row, in the region with the longest rows.
    pub(crate) row_bytes: usize,
    /// Bytes of the longest known row; included in `reader_bytes`.
    pub(crate) longest_row: usize,
    /// Copies of a longer row in memory while it is read.
    pub(crate) copies: usize,
    pub(crate) about: About,
    pub(crate) content: Box<dyn Content>,
}

impl Opened {
    /// Returns an error if the file declares no columns.
    pub(crate) fn lacks(&self) -> Option<Error> {
        let name = &self.about.name;
        let what = self.about.lacks?;
        Some(Error::data(format!("{name}: {what}")).in_file(name.clone()))
    }

    /// Returns the public information about the file.
    pub(crate) fn info(&self, source: &Source) -> FileInfo {
        FileInfo {
            name: self.about.name.clone(),
            format: self.format,
            bytes: self.bytes,
            rows: self.rows,
            source: source.clone(),
        }
    }
}

/// A part of a file and the rows in it.
pub(crate) struct Span {
    pub(crate) part: Range<usize>,
    pub(crate) first_row: u64,
    pub(crate) rows: Option<u64>,
}

/// Memory for reading: the maxima over all opened files.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needs {
    /// An estimate of the heap that reading one unit takes, with a record batch.
    pub(crate) reader_bytes: usize,
    /// Mean bytes of a row, in the row group, the record batches or the sample with the longest rows.
    pub(crate) row_bytes: usize,
    /// Bytes of the longest known row, which are part of `reader_bytes`.
    pub(crate) longest_row: usize,
    /// Times that a longer row is in memory during a read.
    pub(crate) copies: usize,
}

impl Needs {
    /// Includes another file in the maxima.
    pub(crate) fn take_in(&mut self, opened: &Opened) {
        self.reader_bytes = self.reader_bytes.max(opened.reader_bytes);
        self.row_bytes = self.row_bytes.max(opened.row_bytes);
        self.longest_row = self.longest_row.max(opened.longest_row);
        self.copies = self.copies.max(opened.copies);
    }
}
