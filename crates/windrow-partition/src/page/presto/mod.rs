//! Presto's SerializedPage format: a header, then a block for every column.
//!
//! ```text
//!  0       4     5              9      13           21              25
//!  | rows  |codec| uncompressed | size |  checksum  | columns block block ... |
//!                                                    \________ size _________/  compressed as one,
//!                                                                               if that is smaller
//!  codec: bit 0 compressed, 1 encrypted, 2 checksummed      all numbers little-endian
//! ```
//!
//! <https://prestodb.io/docs/current/develop/serialized-page.html> is the specification. Where the
//! specification is silent or wrong, `docs/page-format.md` describes the code of Presto and Velox.
//!
//! Known limits: encrypted pages are refused. A page does not name its codec or its types: both
//! sides must know codec and types.

mod block;
mod cursor;
mod read;
mod row_bytes;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use super::common::{MOST_BYTES, PageCodec, damaged, with_schema};
use block::Block;
use cursor::{Cursor, PLACE, int};
use windrow_rows::{Error, Result};

/// Bytes of the header, without the number of columns.
const HEADER: usize = 21;
const COMPRESSED: u8 = 1;
const ENCRYPTED: u8 = 2;
const CHECKSUMMED: u8 = 4;

/// Writes and reads pages in the wire format of Presto and Velox.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_partition::{PageCodec, Partitioner, PrestoPages};
/// use windrow_rows::Order;
///
/// # let users = Int64Array::from_iter_values(0..100);
/// # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
/// let pages = PrestoPages::new(&batch.schema())?.codec(PageCodec::Lz4).checksum(true);
/// let layout = Order::by(["user"]).bind(&batch.schema())?;
/// let mut wire = Vec::new();
/// for (_, rows) in Partitioner::hash(&layout, 4).split(&batch)?.occupied() {
///     wire.reserve_exact(pages.bytes(&rows)?);
///     pages.write(&rows, &mut wire)?;
/// }
/// # let mut wire = &wire[..];
/// # let mut rows = 0;
/// while !wire.is_empty() {
///     let (batch, bytes) = pages.read(wire)?;
///     wire = &wire[bytes..];
/// #   rows += batch.num_rows();
/// }
/// # assert_eq!(rows, 100);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PrestoPages {
    schema: SchemaRef,
    codec: PageCodec,
    checksum: bool,
    most_bytes: usize,
}

impl PrestoPages {
    /// Creates pages of record batches of `schema`, not compressed and without a checksum.
    ///
    /// Numbers and times are sent in the 1, 2, 4 or 8 bytes of their Arrow type; decimals of 128
    /// bits in sign and magnitude, as Presto's long decimals; strings, binaries and fixed-size
    /// binaries as VARIABLE_WIDTH; lists as ARRAY; maps, structs, dictionaries, and run-end arrays
    /// of one run as MAP, ROW, DICTIONARY and RLE. Run-end arrays of several runs are sent as plain
    /// values. Other types have no block.
    ///
    /// # Errors
    /// [`Error::UnsupportedColumn`] for a type without a block: unions, views of lists, decimals of
    /// 256 bits, intervals with months and nanoseconds.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        for field in schema.fields() {
            if !block::is_supported(field.data_type()) {
                return Err(Error::UnsupportedColumn {
                    column: field.name().clone(),
                    data_type: field.data_type().clone(),
                    role: "a column of a Presto page",
                });
            }
        }
        Ok(Self {
            schema: Arc::clone(schema),
            codec: PageCodec::None,
            checksum: false,
            most_bytes: MOST_BYTES,
        })
    }

    windrow_rows::setters! {
        /// Compresses pages that become smaller by compression, and reads compressed pages of this
        /// codec.
        codec: PageCodec;
        /// Sets whether pages are written with a CRC-32 of their bytes. The reader verifies every
        /// checksum present.
        checksum: bool;
        /// Limits the bytes of memory for reading a page; 1 GiB by default.
        most_bytes: usize;
    }

    /// Returns the bytes of the page of `batch`: exact without a codec, an upper bound with a
    /// codec.
    ///
    /// # Cost
    /// A pass over offsets and null buffers; nested columns with nulls are compacted.
    ///
    /// # Errors
    /// As [`PrestoPages::write`].
    pub fn bytes(&self, batch: &RecordBatch) -> Result<usize> {
        let (_, payload) = self.blocks(batch)?;
        Ok(HEADER + payload)
    }

    /// Appends the page of `batch` to `out` and returns its bytes.
    ///
    /// # Cost
    /// One copy of the values that are not null, and another one of the page with a codec.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if columns have other names or types, [`Error::Value`] for a null
    /// where the schema has none, or if the record batch does not fit a page: offsets and sizes
    /// have 31 bits.
    pub fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<usize> {
        let (blocks, payload) = self.blocks(batch)?;
        let start = out.len();
        let rows = int(batch.num_rows())?;
        let uncompressed = int(payload)?;
        // Reserves the exact capacity once: the page never grows.
        out.reserve_exact(HEADER + payload);
        out.resize(start + HEADER, 0);
        out.extend_from_slice(&int(blocks.len())?.to_le_bytes());
        for block in &blocks {
            write::put(block, out);
        }
        debug_assert_eq!(out.len(), start + HEADER + payload);
        let mut marker = 0;
        if let Some(smaller) = self.compressed(&out[start + HEADER..]) {
            out.truncate(start + HEADER);
            out.extend_from_slice(&smaller);
            marker |= COMPRESSED;
        }
        let size = int(out.len() - start - HEADER)?;
        let mut checksum = 0;
        if self.checksum {
            marker |= CHECKSUMMED;
            checksum = crc(&out[start + HEADER..], marker, rows, uncompressed);
        }
        let header = &mut out[start..start + HEADER];
        header[..4].copy_from_slice(&rows.to_le_bytes());
        header[4] = marker;
        header[5..9].copy_from_slice(&uncompressed.to_le_bytes());
        header[9..13].copy_from_slice(&size.to_le_bytes());
        header[13..].copy_from_slice(&checksum.to_le_bytes());
        Ok(out.len() - start)
    }

    /// Reads the first page of `bytes`. Returns its record batch and its number of bytes.
    ///
    /// Columns have the types of the schema, whatever their blocks on the wire.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that are not a page, a wrong checksum, or a page that takes
    /// more than [`PrestoPages::most_bytes`].
    pub fn read(&self, bytes: &[u8]) -> Result<(RecordBatch, usize)> {
        let mut head = Cursor::new(bytes, self.most_bytes);
        let rows = head.count()?;
        let marker = head.take(1)?[0];
        let uncompressed = head.count()?;
        let size = head.count()?;
        let checksum = u64::from_le_bytes(head.array()?);
        let payload = head.take(size)?;
        if marker & !(COMPRESSED | CHECKSUMMED) != 0 {
            let what = if marker & ENCRYPTED != 0 { "encrypted" } else { "of an unknown codec" };
            return Err(damaged(PLACE, format!("the page is {what}: marker {marker}")));
        }
        if marker & CHECKSUMMED != 0 {
            let got = crc(payload, marker, rows as i32, uncompressed as i32);
            if got != checksum {
                let message = format!("expected checksum {checksum:08x}, got {got:08x}");
                return Err(damaged(PLACE, message));
            }
        } else if checksum != 0 {
            // Writers put 0 into an unused checksum, so the mark was lost.
            return Err(damaged(PLACE, format!("checksum {checksum:08x} of a page without one")));
        }
        let inflated;
        let mut claimed = 0;
        let payload = if marker & COMPRESSED != 0 {
            if uncompressed > self.most_bytes {
                return Err(damaged(PLACE, format!("{uncompressed} bytes are more than allowed")));
            }
            claimed = uncompressed;
            inflated = self.inflated(payload, uncompressed)?;
            &inflated
        } else if size != uncompressed {
            let message = format!("expected {uncompressed} bytes, got {size}");
            return Err(damaged(PLACE, message));
        } else {
            payload
        };
        let mut cursor = Cursor::new(payload, self.most_bytes - claimed);
        let columns = cursor.count()?;
        if columns != self.schema.fields().len() {
            let expected = self.schema.fields().len();
            return Err(damaged(PLACE, format!("expected {expected} columns, got {columns}")));
        }
        let fields = self.schema.fields().iter();
        let columns =
            fields.map(|field| read::block(&mut cursor, field.data_type(), Some(rows), 0));
        let columns = columns.collect::<Result<_>>()?;
        if cursor.left() > 0 {
            return Err(damaged(PLACE, format!("{} bytes behind the last column", cursor.left())));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        // A null where the schema allows none is damage of the page as well.
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| damaged(PLACE, error.to_string()))?;
        Ok((batch, HEADER + size))
    }

    /// Returns the blocks of a record batch, and their bytes with the number of columns.
    fn blocks(&self, batch: &RecordBatch) -> Result<(Vec<Block>, usize)> {
        let batch = with_schema(&self.schema, batch.clone())?;
        let blocks: Result<Vec<Block>> = batch.columns().iter().map(Block::of).collect();
        let blocks = blocks?;
        let payload = 4 + blocks.iter().map(Block::bytes).sum::<usize>();
        Ok((blocks, payload))
    }

    fn compressed(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let compressed = match self.codec {
            PageCodec::None => None,
            PageCodec::Lz4 => Some(lz4_flex::block::compress(payload)),
            PageCodec::Zstd => zstd::bulk::compress(payload, 1).ok(),
        };
        compressed.filter(|compressed| compressed.len() < payload.len())
    }

    fn inflated(&self, payload: &[u8], bytes: usize) -> Result<Vec<u8>> {
        /// Maximum yield of a byte: LZ4 encodes runs of 255 bytes in one byte.
        const LZ4_YIELD: usize = 255;
        let refused = |message: String| damaged(PLACE, message);
        let inflated = match self.codec {
            PageCodec::None => {
                return Err(refused("the page is compressed; name the codec".to_owned()));
            }
            PageCodec::Lz4 if bytes / LZ4_YIELD > payload.len() => {
                return Err(refused(format!("{} bytes cannot become {bytes}", payload.len())));
            }
            PageCodec::Lz4 => lz4_flex::block::decompress(payload, bytes)
                .map_err(|error| refused(error.to_string()))?,
            PageCodec::Zstd => zstd::bulk::decompress(payload, bytes)
                .map_err(|error| refused(error.to_string()))?,
        };
        if inflated.len() != bytes {
            return Err(refused(format!("expected {bytes} bytes, got {}", inflated.len())));
        }
        Ok(inflated)
    }
}

/// Returns the CRC-32 of the payload, the marker, the rows and the uncompressed size, in sequence.
fn crc(payload: &[u8], marker: u8, rows: i32, uncompressed: i32) -> u64 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(payload);
    crc.update(&[marker]);
    crc.update(&rows.to_le_bytes());
    crc.update(&uncompressed.to_le_bytes());
    u64::from(crc.finalize())
}
