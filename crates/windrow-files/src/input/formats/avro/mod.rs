//! Avro object container files: a unit is a range of blocks.
//!
//! ```text
//!  Obj 1 | schema, codec | marker | rows, bytes | data | marker | rows, bytes | data | marker ...
//!                                   \______ block ___________/
//! ```
//! Opening a file reads the numbers in front of each block, so that threads can share the file. A
//! stream, or an object in a store, is read from start to end. [`blocks`] locates and decompresses
//! blocks; [`shape`] validates them. arrow-avro then decodes a file of plain blocks, each whole and
//! with the declared number of rows.
//!
//! Known limits: rows of `null` alone, or of records without bytes, cannot be counted and are
//! refused, as are recursive types.

mod blocks;
mod shape;
#[cfg(test)]
mod tests;

use std::io::{BufReader, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow_avro::codec::Tz;
use arrow_avro::reader::{Reader, ReaderBuilder};

use crate::error::Result;
use crate::input::formats::opening::{InputFormat, Opening};
use crate::input::opened::{About, Content, Opened, Pieces, Span, decoded};
use crate::input::source::origin::{Origin, SAMPLE_BYTES};
use crate::input::source::random::RandomFile;
use crate::settings::Format;
use crate::watch::Watch;

use blocks::{Block, BlockReader, Header, Plain, plain, reader_bytes};
use shape::Shape;

/// Bytes of a unit: large enough to make the cost of opening the file negligible.
const UNIT_BYTES: u64 = 8 << 20;

/// Number of blocks to decompress while planning: the longest of the file.
const SAMPLED: usize = 4;

/// Assumed maximum of a stream's blocks, unless the first block is longer than a quarter of it.
const PASSING_BLOCK: usize = 1 << 20;

/// Bytes of rows to decode at a time.
const BATCH_BYTES: usize = 1 << 20;

struct AvroFile {
    origin: Origin,
    header: Arc<Header>,
    /// Byte ranges of the units; empty for a stream.
    units: Vec<Range<u64>>,
    /// Maximum decompressed bytes of a block, as far as known.
    planned: usize,
    batch_rows: usize,
}

/// The format.
pub(crate) struct Avro;

impl InputFormat for Avro {
    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(b"Obj\x01")
    }

    fn open(&self, origin: Origin, opening: &mut Opening<'_>) -> Result<Opened> {
        open(origin, opening.options.batch_rows())
    }
}

/// Reads the header of `origin`, and for a file the numbers in front of each block.
fn open(origin: Origin, batch_rows: usize) -> Result<Opened> {
    let head = origin.head(SAMPLE_BYTES)?;
    let header = Header::parse(&head).map_err(|what| origin.error(what))?;
    let reader = reader(Cursor::new(header.plain()), 1).map_err(|what| origin.error(what))?;
    let schema = reader.schema();
    let streamed = origin.passes_once() || origin.is_far();
    let survey = match streamed {
        true => of_stream(&header, &head),
        false => of_file(&header, &origin.random()?),
    };
    let Surveyed { spans, units, rows, packed, plain, row, longest } =
        survey.map_err(|what| origin.error(what))?;
    let fixed: usize =
        schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(16)).sum();
    let row_bytes = row + fixed;
    let batch_rows = batch_rows.min(BATCH_BYTES / row_bytes.max(1)).max(1);
    let header = Arc::new(header);
    // A block exists three times: as read, as validated, and in the decoder, whose buffer doubles
    // to grow.
    let reader_bytes = packed
        + 3 * plain
        + reader_bytes(header.codec)
        + header.shape.decoder_bytes()
        + 2 * batch_rows * row_bytes
        + origin.stream_bytes();
    Ok(Opened {
        format: Format::Avro,
        schema,
        bytes: origin.len(),
        rows,
        spans,
        reader_bytes,
        row_bytes,
        longest_row: longest + fixed,
        copies: 4,
        about: About::default(),
        content: Box::new(AvroFile { origin, header, units, planned: plain, batch_rows }),
    })
}

fn reader<R: std::io::BufRead>(source: R, batch_rows: usize) -> Result<Reader<R>, String> {
    let builder = ReaderBuilder::new().with_batch_size(batch_rows).with_tz(Tz::Utc);
    builder.build(source).map_err(|fault| format!("the Avro schema is not read: {fault}"))
}

/// Results of the survey of blocks.
#[derive(Default)]
struct Surveyed {
    spans: Vec<Span>,
    units: Vec<Range<u64>>,
    rows: Option<u64>,
    /// Bytes of the longest block, compressed and decompressed.
    packed: usize,
    plain: usize,
    /// Bytes of an average row, and of the longest.
    row: usize,
    longest: usize,
}

impl Surveyed {
    /// Adds a decompressed block to the statistics.
    fn see(&mut self, shape: &Shape, rows: u64, data: &[u8]) -> Result<(), String> {
        self.plain = self.plain.max(data.len());
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        self.row = self.row.max(data.len() / rows.max(1));
        self.longest = self.longest.max(shape.longest_of(rows as u64, data)?);
        Ok(())
    }
}

/// Surveys all blocks of a file, and decompresses the longest.
fn of_file(header: &Header, file: &RandomFile) -> Result<Surveyed, String> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut at, mut all) = (header.length, 0);
    let (mut spans, mut units): (Vec<Span>, Vec<Range<u64>>) = (Vec::new(), Vec::new());
    while at < file.len {
        let block = Block::at(file, at, &header.marker)?;
        let full = units.last().is_none_or(|unit| block.end - unit.start > UNIT_BYTES);
        match (units.last_mut(), spans.last_mut()) {
            (Some(unit), Some(span)) if !full => {
                unit.end = block.end;
                span.rows = span.rows.map(|rows| rows + block.rows);
            }
            _ => {
                let part = units.len();
                units.push(at..block.end);
                let rows = Some(block.rows);
                spans.push(Span { part: part..part + 1, first_row: all, rows });
            }
        }
        all += block.rows;
        at = block.end;
        blocks.push(block);
        if blocks.len() > 2 * SAMPLED || at >= file.len {
            blocks.sort_by_key(|block| std::cmp::Reverse(block.bytes));
            blocks.truncate(SAMPLED);
        }
    }
    let packed = blocks.first().map_or(0, |block| block.bytes);
    let packed = usize::try_from(packed).unwrap_or(usize::MAX);
    let mut told = Surveyed { spans, units, rows: Some(all), packed, ..Surveyed::default() };
    for block in &blocks {
        let data = block.read(file)?;
        if let Plain::Whole(data) = plain(header.codec, data, usize::MAX)? {
            told.see(&header.shape, block.rows, &data)?;
        }
    }
    // Shorter blocks may decompress to more, by a better ratio than the longest blocks have.
    told.plain += if header.codec.is_none() { 0 } else { told.plain / 4 };
    Ok(told)
}

/// Surveys the first block of a stream, if `head` contains it whole.
fn of_stream(header: &Header, head: &[u8]) -> Result<Surveyed, String> {
    let spans = vec![Span { part: 0..1, first_row: 0, rows: None }];
    let (row, longest, packed) = (64, 64, PASSING_BLOCK);
    let mut told = Surveyed { spans, packed, row, longest, ..Surveyed::default() };
    let start = usize::try_from(header.length).unwrap_or(usize::MAX);
    if let Some((block, data)) = head.get(start..).and_then(Block::first) {
        if let Plain::Whole(data) = plain(header.codec, data.to_vec(), usize::MAX)? {
            told.see(&header.shape, block.rows, &data)?;
        }
        told.packed = told.packed.max(4 * data.len());
    }
    told.plain = PASSING_BLOCK.max(4 * told.plain);
    Ok(told)
}

impl Content for AvroFile {
    fn read(&self, part: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Pieces> {
        let input: Box<dyn Read + Send> = match self.units.get(part.start) {
            Some(unit) => {
                let file = self.origin.random()?;
                Box::new(file.reader_at(unit.start).take(unit.end - unit.start))
            }
            None => {
                let mut stream = self.origin.stream()?;
                let mut header = stream.by_ref().take(self.header.length);
                let header = std::io::copy(&mut header, &mut std::io::sink());
                header.map_err(|cause| self.origin.unreadable(&cause))?;
                stream
            }
        };
        let start = self.units.get(part.start).map_or(self.header.length, |unit| unit.start);
        let input = BufReader::with_capacity(64 << 10, input);
        let name = self.origin.name();
        let source =
            BlockReader::new(name, input, Arc::clone(&self.header), start, self.planned, watch);
        let told = source.told();
        let rows = batch_rows.min(self.batch_rows);
        let mut reader = reader(source, rows).map_err(|what| self.origin.error(what))?;
        let mut read = 0;
        let mut ended = false;
        Ok(decoded(std::iter::from_fn(move || {
            if ended {
                return None;
            }
            let next = match reader.next() {
                Some(batch) => Some(batch.map_err(|fault| told.error(&fault))),
                None => told.check(read).err().map(Err),
            };
            match &next {
                Some(Ok(batch)) => read += batch.num_rows() as u64,
                Some(Err(_)) | None => ended = true,
            }
            next
        })))
    }
}
