//! Record batches in the store of a pool.
//!
//! ```text
//! RecordBatch --block of `flat`--> extent in the store --buffer, used again--> RecordBatch
//! ```
//!
//! Invariant: a buffer that was read into goes back to the pool when nothing refers to its bytes.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;

use super::flat;
use windrow_pool::{Decision, Extent, Pool};
use windrow_rows::{Error, Result};

/// The rows of a record batch, in the temporary files of a pool. Dropping them frees their space.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_partition::StoredRows;
/// use windrow_pool::{Budget, Pool};
///
/// # let users = Int64Array::from_iter_values(0..1000);
/// # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
/// let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(16 << 20))?;
/// let mut scratch = Vec::new();
/// let stored = StoredRows::store(&batch, &pool, &mut scratch)?;
/// assert_eq!(stored.read()?, batch);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
///
/// # Cost
/// Two copies of the used bytes to store them, and two to read them back.
#[derive(Debug)]
pub struct StoredRows {
    schema: SchemaRef,
    pool: Pool,
    extent: Extent,
}

impl StoredRows {
    /// Stores the rows of `batch`. `scratch` has their bytes meanwhile, and keeps its capacity for
    /// the next call.
    ///
    /// # Errors
    /// [`Error::TempSpace`] and [`Error::Io`] if the rows cannot be stored, [`Error::Arrow`] if
    /// arrays cannot be cut out, which never happens to arrays built by Arrow.
    pub fn store(batch: &RecordBatch, pool: &Pool, scratch: &mut Vec<u8>) -> Result<Self> {
        scratch.clear();
        flat::Writer::new(batch).write(0..batch.num_rows(), scratch)?;
        Ok(Self { schema: batch.schema(), pool: pool.clone(), extent: write(pool, scratch)? })
    }

    /// Reads the rows back. The record batch belongs to the caller and shares no memory of the pool,
    /// apart from columns with children.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] if the rows cannot be read.
    pub fn read(self) -> Result<RecordBatch> {
        let mut out = VecDeque::new();
        let bytes = [read(&self.pool, &self.extent, self.pool.chunk_bytes())?];
        flat::read(&self.schema, &bytes, true, &mut out)?;
        out.pop_front().ok_or_else(|| Error::Corrupt {
            place: "rows in the store".into(),
            message: "they have no block".into(),
        })
    }
}

/// Writes bytes to the store. They are written once and read once, so the pool compresses them like
/// data that is stored for long.
pub(super) fn write(pool: &Pool, bytes: &[u8]) -> Result<Extent> {
    let Decision::Spill { to, codec } = pool.decide(bytes.len(), 1, false) else {
        unreachable!("the pool spills what must not stay")
    };
    pool.store(bytes, (to, codec))
}

/// Reads bytes back, into a buffer of at least `room` bytes. The pool recycles those of a chunk.
pub(super) fn read(pool: &Pool, extent: &Extent, room: usize) -> Result<Buffer> {
    let buffer = pool.load(extent, room)?;
    let loaded = Loaded { pool: pool.clone(), len: extent.len(), buffer: Some(buffer) };
    Ok(Buffer::from(bytes::Bytes::from_owner(loaded)))
}

/// Bytes that were read back, in a buffer that is recycled.
struct Loaded {
    pool: Pool,
    buffer: Option<windrow_pool::Buffer>,
    len: usize,
}

impl AsRef<[u8]> for Loaded {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[..self.len])
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.recycle(buffer);
        }
    }
}
