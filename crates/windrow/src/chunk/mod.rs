//! Chunks: sorted rows, the unit that is merged, spilled and handed over.
//!
//! ```text
//! buffer   | row 0 | row 1 | ... | row n-1 |       room for the starts, used when it is spilled
//! starts   0       o1                      used    none if all rows have one length
//! ```
//!
//! Invariant: a chunk is not empty; its rows ascend strictly under the layout, tails aside; under
//! the rules that keep one row of a key, no two rows have the same key, and no diff is zero; it holds
//! at most the pool's chunk size, or one row.

mod arrange;
mod builder;
mod chunker;
mod output;
mod view;
mod wraps;

use std::sync::{Arc, OnceLock};

pub(crate) use arrange::{Arranger, Place};
pub use builder::Finish;
pub(crate) use builder::{Builder, Findings, describe};
pub(crate) use chunker::Chunker;
pub(crate) use view::{Starts, View};
pub(crate) use wraps::Wraps;

use crate::error::{Error, Result};
use crate::order::Layout;
use crate::order::code::OrderedCode;
use crate::pool::{Buffer, Extent, Lease, Pool};

/// Bytes that the start of a row takes when a chunk is spilled.
pub(crate) const OFFSET_BYTES: usize = 4;

/// A row longer than this is not kept in memory as the end of a chunk on disk.
const LONGEST_END: usize = 1 << 10;

/// Where the rows of a chunk start.
#[derive(Debug)]
enum Places {
    Every(usize),
    At(Vec<u32>),
}

/// The least and the greatest time code of some rows.
pub(crate) type TimeCodes = (u64, u64);

/// Sorted rows in memory.
#[derive(Debug)]
pub(crate) struct Chunk {
    pool: Pool,
    /// Taken when the chunk drops, to be recycled.
    buffer: Option<Buffer>,
    used: usize,
    places: Places,
    /// For the starts; the buffer has its own.
    lease: Lease,
    /// Found when first asked for.
    times: OnceLock<TimeCodes>,
}

impl Chunk {
    /// A chunk of rows of `stride` bytes, in the first `used` bytes of `buffer`.
    fn strided(pool: &Pool, buffer: Buffer, used: usize, stride: usize) -> Self {
        debug_assert!(used > 0 && used.is_multiple_of(stride), "whole rows, at least one");
        let lease = pool.budget().lease(0);
        let places = Places::Every(stride);
        let times = OnceLock::new();
        Self { pool: pool.clone(), buffer: Some(buffer), used, places, lease, times }
    }

    /// A chunk of rows that start at `starts`, the last of which is the end.
    fn varying(pool: &Pool, buffer: Buffer, mut starts: Vec<u32>) -> Self {
        debug_assert!(starts.len() > 1, "a chunk is not empty");
        starts.shrink_to_fit();
        let lease = pool.budget().lease(size_of_val(&starts[..]));
        let used = *starts.last().unwrap_or(&0) as usize;
        let places = Places::At(starts);
        let times = OnceLock::new();
        Self { pool: pool.clone(), buffer: Some(buffer), used, places, lease, times }
    }

    pub(crate) fn rows(&self) -> View<'_> {
        let bytes = self.buffer.as_ref().map_or(&[][..], |buffer| &buffer[..self.used]);
        let starts = match &self.places {
            Places::Every(stride) => Starts::Every(*stride),
            Places::At(starts) => Starts::At(starts),
        };
        View { bytes, starts }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows().len()
    }

    /// Bytes that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// Bytes of memory that the chunk holds.
    pub(crate) fn leased_bytes(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len()) + self.lease.bytes()
    }

    /// The least and the greatest time code of the rows, whose times take `width` bytes.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> TimeCodes {
        *self.times.get_or_init(|| {
            let rows = self.rows();
            let (mut least, mut greatest) = (u64::MAX, 0);
            for index in 0..rows.len() {
                let code = code_of(time_of(layout, width, rows.row(index)));
                (least, greatest) = (least.min(code), greatest.max(code));
            }
            (least, greatest)
        })
    }

    /// Writes the chunk out; its memory is free again, unless somebody else has the chunk too.
    pub(crate) fn spill(this: Arc<Self>) -> Result<SpilledChunk> {
        let rows = this.rows();
        let count = rows.len();
        let times = this.times.get().copied();
        let ends = [rows.row(0), rows.row(count - 1)];
        let short = ends.iter().all(|row| row.len() <= LONGEST_END);
        let ends = short.then(|| ends.map(<[u8]>::to_vec));
        let stride = match this.places {
            Places::Every(stride) => Some(stride),
            Places::At(_) => None,
        };
        let used = this.used;
        let end = if stride.is_some() { used } else { used + count * OFFSET_BYTES };
        let (pool, mut buffer, places) = match Arc::try_unwrap(this) {
            Ok(mut own) => {
                let buffer = own.buffer.take().ok_or_else(|| corrupt("a chunk without memory"))?;
                let places = std::mem::replace(&mut own.places, Places::Every(1));
                (own.pool.clone(), buffer, places)
            }
            Err(shared) => {
                let mut buffer = shared.pool.buffer(end)?;
                buffer[..used].copy_from_slice(shared.rows().bytes);
                let places = match &shared.places {
                    Places::Every(stride) => Places::Every(*stride),
                    Places::At(starts) => Places::At(starts.clone()),
                };
                (shared.pool.clone(), buffer, places)
            }
        };
        if let Places::At(starts) = &places {
            for (target, start) in buffer[used..end].chunks_exact_mut(4).zip(&starts[1..]) {
                target.copy_from_slice(&start.to_le_bytes());
            }
        }
        let extent = pool.store(&buffer[..end])?;
        pool.recycle(buffer);
        Ok(SpilledChunk { extent, rows: count, used, stride, times, ends })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.recycle(buffer);
        }
    }
}

/// Sorted rows on disk.
#[derive(Debug)]
pub(crate) struct SpilledChunk {
    extent: Extent,
    rows: usize,
    used: usize,
    stride: Option<usize>,
    times: Option<TimeCodes>,
    /// The first row and the last, unless they are long.
    ends: Option<[Vec<u8>; 2]>,
}

impl SpilledChunk {
    /// Reads the chunk back.
    pub(crate) fn load(&self, pool: &Pool) -> Result<Chunk> {
        let buffer = pool.load(&self.extent)?;
        let chunk = if let Some(stride) = self.stride {
            if self.extent.len() != self.used {
                return Err(corrupt("more or fewer bytes than rows"));
            }
            Chunk::strided(pool, buffer, self.used, stride)
        } else {
            if self.extent.len() != self.used + self.rows * OFFSET_BYTES {
                return Err(corrupt("more or fewer bytes than rows and their ends"));
            }
            let mut starts = Vec::with_capacity(self.rows + 1);
            starts.push(0);
            let ends = buffer[self.used..self.extent.len()].chunks_exact(OFFSET_BYTES);
            starts.extend(ends.map(|end| u32::from_le_bytes([end[0], end[1], end[2], end[3]])));
            if !starts.is_sorted() || starts.last() != Some(&(self.used as u32)) {
                return Err(corrupt("row ends that do not ascend to the end"));
            }
            Chunk::varying(pool, buffer, starts)
        };
        if let Some(times) = self.times {
            let _first = chunk.times.set(times);
        }
        Ok(chunk)
    }

    pub(crate) fn prefetch(&self, pool: &Pool) {
        pool.prefetch(&self.extent);
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// The first row and the last, unless they are long.
    pub(crate) fn ends(&self) -> Option<[&[u8]; 2]> {
        self.ends.as_ref().map(|[first, last]| [&first[..], &last[..]])
    }

    /// The least and the greatest time code, if they are known without reading the rows.
    pub(crate) fn times(&self) -> Option<TimeCodes> {
        self.times
    }
}

/// Bytes of the time of a row; 0 if it has none.
pub(crate) fn time_width(layout: &Layout) -> usize {
    let data_type = |column| layout.schema().field(column).data_type();
    layout
        .time()
        .and_then(|column| OrderedCode::of(data_type(column)))
        .map_or(0, OrderedCode::width)
}

/// The time of a row, which takes `width` bytes before the tail.
#[inline(always)]
pub(crate) fn time_of<'a>(layout: &Layout, width: usize, row: &'a [u8]) -> &'a [u8] {
    let end = row.len() - layout.tail().len();
    &row[end - width..end]
}

/// Up to eight bytes as a number that has their order.
#[inline(always)]
pub(crate) fn code_of(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_be_bytes(bytes);
    }
    bytes.iter().fold(0, |code, &byte| code << 8 | u64::from(byte))
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "spilled chunk".into(), message: message.into() }
}
