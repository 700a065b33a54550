//! Arrow IPC streams as pages.
//!
//! ```text
//!  | schema message | dictionaries | record batch message | FFFFFFFF 0 |     an Arrow IPC stream
//!  | "WCRC" | crc32c of the stream |                                         then a checksum
//! ```
//!
//! A page stands alone: any reader of Arrow streams reads the page, and stops before the checksum.
//!
//! Known limits: a page repeats its schema. Dictionaries and data of views are sent whole, even by
//! a slice that uses few of their values. Arrow's stream reader panics on some damaged bytes: the
//! panic is caught and becomes an error, but the panic hook runs, and a process that aborts on
//! panics ends. Checksums are verified before.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions,
    write_message,
};
use arrow_ipc::{CompressionType, MessageHeader, root_as_message};
use arrow_schema::SchemaRef;

use super::common::{MOST_BYTES, PageCodec, damaged, with_schema};
use windrow_rows::Result;

const PLACE: &str = "Arrow page";
/// First bytes of a checksum.
const MARK: &[u8; 4] = b"WCRC";
/// Last bytes of a stream.
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];
/// Messages are padded to a multiple of `ALIGNMENT` bytes, prefix included. The prefix is a mark
/// and a length.
const ALIGNMENT: usize = 64;
const PREFIX: usize = 8;

/// Writes and reads pages that are Arrow IPC streams of one record batch each.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_partition::{IpcPages, PageCodec};
///
/// # let users = Int64Array::from_iter_values(0..100);
/// # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
/// let pages = IpcPages::new(&batch.schema()).codec(PageCodec::Zstd).checksum(true);
/// let mut wire = Vec::new();
/// pages.write(&batch, &mut wire)?;
/// let (read, bytes) = pages.read(&wire)?;
/// assert_eq!((read, bytes), (batch, wire.len()));
/// # Ok::<(), windrow_rows::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IpcPages {
    schema: SchemaRef,
    codec: PageCodec,
    checksum: bool,
    most_bytes: usize,
}

/// The messages of a page, laid out.
struct Messages {
    options: IpcWriteOptions,
    messages: Vec<EncodedData>,
    bytes: usize,
}

impl IpcPages {
    /// Creates pages of record batches of `schema`, not compressed and without a checksum.
    pub fn new(schema: &SchemaRef) -> Self {
        Self {
            schema: Arc::clone(schema),
            codec: PageCodec::None,
            checksum: false,
            most_bytes: MOST_BYTES,
        }
    }

    windrow_rows::setters! {
        /// Compresses the buffers that compression makes smaller. Pages of any codec can be read.
        codec: PageCodec;
        /// Sets whether pages are written with a CRC-32C, and refused without one.
        checksum: bool;
        /// Limits the bytes of a page together with the decompressed bytes of its buffers; 1 GiB by
        /// default.
        most_bytes: usize;
    }

    /// Returns the exact number of bytes of the page of `batch`.
    ///
    /// # Cost
    /// As much as [`IpcPages::write`], less one copy.
    ///
    /// # Errors
    /// As [`IpcPages::write`].
    pub fn bytes(&self, batch: &RecordBatch) -> Result<usize> {
        Ok(self.messages(batch)?.bytes)
    }

    /// Appends the page of `batch` to `out` and returns its bytes. `out` grows once, by exactly the
    /// page.
    ///
    /// # Cost
    /// One copy of the columns, and a second one of columns that are sliced or compressed.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`](windrow_rows::Error::SchemaMismatch) if columns have other names
    /// or types, [`Error::Value`](windrow_rows::Error::Value) for a null where the schema has none,
    /// [`Error::Arrow`](windrow_rows::Error::Arrow) for types without an Arrow IPC form.
    pub fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<usize> {
        let Messages { options, messages, bytes } = self.messages(batch)?;
        let start = out.len();
        out.reserve_exact(bytes);
        for message in messages {
            write_message(&mut *out, message, &options)?;
        }
        out.extend_from_slice(&END);
        if self.checksum {
            let crc = crc32c::crc32c(&out[start..]);
            out.extend_from_slice(MARK);
            out.extend_from_slice(&crc.to_le_bytes());
        }
        debug_assert_eq!(out.len() - start, bytes);
        Ok(out.len() - start)
    }

    /// Reads the first page of `bytes`. Returns its record batch and its number of bytes.
    ///
    /// # Cost
    /// One copy of the page, and a pass over strings, offsets and keys, which are validated.
    ///
    /// # Errors
    /// [`Error::Corrupt`](windrow_rows::Error::Corrupt) for bytes that are not a page or are
    /// damaged, or a page that is larger than [`IpcPages::most_bytes`].
    pub fn read(&self, bytes: &[u8]) -> Result<(RecordBatch, usize)> {
        let stream = self.stream_bytes(bytes)?;
        let mut length = stream;
        if self.checksum {
            let tail = bytes.get(stream..stream + 8).filter(|tail| tail.starts_with(MARK));
            let tail =
                tail.ok_or_else(|| damaged(PLACE, "expected a checksum behind the stream"))?;
            let mut crc = [0; 4];
            crc.copy_from_slice(&tail[4..]);
            let (expected, got) = (u32::from_le_bytes(crc), crc32c::crc32c(&bytes[..stream]));
            if expected != got {
                let message = format!("expected checksum {expected:08x}, got {got:08x}");
                return Err(damaged(PLACE, message));
            }
            length += 8;
        }
        // Arrow's reader verifies flatbuffers and validates arrays, but unwraps some unverified
        // values.
        let read = std::panic::catch_unwind(|| self.decode(&bytes[..stream]));
        let batch = read.map_err(|_| damaged(PLACE, "buffers that do not fit their message"))??;
        Ok((batch, length))
    }

    /// Decodes the only record batch of a stream.
    fn decode(&self, stream: &[u8]) -> Result<RecordBatch> {
        let failed = |error: arrow_schema::ArrowError| damaged(PLACE, error.to_string());
        let mut buffer = Buffer::from(stream);
        let mut decoder = StreamDecoder::new();
        let mut found = None;
        while !buffer.is_empty() {
            match decoder.decode(&mut buffer).map_err(failed)? {
                Some(_) if found.is_some() => {
                    return Err(damaged(PLACE, "more than one record batch"));
                }
                Some(batch) => found = Some(batch),
                None => {}
            }
        }
        decoder.finish().map_err(failed)?;
        let batch = found.ok_or_else(|| damaged(PLACE, "no record batch"))?;
        with_schema(&self.schema, batch).map_err(|error| damaged(PLACE, error.to_string()))
    }

    /// Walks the messages at the start of `bytes` and returns their end. Checks the sizes that the
    /// messages claim before any memory is allocated.
    fn stream_bytes(&self, bytes: &[u8]) -> Result<usize> {
        let short = || damaged(PLACE, "the page is cut short");
        let int = |at: usize| -> Result<u32> {
            let mut int = [0; 4];
            int.copy_from_slice(bytes.get(at..at + 4).ok_or_else(short)?);
            Ok(u32::from_le_bytes(int))
        };
        let mut at = 0;
        let mut inflated = 0usize;
        loop {
            if int(at)? != u32::MAX {
                return Err(damaged(PLACE, format!("no message at byte {at}")));
            }
            let length = int(at + 4)? as usize;
            at += PREFIX;
            if length == 0 {
                return Ok(at);
            }
            let head = bytes.get(at..at.saturating_add(length)).ok_or_else(short)?;
            let message =
                root_as_message(head).map_err(|error| damaged(PLACE, error.to_string()))?;
            let body_bytes = usize::try_from(message.bodyLength()).map_err(|_| short())?;
            at += length;
            let body = bytes.get(at..at.saturating_add(body_bytes)).ok_or_else(short)?;
            at += body_bytes;
            let batch = match message.header_type() {
                MessageHeader::RecordBatch => message.header_as_record_batch(),
                MessageHeader::DictionaryBatch => {
                    message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
                }
                _ => None,
            };
            if let Some(batch) = batch {
                inflated = inflated.saturating_add(claimed(&batch, body)?);
            }
            if at.saturating_add(inflated) > self.most_bytes {
                return Err(damaged(PLACE, format!("more than {} bytes", self.most_bytes)));
            }
        }
    }

    fn messages(&self, batch: &RecordBatch) -> Result<Messages> {
        let mut batch = with_schema(&self.schema, batch.clone())?;
        if batch.num_rows() == 0 {
            // An empty slice of runs would be written as a run of no rows, which no reader accepts.
            batch = RecordBatch::new_empty(Arc::clone(&self.schema));
        }
        let compression = match self.codec {
            PageCodec::None => None,
            PageCodec::Lz4 => Some(CompressionType::LZ4_FRAME),
            PageCodec::Zstd => Some(CompressionType::ZSTD),
        };
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let generator = IpcDataGenerator::default();
        let mut tracker = DictionaryTracker::new(false);
        let mut context = IpcWriteContext::default();
        let schema =
            generator.schema_to_bytes_with_dictionary_tracker(&self.schema, &mut tracker, &options);
        let (dictionaries, rows) =
            generator.encode(&batch, &mut tracker, &options, &mut context)?;
        let mut messages = vec![schema];
        messages.extend(dictionaries);
        messages.push(rows);
        let padded = |message: &EncodedData| {
            (PREFIX + message.ipc_message.len()).next_multiple_of(ALIGNMENT)
                + message.arrow_data.len().next_multiple_of(ALIGNMENT)
        };
        let stream = messages.iter().map(padded).sum::<usize>() + END.len();
        let bytes = stream + if self.checksum { MARK.len() + 4 } else { 0 };
        Ok(Messages { options, messages, bytes })
    }
}

/// Returns the decompressed bytes that the compressed buffers claim. Fails if a buffer lies outside
/// of `body`, or if a claim exceeds the codec's ratio.
fn claimed(batch: &arrow_ipc::RecordBatch<'_>, body: &[u8]) -> Result<usize> {
    /// Maximum yield of a byte: LZ4 encodes runs of 255 bytes in one byte, zstd a block of 128 KiB
    /// in four.
    const LZ4_YIELD: usize = 255;
    const ZSTD_YIELD: usize = 32 << 10;
    let codec = batch.compression().map(|compression| compression.codec());
    let mut total = 0usize;
    for buffer in batch.buffers().into_iter().flatten() {
        let place = (usize::try_from(buffer.offset()).ok())
            .zip(usize::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| body.get(offset..offset.checked_add(length)?));
        let buffer = place.ok_or_else(|| damaged(PLACE, "a buffer outside of its message"))?;
        let (Some(codec), Some(head)) = (codec, buffer.get(..8)) else { continue };
        let mut length = [0; 8];
        length.copy_from_slice(head);
        let length = i64::from_le_bytes(length);
        let most = match codec {
            CompressionType::ZSTD => ZSTD_YIELD,
            _ => LZ4_YIELD,
        };
        // -1: the buffer is not compressed.
        let length = if length == -1 { 0 } else { usize::try_from(length).unwrap_or(usize::MAX) };
        if length / most > buffer.len() {
            let message = format!("{} bytes cannot become {length}", buffer.len());
            return Err(damaged(PLACE, message));
        }
        total = total.saturating_add(length);
    }
    Ok(total)
}
