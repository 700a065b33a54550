//! The Arrow IPC file format: a unit is a range of record batches.
//!
//! The footer lists the blocks of the file. The blocks are checked against the length of the file
//! before memory is allocated, read by position, and decoded one at a time.
//!
//! ```text
//!  ARROW1 | schema | dictionary.. | batch | batch | .. | end | footer { schema, blocks } | length | ARROW1
//! ```
//! The footer follows the last block. If more bytes lie between, the file is a concatenation of
//! several: the last footer lists the blocks of the last file, but the offsets point into the
//! first.
//!
//! Known limit: every unit reads all dictionaries, so a file with dictionaries is one unit.

pub(crate) mod frame;
pub(crate) mod stream;

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, MetadataVersion, convert, root_as_footer};
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::input::formats::opening::{InputFormat, Opening};
use crate::input::opened::{About, Content, Opened, Pieces, Span, decoded};
use crate::input::source::origin::Origin;
use crate::input::source::random::RandomFile;
use crate::limits::Ceiling;
use crate::settings::Format;
use crate::watch::Watch;

use frame::{Frame, plain_bytes};

/// Bytes of record batches in a unit. Enough to make the opening of the file insignificant; few
/// enough to keep all threads busy to the end of a file of a gigabyte.
const UNIT_BYTES: u64 = 16 << 20;

/// Bytes of the footer's length and the magic number, at the end.
const TRAILER: u64 = 10;

/// Maximum bytes between the last block and the footer: the end of the stream, and padding. No
/// writer aligns to more than 64 bytes.
const BEFORE_FOOTER: u64 = 8 + 64;

/// Bytes of a footer and its schema in memory, per byte of the footer: 80 bytes of a field become
/// 240.
const FOOTER_TIMES: u64 = 4;

/// Maximum bytes of a file without blocks besides its schema, with a margin.
const WITHOUT_BLOCKS: u64 = 1 << 10;

struct IpcFile {
    origin: Origin,
    index: Index,
}

/// Positions in the file.
#[derive(Clone)]
struct Index {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Arc<[Block]>,
    batches: Arc<[Block]>,
}

/// Both formats.
pub(crate) enum Arrow {
    File,
    Stream,
}

impl InputFormat for Arrow {
    fn sniff(&self, head: &[u8]) -> bool {
        match self {
            Self::File => head.starts_with(b"ARROW1"),
            Self::Stream => head.starts_with(&[0xFF; 4]),
        }
    }

    fn open(&self, origin: Origin, opening: &mut Opening<'_>) -> Result<Opened> {
        // `.arrow`, `.ipc` and `.feather` are in use for both formats: the content decides.
        let head = origin.head(8)?;
        let told = [Self::File, Self::Stream].into_iter().find(|format| format.sniff(&head));
        match told.as_ref().unwrap_or(self) {
            // The heads of all record batches would take as many requests.
            Self::File if origin.is_far() => stream::open(origin, Format::ArrowFile),
            Self::File => open(opening.at_random(origin)?, opening.options.ceiling),
            Self::Stream => stream::open(origin, Format::ArrowStream),
        }
    }
}

/// Reads the footer of `origin` and the headers of its record batches.
fn open(origin: Origin, ceiling: Ceiling) -> Result<Opened> {
    let file = origin.random()?;
    let footer = file.read_exact(file.len.saturating_sub(TRAILER), 4).unwrap_or_default();
    let footer = footer.first_chunk().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
    let bytes = footer.min(file.len).saturating_mul(FOOTER_TIMES);
    ceiling.admit(bytes, bytes.saturating_mul(2), origin.name(), "its footer")?;
    let index = read_index(&file).map_err(|what| origin.error(what))?;
    let Surveyed { spans, rows, reader_bytes, row_bytes } =
        survey(&file, &index).map_err(|what| origin.error(what))?;
    Ok(Opened {
        format: Format::ArrowFile,
        schema: index.schema.clone(),
        bytes: Some(file.len),
        rows: Some(rows),
        spans,
        reader_bytes,
        row_bytes,
        longest_row: row_bytes,
        copies: 0,
        about: About::default(),
        content: Box::new(IpcFile { origin, index }),
    })
}

fn read_index(file: &RandomFile) -> Result<Index, String> {
    let head = file.read_exact(0, 6).unwrap_or_default();
    if head != b"ARROW1" {
        return Err(if head.starts_with(b"FEA1") {
            "Feather version 1 is not read; write it anew as Arrow IPC".into()
        } else {
            "not an Arrow IPC file; name its format with `input_format`".into()
        });
    }
    let cut_short = || {
        format!(
            "the Arrow file is cut short, at {} bytes: its footer is missing; \
             copy it again, or let its writer finish",
            file.len
        )
    };
    let trailer = file
        .len
        .checked_sub(TRAILER)
        .and_then(|at| file.read_exact(at, TRAILER as usize).ok())
        .filter(|trailer| trailer.ends_with(b"ARROW1"))
        .ok_or_else(cut_short)?;
    let length = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
    let (start, bytes) = (file.len - TRAILER)
        .checked_sub(u64::from(length))
        .and_then(|at| Some((at, file.read_exact(at, length as usize).ok()?)))
        .ok_or_else(cut_short)?;
    let damaged = |what: &dyn std::fmt::Display| format!("the Arrow footer is damaged: {what}");
    let footer = root_as_footer(&bytes).map_err(|cause| damaged(&cause))?;
    let schema = footer.schema().ok_or_else(|| damaged(&"it has no schema"))?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err("the file is of the other byte order, which is not read".into());
    }
    let dictionaries = footer.dictionaries().into_iter().flatten().copied();
    let batches = footer.recordBatches().into_iter().flatten().copied();
    let index = Index {
        schema: Arc::new(convert::fb_to_schema(schema)),
        version: footer.version(),
        dictionaries: dictionaries.collect(),
        batches: batches.collect(),
    };
    let mut blocks = index.dictionaries.iter().chain(index.batches.iter());
    if let Some(block) = blocks.find(|block| end(block).is_none_or(|end| end > file.len)) {
        return Err(damaged(&format!("a block at {} is past the end", block.offset())));
    }
    let blocks = index.dictionaries.iter().chain(index.batches.iter());
    let more = match blocks.filter_map(end).max() {
        Some(end) => start > end.saturating_add(BEFORE_FOOTER),
        None => more_than_a_schema(file, start, length.into()),
    };
    if more {
        return Err(format!(
            "the Arrow footer at {start} does not tell of all bytes before it: if these are several files \
             in a row, name each as an input of its own; else the file is damaged"
        ));
    }
    Ok(index)
}

/// Returns the end of `block`; `None` if its position is impossible.
fn end(block: &Block) -> Option<u64> {
    let part = |value: i64| u64::try_from(value).ok();
    let head = part(block.metaDataLength().into())?;
    part(block.offset())?.checked_add(head)?.checked_add(part(block.bodyLength())?)
}

/// Returns whether more than a schema precedes a footer of `footer` bytes at `start`. Some writers
/// write the schema without a frame. The footer also contains the schema, and so bounds its length.
fn more_than_a_schema(file: &RandomFile, start: u64, footer: u64) -> bool {
    start > footer.saturating_mul(2).saturating_add(WITHOUT_BLOCKS)
        || file
            .read_exact(0, usize::try_from(start).unwrap_or(usize::MAX))
            .is_ok_and(|bytes| memchr::memmem::find(&bytes, b"ARROW1ARROW1").is_some())
}

/// The facts in the heads of all blocks.
struct Surveyed {
    spans: Vec<Span>,
    rows: u64,
    /// Heap for the dictionaries and the largest record batch, as read and as decompressed.
    reader_bytes: usize,
    /// Average bytes of a row, in the unit with the longest rows.
    row_bytes: usize,
}

/// Inspects the record batches, and groups the batches into units.
fn survey(file: &RandomFile, index: &Index) -> Result<Surveyed, String> {
    let mut spans: Vec<Span> = Vec::new();
    let (mut rows, mut bytes, mut plain, mut largest) = (0, 0, 0_u64, 0_u64);
    let mut longest = 0;
    for (ordinal, block) in index.batches.iter().enumerate() {
        let frame = read_head(file, block)?;
        let in_batch = frame
            .rows()?
            .ok_or_else(|| format!("the file is damaged: block {ordinal} is not a record batch"))?;
        let body = block.bodyLength().unsigned_abs();
        let unpacked = plain_of(file, block, &frame)?;
        largest = largest.max(body.saturating_add(unpacked));
        bytes += body;
        match spans.last_mut() {
            Some(span) if bytes <= UNIT_BYTES || !index.dictionaries.is_empty() => {
                span.part.end = ordinal + 1;
                span.rows = span.rows.map(|rows| rows + in_batch);
            }
            _ => {
                (bytes, plain) = (body, 0);
                let part = ordinal..ordinal + 1;
                spans.push(Span { part, first_row: rows, rows: Some(in_batch) });
            }
        }
        plain = plain.saturating_add(body.max(unpacked));
        let in_span = spans.last().and_then(|span| span.rows).unwrap_or(0);
        longest = longest.max(plain / in_span.max(1));
        rows += in_batch;
    }
    let mut held = largest;
    for block in index.dictionaries.iter() {
        let plain = plain_of(file, block, &read_head(file, block)?)?;
        held = held.saturating_add(block.bodyLength().unsigned_abs()).saturating_add(plain);
    }
    let reader_bytes = usize::try_from(held).unwrap_or(usize::MAX);
    let row_bytes = usize::try_from(longest).unwrap_or(usize::MAX);
    Ok(Surveyed { spans, rows, reader_bytes, row_bytes })
}

/// Returns the decompressed bytes of a block's compressed buffers.
fn plain_of(file: &RandomFile, block: &Block, frame: &Frame) -> Result<u64, String> {
    let body = block.offset().unsigned_abs() + u64::from(block.metaDataLength().unsigned_abs());
    plain_bytes(frame, &|at| file.read_exact(body.checked_add(at)?, 8).ok()?.try_into().ok())
}

/// Reads the header of a block.
fn read_head(file: &RandomFile, block: &Block) -> Result<Frame, String> {
    let length = block.metaDataLength().unsigned_abs() as usize;
    let bytes = file
        .read_exact(block.offset().unsigned_abs(), length)
        .map_err(|cause| cause.to_string())?;
    Frame::of_block(bytes)
}

/// Reads a whole block, and checks its lengths.
fn read_block(file: &RandomFile, block: &Block) -> Result<Buffer, String> {
    let head = block.metaDataLength().unsigned_abs() as usize;
    let length = head + block.bodyLength().unsigned_abs() as usize;
    let bytes = file
        .read_exact(block.offset().unsigned_abs(), length)
        .map_err(|cause| cause.to_string())?;
    let frame = Frame::of_block(bytes[..head].to_vec())?;
    let body = &bytes[head..];
    plain_bytes(&frame, &|at| {
        let at = usize::try_from(at).ok()?;
        body.get(at..at.checked_add(8)?)?.try_into().ok()
    })?;
    Ok(Buffer::from_vec(bytes))
}

impl Content for IpcFile {
    fn read(&self, part: Range<usize>, _: usize, _: &Watch) -> Result<Pieces> {
        let file = self.origin.random()?;
        let index = self.index.clone();
        let mut decoder = FileDecoder::new(index.schema.clone(), index.version);
        for block in index.dictionaries.iter() {
            let bytes = read_block(&file, block).map_err(|what| self.origin.error(what))?;
            decoder.read_dictionary(block, &bytes).map_err(|cause| self.origin.error(cause))?;
        }
        let name = self.origin.name().clone();
        Ok(decoded(part.filter_map(move |ordinal| {
            let block = &index.batches[ordinal];
            let batch = read_block(&file, block).and_then(|bytes| {
                decoder.read_record_batch(block, &bytes).map_err(|cause| cause.to_string())
            });
            let error = |what| Error::data(format!("{name}: record batch {ordinal}: {what}"));
            batch.map_err(error).transpose()
        })))
    }
}
