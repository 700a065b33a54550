//! What the formats have in common: a file that is opened, its parts, and what reading it takes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::input::options::csv::CsvOptions;
use crate::input::row_groups::{Footer, RowGroups};
use crate::input::source::expand::Source;
use crate::input::source::info::FileInfo;
use crate::input::source::origin::Faults;
use crate::watch::Watch;

/// Batches in the order of the file.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Pieces in the order of the file.
pub(crate) type Pieces = Box<dyn Iterator<Item = Result<Piece>> + Send>;

/// What is read of a file at a time.
pub(crate) enum Piece {
    /// Rows; none where a row comes next that is longer than all before it, which there is memory for.
    Rows(RecordBatch),
    /// So many rows are left out.
    Left(u64),
    /// Text that any thread can decode.
    Text(Box<dyn Undecoded>),
}

/// A piece that is not decoded yet.
pub(crate) trait Undecoded: Send {
    /// Does what can be done whatever becomes of the pieces before it.
    fn decode(&mut self);

    /// Returns its rows, once the pieces before it were finished.
    ///
    /// # Errors
    /// The first that there is in it.
    fn finish(self: Box<Self>) -> Result<Vec<RecordBatch>>;
}

/// Record batches as pieces.
pub(crate) fn decoded(
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Pieces {
    Box::new(batches.map(|batch| batch.map(Piece::Rows)))
}

/// What the formats have in common once a file is opened.
pub(crate) trait Content: Send + Sync {
    /// Reads one of the parts that opening told of, as pieces with rows of the file's own schema.
    ///
    /// # Errors
    /// Also of `watch`, for rows that are longer than the job can have: here, or in the place of a piece.
    fn read(&self, part: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Pieces>;

    /// The same without rows of the part that are known not to count: with those in `rows`, which ascend, and as many
    /// others as it takes.
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

    /// The Parquet footer with the index of its pages, where that is small.
    fn page_index(&self) -> Option<Result<Footer>> {
        None
    }

    /// The Parquet footer with its statistics, from Parquet.
    fn footer(&self) -> Option<Result<Footer>> {
        None
    }

    /// Its row groups as they are, of a Parquet file that is at hand, has a small index of its pages and a footer that is
    /// `wanted`, which comes without statistics.
    fn row_groups(&self, _wanted: &dyn Fn(&Footer) -> bool) -> Result<Option<RowGroups>> {
        Ok(None)
    }

    /// Asks for one of the parts, so that it is there when it is read. Of a file nothing is asked for.
    fn ask_for(&self, _part: Range<usize>) {}
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

/// What opening a file tells.
pub(crate) struct Opened {
    pub(crate) format: Format,
    pub(crate) schema: SchemaRef,
    pub(crate) bytes: Option<u64>,
    pub(crate) rows: Option<u64>,
    pub(crate) spans: Vec<Span>,
    pub(crate) reader_bytes: usize,
    /// Bytes of a row, on average, where rows are longest.
    pub(crate) row_bytes: usize,
    /// Bytes of the longest row, as far as that is known: `reader_bytes` has it in it.
    pub(crate) longest_row: usize,
    /// Times that reading has a row in memory that is longer.
    pub(crate) copies: usize,
    pub(crate) about: About,
    pub(crate) content: Box<dyn Content>,
}

impl Opened {
    /// The error for a file that tells no columns, if it is one.
    pub(crate) fn lacks(&self) -> Option<Error> {
        let name = &self.about.name;
        let what = self.about.lacks?;
        Some(Error::data(format!("{name}: {what}")).in_file(name.clone()))
    }

    /// What callers are told of it.
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

/// What reading takes, of all files that were opened: the most of any.
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
    /// Those of another file too.
    pub(crate) fn take_in(&mut self, opened: &Opened) {
        self.reader_bytes = self.reader_bytes.max(opened.reader_bytes);
        self.row_bytes = self.row_bytes.max(opened.row_bytes);
        self.longest_row = self.longest_row.max(opened.longest_row);
        self.copies = self.copies.max(opened.copies);
    }
}
