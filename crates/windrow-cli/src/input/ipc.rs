//! The Arrow IPC file format: a unit is a range of record batches.
//!
//! The footer lists the blocks of the file. They are checked against its length before memory is taken
//! for any, read by position, and decoded one at a time.
//!
//! ```text
//!  ARROW1 | schema | dictionary.. | batch | batch | .. | footer { schema, blocks } | length | ARROW1
//! ```
//! Known limit: every unit of a file with dictionaries reads them all, so such a file is one unit.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{Block, MetadataVersion, convert, root_as_footer};

use crate::error::Result;
use crate::format::Format;

use super::origin::{Origin, RandomFile};
use super::stream::{Frame, plain_bytes};
use super::{Batches, Content, Opened, Span};

/// Bytes of record batches in a unit: enough that opening the file is nothing beside reading it, few
/// enough that a file of a gigabyte keeps all threads busy to the end.
const UNIT_BYTES: u64 = 16 << 20;

/// The magic at the end, and the length of the footer before it.
const TRAILER: u64 = 10;

struct IpcFile {
    origin: Origin,
    index: Index,
}

/// Where things are in the file.
#[derive(Clone)]
struct Index {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Arc<[Block]>,
    batches: Arc<[Block]>,
}

/// Reads the footer of `origin` and the headers of its record batches.
pub(super) fn open(origin: Origin) -> Result<Opened> {
    let file = origin.random()?;
    let index = read_index(&file).map_err(|what| origin.error(what))?;
    let (spans, rows) = plan(&file, &index).map_err(|what| origin.error(what))?;
    let reader_bytes = held(&file, &index).map_err(|what| origin.error(what))?;
    let row_bytes = spans.iter().map(|span| row_bytes(&index, span)).max().unwrap_or(0);
    Ok(Opened {
        format: Format::ArrowFile,
        schema: index.schema.clone(),
        bytes: Some(file.len()),
        rows: Some(rows),
        spans,
        reader_bytes,
        row_bytes,
        content: Box::new(IpcFile { origin, index }),
    })
}

fn read_index(file: &RandomFile) -> Result<Index, String> {
    let head = file.read_exact(0, 6).unwrap_or_default();
    if head != b"ARROW1" {
        return Err(if head.starts_with(b"FEA1") {
            "Feather version 1 is not read; write it anew as Arrow IPC".into()
        } else {
            "not an Arrow IPC file; name its format with --input-format".into()
        });
    }
    let cut_short = || {
        format!(
            "the Arrow file is cut short, at {} bytes: its footer is missing; \
             copy it again, or let its writer finish",
            file.len()
        )
    };
    let trailer = file
        .len()
        .checked_sub(TRAILER)
        .and_then(|at| file.read_exact(at, TRAILER as usize).ok())
        .filter(|trailer| trailer.ends_with(b"ARROW1"))
        .ok_or_else(cut_short)?;
    let length = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
    let bytes = (file.len() - TRAILER)
        .checked_sub(u64::from(length))
        .and_then(|at| file.read_exact(at, length as usize).ok())
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
    if let Some(block) = blocks.find(|block| !inside(block, file.len())) {
        return Err(damaged(&format!("a block at {} is past the end", block.offset())));
    }
    Ok(index)
}

fn inside(block: &Block, len: u64) -> bool {
    let part = |value: i64| u64::try_from(value).ok();
    let end = part(block.offset())
        .zip(part(block.metaDataLength().into()))
        .zip(part(block.bodyLength()))
        .and_then(|((offset, head), body)| offset.checked_add(head)?.checked_add(body));
    end.is_some_and(|end| end <= len)
}

/// Cuts the record batches into units.
fn plan(file: &RandomFile, index: &Index) -> Result<(Vec<Span>, u64), String> {
    let mut spans: Vec<Span> = Vec::new();
    let mut rows = 0;
    let mut bytes = 0;
    for (ordinal, block) in index.batches.iter().enumerate() {
        let frame = read_head(file, block)?;
        let in_batch = frame
            .rows()?
            .ok_or_else(|| format!("the file is damaged: block {ordinal} is not a record batch"))?;
        bytes += block.bodyLength() as u64;
        match spans.last_mut() {
            Some(span) if bytes <= UNIT_BYTES || !index.dictionaries.is_empty() => {
                span.part.end = ordinal + 1;
                span.rows = span.rows.map(|rows| rows + in_batch);
            }
            _ => {
                bytes = block.bodyLength() as u64;
                spans.push(Span {
                    part: ordinal..ordinal + 1,
                    first_row: rows,
                    rows: Some(in_batch),
                });
            }
        }
        rows += in_batch;
    }
    Ok((spans, rows))
}

/// Bytes of a row of `span`, on average.
fn row_bytes(index: &Index, span: &Span) -> usize {
    let bytes = index.batches[span.part.clone()].iter().map(Block::bodyLength).sum::<i64>();
    let rows = i64::try_from(span.rows.unwrap_or(0)).unwrap_or(i64::MAX).max(1);
    usize::try_from(bytes / rows).unwrap_or(0)
}

/// The heap for the dictionaries and the largest record batch, as read and as decompressed.
fn held(file: &RandomFile, index: &Index) -> Result<usize, String> {
    let largest = index.batches.iter().max_by_key(|block| block.bodyLength());
    let mut held = 0_u64;
    for block in index.dictionaries.iter().chain(largest) {
        let frame = read_head(file, block)?;
        let body = block.offset() as u64 + block.metaDataLength() as u64;
        let prefix = |at: u64| -> Option<[u8; 8]> {
            file.read_exact(body.checked_add(at)?, 8).ok()?.try_into().ok()
        };
        held += block.bodyLength() as u64 + plain_bytes(&frame, &prefix)?;
    }
    Ok(usize::try_from(held).unwrap_or(usize::MAX))
}

/// The header of a block.
fn read_head(file: &RandomFile, block: &Block) -> Result<Frame, String> {
    let length = block.metaDataLength().unsigned_abs() as usize;
    let bytes = file
        .read_exact(block.offset().unsigned_abs(), length)
        .map_err(|cause| cause.to_string())?;
    Frame::of_block(bytes)
}

/// A whole block, checked.
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
    fn name(&self) -> &Arc<str> {
        self.origin.name()
    }

    fn read(&self, part: Range<usize>, _batch_rows: usize) -> Result<Batches> {
        let file = self.origin.random()?;
        let index = self.index.clone();
        let mut decoder = FileDecoder::new(index.schema.clone(), index.version);
        for block in index.dictionaries.iter() {
            let bytes = read_block(&file, block).map_err(|what| self.origin.error(what))?;
            decoder.read_dictionary(block, &bytes).map_err(|cause| self.origin.error(cause))?;
        }
        let name = self.name().clone();
        Ok(Box::new(part.filter_map(move |ordinal| {
            decode(&decoder, &file, &index.batches[ordinal])
                .map_err(|what| {
                    crate::error::CliError::Data(format!("{name}: record batch {ordinal}: {what}"))
                })
                .transpose()
        })))
    }
}

fn decode(
    decoder: &FileDecoder,
    file: &RandomFile,
    block: &Block,
) -> Result<Option<RecordBatch>, String> {
    let bytes = read_block(file, block)?;
    decoder.read_record_batch(block, &bytes).map_err(|cause| cause.to_string())
}
