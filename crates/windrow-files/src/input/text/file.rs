//! Common code of CSV and NDJSON: a file is cut into blocks of text, which any thread decodes.
//!
//! ```text
//!  file --blocks--> block 0, block 1, block 2, ...     one thread at a time reads and cuts
//!                      |        |        |
//!                    decode   decode   decode          each by the thread that has it
//!                      |        |        |
//!                    finish   finish   finish          in their order: rows, or the first error
//! ```
//! A record may continue after its block: the record is longer than a block, or the cut was wrong
//! (see [`blocks`](super::blocks)). The decoder with the begun record is then handed on, and
//! decodes the next block in the turn of the next block. An earlier result of the next block is
//! dropped. The rows are thus the same as from one decoder for the whole text.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, FieldRef};
use memchr::memchr_iter;

use crate::error::Result;
use crate::input::charset::newlines;
use crate::input::opened::{About, Content, Opened, Piece, Pieces, Span, Undecoded};
use crate::input::source::origin::Origin;
use crate::settings::Format;
use crate::watch::Watch;

use super::blocks::{Block, Blocks, Buffers, Most, Next, Position, mark};
use super::dialect::{BUFFER, Columns, Decoder, Dialect};
use super::faults::{Faulty, tidy};
use super::quoted_nulls::QuotedNulls;

/// Maximum bytes of a block, and a minimum: a smaller block is not worth the hand-over.
const BLOCK_BYTES: usize = 256 << 10;
const LEAST_BLOCK_BYTES: usize = 4 << 10;

/// Bytes per field in a decoder besides the text: the end of the field, and a value of fixed width.
const FIELD_PLACES: usize = 40;

/// Bytes per column for its decoders and arrays.
const CSV_COLUMN: usize = 512;
const JSON_COLUMN: usize = 2560;

/// Copies of a long line during decoding: the text read, the values, and the values in an array.
const COPIES: usize = 3;

/// A text file whose columns are known.
pub(crate) struct TextFile {
    pub(crate) origin: Arc<Origin>,
    pub(crate) dialect: Dialect,
    pub(crate) columns: Columns,
    /// Average and maximum bytes of a line in the sample.
    pub(crate) line_bytes: usize,
    pub(crate) longest: usize,
    /// All but the options of CSV.
    pub(crate) about: About,
}

impl TextFile {
    /// Returns the file as one unit.
    pub(crate) fn opened(mut self, batch_rows: usize) -> Opened {
        let fields = leaves(self.columns.schema.fields()).max(1);
        let decoders = match self.dialect {
            Dialect::Csv(_) => fields * CSV_COLUMN,
            Dialect::Ndjson => fields * JSON_COLUMN,
        };
        let batch_rows = self.batch_rows(batch_rows);
        // Buffers of many pages grow in place, and untouched pages take no memory.
        let copies = if self.line_bytes >= BLOCK_BYTES { COPIES } else { 4 };
        // The batch of a line longer than a usual batch holds this line and earlier lines.
        let longer = COPIES * self.longest.saturating_sub(batch_rows * self.line_bytes);
        let mut about = std::mem::take(&mut self.about);
        if let Dialect::Csv(csv) = &self.dialect {
            about.csv = Some(csv.clone());
        }
        Opened {
            format: match self.dialect {
                Dialect::Csv(_) => Format::Csv,
                Dialect::Ndjson => Format::Ndjson,
            },
            schema: self.columns.schema.clone(),
            bytes: self.origin.len(),
            rows: None,
            spans: match about.lacks {
                None => vec![Span { part: 0..1, first_row: 0, rows: None }],
                Some(_) => Vec::new(),
            },
            // Two blocks: the current block, and the rest of the one before. The text of a batch
            // and its values, both in buffers that double. Positions of fields.
            reader_bytes: 2 * self.most(batch_rows).bytes
                + self.origin.stream_bytes()
                + batch_rows * (copies * self.line_bytes + fields * FIELD_PLACES)
                + decoders
                + longer,
            row_bytes: self.line_bytes,
            longest_row: self.longest,
            copies: COPIES,
            about,
            content: Box::new(self),
        }
    }

    /// Returns the maximum size of a block.
    fn most(&self, batch_rows: usize) -> Most {
        let bytes = batch_rows.saturating_mul(self.line_bytes.max(1));
        Most { bytes: bytes.clamp(LEAST_BLOCK_BYTES, BLOCK_BYTES), records: batch_rows }
    }

    /// Returns the rows of a batch: fewer if lines are long, or if most of many columns are
    /// missing.
    fn batch_rows(&self, most: usize) -> usize {
        let columns = leaves(self.columns.schema.fields());
        most.min(BLOCK_BYTES / self.line_bytes.max(1)).min(BLOCK_BYTES / columns.max(1)).max(1)
    }

    /// Returns the file in batches of at most `batch_rows` rows, and blocks of at most `most`.
    pub(crate) fn pieces(&self, batch_rows: usize, most: Most, watch: &Watch) -> Result<Pieces> {
        let text = Arc::new(Text {
            origin: Arc::clone(&self.origin),
            dialect: self.dialect.clone(),
            columns: self.columns.clone(),
            batch_rows,
            buffers: Buffers::default(),
            nulls: match &self.dialect {
                Dialect::Csv(csv) => QuotedNulls::of(csv),
                Dialect::Ndjson => None,
            },
            decoders: Mutex::default(),
            begun: Mutex::default(),
        });
        // Faults of the options are reported before any reading.
        text.decoder(Position::START)
            .map_err(|cause| self.origin.error(tidy(&cause, &self.columns.schema)))?;
        let mut blocks = Blocks::new(&self.origin, &self.dialect, most, &text.buffers, watch)?;
        Ok(Box::new(std::iter::from_fn(move || {
            Some(blocks.next().transpose()?.map(|next| match next {
                Next::Room => Piece::Rows(RecordBatch::new_empty(text.columns.schema.clone())),
                Next::Block(block) => {
                    let (text, done) = (Arc::clone(&text), None);
                    Piece::Text(Box::new(TextBlock { text, block, marked: Ok(false), done }))
                }
            }))
        })))
    }
}

/// Counts the columns of `fields`, with all members of nested columns.
fn leaves(fields: &[FieldRef]) -> usize {
    let of = |kind: &DataType| match kind {
        DataType::Struct(fields) => leaves(fields),
        DataType::List(of) | DataType::LargeList(of) | DataType::Map(of, _) => {
            leaves(std::slice::from_ref(of))
        }
        _ => 1,
    };
    fields.iter().map(|field| of(field.data_type())).sum()
}

/// Returns the bytes of a line of `sample` from `first` on, on average, and those of its longest line. `sample` is the
/// head of `origin`; the line that it breaks off in counts as a whole.
pub(crate) fn line_lengths(origin: &Origin, sample: &[u8], first: usize) -> (usize, usize) {
    let rest = rest_of_line(origin, sample);
    let lines = usize::try_from(newlines(&sample[first..])).unwrap_or(0);
    let bytes = sample.len() - first;
    let mean = match rest {
        0 => bytes / lines.max(1),
        rest => (bytes + rest) / (lines + 1),
    };
    let mut start = 0;
    let ends = memchr_iter(b'\n', sample).chain([sample.len() + rest]);
    let longest = ends.map(|end| end - std::mem::replace(&mut start, end)).max();
    (mean, longest.unwrap_or(0))
}

/// Returns the bytes after `sample`, the head of `origin`, up to the end of its last line; 0 for a
/// stream.
pub(crate) fn rest_of_line(origin: &Origin, sample: &[u8]) -> usize {
    origin.again_from(sample.len() as u64).map_or(0, |rest| {
        // Reading the file reports the fault.
        BufReader::with_capacity(BUFFER, rest).skip_until(b'\n').unwrap_or(0)
    })
}

impl Content for TextFile {
    fn read(&self, _: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Pieces> {
        let batch_rows = self.batch_rows(batch_rows);
        self.pieces(batch_rows, self.most(batch_rows), watch)
    }
}

/// The state shared by the blocks of a file.
struct Text {
    origin: Arc<Origin>,
    dialect: Dialect,
    columns: Columns,
    batch_rows: usize,
    buffers: Buffers,
    /// For CSV with quotes.
    nulls: Option<QuotedNulls>,
    /// Idle decoders.
    decoders: Mutex<Vec<Decoder>>,
    /// The decoder within a record, after the last finished block.
    begun: Mutex<Option<OpenRecord>>,
}

/// A decoder within a record, and a position before all of its records.
struct OpenRecord {
    decoder: Decoder,
    start: Position,
}

/// A block, before and after decoding.
struct TextBlock {
    text: Arc<Text>,
    block: Block,
    /// Whether quoted nulls in the block were marked.
    marked: Result<bool, ArrowError>,
    done: Option<Result<Decoded, ArrowError>>,
}

/// The result of decoding a block.
struct Decoded {
    batches: Vec<RecordBatch>,
    /// The decoder, if the last record continues.
    begun: Option<OpenRecord>,
}

impl Text {
    /// Returns an idle decoder for text from `start` on.
    fn decoder(&self, start: Position) -> Result<Decoder, ArrowError> {
        let known = match start.offset {
            0 => None,
            _ => self.decoders.lock().unwrap_or_else(PoisonError::into_inner).pop(),
        };
        let (rows, at_start) = (self.batch_rows, start.offset == 0);
        known.map_or_else(|| self.columns.decoder(&self.dialect, rows, at_start), Ok)
    }

    /// Decodes `block`, which begins with a record.
    fn decode(&self, block: &Block, is_marked: bool) -> Result<Decoded, ArrowError> {
        let mut decoder = self.decoder(block.start)?;
        decoder.expect_marks(is_marked, false);
        // If the block breaks off within a line, the rest of the line may belong to the last record.
        if (block.ends || block.is_last)
            && let Some(batch) = decoder.decode_plain(&block.text)
        {
            self.give_back(decoder);
            return Ok(Decoded { batches: vec![batch], begun: None });
        }
        let begun = OpenRecord { decoder, start: block.start };
        self.go_on(begun, block, 0, Vec::new())
    }

    /// Decodes `block` with the decoder that began the first record.
    fn decode_behind(
        &self,
        mut begun: OpenRecord,
        block: &Block,
        is_marked: bool,
    ) -> Result<Decoded, ArrowError> {
        let mut batches = Vec::new();
        begun.decoder.expect_marks(is_marked, true);
        let (end, ended) = begun.decoder.take_record(&block.text, &mut batches)?;
        // Faults are searched from this position on. A byte order mark is skipped only at the head
        // of a line.
        if ended && block.text[..end].ends_with(b"\n") {
            begun.start = block.start.behind(&block.text[..end]);
        }
        self.go_on(begun, block, end, batches)
    }

    /// Decodes `block` from `place` on.
    fn go_on(
        &self,
        mut begun: OpenRecord,
        block: &Block,
        place: usize,
        mut batches: Vec<RecordBatch>,
    ) -> Result<Decoded, ArrowError> {
        let decoder = &mut begun.decoder;
        decoder.take(&block.text[place..], &mut batches)?;
        if let Some(line) = block.unclosed {
            // The decoder would take the incomplete field for the last field.
            let what = format!("the quote that opens on line {line} is never closed");
            return Err(ArrowError::CsvError(what));
        }
        if block.is_last {
            decoder.decode(&[])?;
        } else if !block.ends || decoder.is_within_record() {
            return Ok(Decoded { batches, begun: Some(begun) });
        }
        batches.extend(decoder.flush()?);
        if !block.is_last {
            self.give_back(begun.decoder);
        }
        Ok(Decoded { batches, begun: None })
    }

    fn give_back(&self, decoder: Decoder) {
        self.decoders.lock().unwrap_or_else(PoisonError::into_inner).push(decoder);
    }
}

impl TextBlock {
    /// Marks quoted nulls, once.
    fn mark(&mut self) {
        let Block { text, start, quotes, .. } = &mut self.block;
        if let (Some(nulls), Some(quotes)) = (&self.text.nulls, quotes.take()) {
            let lead = mark(text, *start);
            self.marked = nulls.mark(&mut text[lead..], quotes);
        }
    }
}

impl Undecoded for TextBlock {
    fn decode(&mut self) {
        self.mark();
        if self.block.begins {
            let marked = std::mem::replace(&mut self.marked, Ok(false));
            let done = marked.and_then(|is_marked| self.text.decode(&self.block, is_marked));
            self.done = Some(done);
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<RecordBatch>> {
        self.mark();
        let Self { text, block, marked, done } = *self;
        let mut begun = text.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut start, mut at_hand) = (block.start, Some(&*block.text));
        let done = match (begun.take(), done) {
            (None, Some(done)) => done,
            (None, None) => marked.and_then(|is_marked| text.decode(&block, is_marked)),
            (Some(before), _) => {
                (start, at_hand) = (before.start, None);
                marked.and_then(|is_marked| text.decode_behind(before, &block, is_marked))
            }
        };
        let Decoded { batches, begun: last } = done.map_err(|fault| {
            let Text { origin, dialect, columns, .. } = &*text;
            Faulty { origin, dialect, columns, start, text: at_hand }.explain(&fault)
        })?;
        *begun = last;
        drop(begun);
        text.buffers.give_back(block.text);
        Ok(batches)
    }
}
