//! Avro object container files: a unit is a range of blocks.
//!
//! ```text
//!  Obj 1 | schema, codec | marker | rows, bytes | data | marker | rows, bytes | data | marker ...
//!                                   \______ block ___________/
//! ```
//! A file is looked through by the heads of its blocks, so that threads share it; a stream, or an object in a store,
//! is read as it comes. Blocks are taken apart, decompressed and walked through here ([`blocks`], [`shape`]); what
//! arrow-avro decodes is a file of plain blocks that are known to be whole, and to hold as many rows as they say.
//!
//! Known limits: `null` alone, and records without bytes, have no rows that could be told; types that contain
//! themselves are refused.

mod blocks;
mod shape;
#[cfg(test)]
mod tests;

use std::io::{BufReader, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_avro::codec::Tz;
use arrow_avro::reader::{Reader, ReaderBuilder};
use arrow_schema::SchemaRef;

use crate::error::Result;
use crate::format::Format;
use crate::watch::Watch;

use super::content::{Pieces, decoded};
use super::origin::{Faults, Origin};
use super::random::RandomFile;
use super::{Content, Opened, SAMPLE_BYTES, Span};
use blocks::{Block, Codec, Header, Plain, Source};
use shape::Shape;

/// Bytes of a unit: enough that opening the file is nothing beside reading it.
const UNIT_BYTES: u64 = 8 << 20;

/// Blocks of a file, the longest, that are decompressed to tell how long they become.
const SAMPLED: usize = 4;

/// What a block of a stream is taken to be at the most, unless the first is longer than a part of it.
const PASSING_BLOCK: usize = 1 << 20;

/// Bytes of rows that are decoded at a time.
const BATCH_BYTES: usize = 1 << 20;

struct AvroFile {
    origin: Origin,
    header: Arc<Header>,
    /// Where units are, and their rows; none of a stream.
    units: Vec<Range<u64>>,
    /// Bytes that a block becomes at the most, as far as that is known.
    planned: usize,
    batch_rows: usize,
}

/// Reads the head of `origin`, and of a file the heads of its blocks.
pub(super) fn open(origin: Origin, batch_rows: usize) -> Result<Opened> {
    let head = origin.head(SAMPLE_BYTES)?;
    let header = Header::parse(&head).map_err(|what| origin.error(what))?;
    let schema = schema_of(&header).map_err(|what| origin.error(what))?;
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
    // The block as it was read, as it is walked through, and as the decoder has it, which grows by doubling.
    let reader_bytes = packed
        + 3 * plain
        + header.codec.reader_bytes()
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
        content: Box::new(AvroFile { origin, header, units, planned: plain, batch_rows }),
    })
}

/// The columns of the rows.
fn schema_of(header: &Header) -> Result<SchemaRef, String> {
    let reader = reader(Cursor::new(header.plain()), 1)?;
    Ok(reader.schema())
}

fn reader<R: std::io::BufRead>(source: R, batch_rows: usize) -> Result<Reader<R>, String> {
    let builder = ReaderBuilder::new().with_batch_size(batch_rows).with_tz(Tz::Utc);
    builder.build(source).map_err(|fault| format!("the Avro schema is not read: {fault}"))
}

/// What looking at blocks tells.
struct Surveyed {
    spans: Vec<Span>,
    units: Vec<Range<u64>>,
    rows: Option<u64>,
    /// Bytes of the longest block, as it is and decompressed.
    packed: usize,
    plain: usize,
    /// Bytes of a row, on average, and of the longest.
    row: usize,
    longest: usize,
}

impl Surveyed {
    /// Takes in a block that was decompressed.
    fn see(&mut self, shape: &Shape, rows: u64, data: &[u8]) -> Result<(), String> {
        self.plain = self.plain.max(data.len());
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        self.row = self.row.max(data.len() / rows.max(1));
        self.longest = self.longest.max(shape.longest_of(rows as u64, data)?);
        Ok(())
    }
}

/// Looks through the blocks of a file, and decompresses the longest.
fn of_file(header: &Header, file: &RandomFile) -> Result<Surveyed, String> {
    let mut places: Vec<(u64, Block)> = Vec::new();
    let (mut at, mut all) = (header.length, 0);
    let (mut spans, mut units): (Vec<Span>, Vec<Range<u64>>) = (Vec::new(), Vec::new());
    while at < file.len() {
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
        places.push((block.bytes, block));
        if places.len() > 2 * SAMPLED {
            places.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
            places.truncate(SAMPLED);
        }
    }
    places.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let packed = places.first().map_or(0, |(bytes, _)| *bytes);
    let packed = usize::try_from(packed).unwrap_or(usize::MAX);
    let (row, longest) = (0, 0);
    let mut told = Surveyed { spans, units, rows: Some(all), packed, plain: 0, row, longest };
    for (_, block) in places.iter().take(SAMPLED) {
        let data = block.read(file)?;
        if let Plain::Whole(data) = header.codec.plain(data, usize::MAX)? {
            told.see(&header.shape, block.rows, &data)?;
        }
    }
    // Others may be packed better than those that are longest.
    told.plain += if header.codec == Codec::Null { 0 } else { told.plain / 4 };
    Ok(told)
}

/// Looks at the first block of a stream, if its head has it.
fn of_stream(header: &Header, head: &[u8]) -> Result<Surveyed, String> {
    let spans = vec![Span { part: 0..1, first_row: 0, rows: None }];
    let (units, rows) = (Vec::new(), None);
    let (row, longest, packed) = (64, 64, PASSING_BLOCK);
    let mut told = Surveyed { spans, units, rows, packed, plain: 0, row, longest };
    let start = usize::try_from(header.length).unwrap_or(usize::MAX);
    if let Some((block, data)) = head.get(start..).and_then(Block::first) {
        if let Plain::Whole(data) = header.codec.plain(data.to_vec(), usize::MAX)? {
            told.see(&header.shape, block.rows, &data)?;
        }
        told.packed = told.packed.max(4 * data.len());
    }
    told.plain = PASSING_BLOCK.max(4 * told.plain);
    Ok(told)
}

impl Content for AvroFile {
    fn name(&self) -> &Arc<str> {
        self.origin.name()
    }

    fn faults(&self) -> Faults {
        self.origin.faults()
    }

    fn read(&self, part: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Pieces> {
        let input: Box<dyn Read + Send> = match self.units.get(part.start) {
            Some(unit) => {
                let file = self.origin.random()?;
                Box::new(file.reader_at(unit.start).take(unit.end - unit.start))
            }
            None => {
                let mut stream = self.origin.stream()?;
                let header = std::io::copy(
                    &mut stream.by_ref().take(self.header.length),
                    &mut std::io::sink(),
                );
                header.map_err(|cause| self.origin.unreadable(&cause))?;
                stream
            }
        };
        let start = self.units.get(part.start).map_or(self.header.length, |unit| unit.start);
        let input = BufReader::with_capacity(64 << 10, input);
        let name = self.name();
        let source = Source::new(name, input, Arc::clone(&self.header), start, self.planned, watch);
        let told = source.told();
        let rows = batch_rows.min(self.batch_rows);
        let mut reader = reader(source, rows).map_err(|what| self.origin.error(what))?;
        let mut read = 0;
        let mut ended = false;
        Ok(decoded(std::iter::from_fn(move || {
            if ended {
                return None;
            }
            let next = reader.next().map(|batch| batch.map_err(|fault| told.error(&fault)));
            match next {
                Some(Ok(batch)) => {
                    read += batch.num_rows() as u64;
                    Some(Ok::<RecordBatch, _>(batch))
                }
                Some(Err(error)) => {
                    ended = true;
                    Some(Err(error))
                }
                None => {
                    ended = true;
                    told.check(read).err().map(Err)
                }
            }
        })))
    }
}
