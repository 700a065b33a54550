//! The loaded bytes of an object, and reads from them.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::lane::Lane;
use super::object::Object;
use super::sizes::{HELD, RANGE};
use crate::lock::lock;

/// Bytes to fetch for a read without an announcement: for headers, and for the end of a line.
const STRAY: u64 = 256 << 10;

/// Minimum block of a column chunk: a smaller request costs more than its bytes.
const LEAST_BLOCK: u64 = 256 << 10;

/// A reader's view of an object.
pub(crate) struct Window {
    object: Arc<Object>,
    /// Disjoint lanes, and a last lane over the whole object for the remaining reads.
    lanes: Mutex<Vec<Lane>>,
}

impl Window {
    /// Makes a view without loaded bytes.
    pub(crate) fn of(object: &Arc<Object>) -> Self {
        let stray = Lane::here_and_there(0..object.len(), STRAY, RANGE);
        Self { object: Arc::clone(object), lanes: Mutex::new(vec![stray]) }
    }

    /// Makes a view for reads from start to end.
    pub(crate) fn stream(object: &Arc<Object>) -> Self {
        let all = Lane::of(0..object.len(), RANGE.min(object.len()));
        Self { object: Arc::clone(object), lanes: Mutex::new(vec![all]) }
    }

    /// Starts fetching `ranges`, which are read side by side, each from its start on. `total` is
    /// the length of all ranges together. If `total` is small, the ranges are loaded whole, or else
    /// two blocks of each: the current one and the next. Returns without waiting.
    pub(crate) fn hold(&self, ranges: &[Range<u64>], total: u64) {
        let is_there = |range: &Range<u64>| {
            let look = self.object.look(range.start);
            look.is_some_and(|bytes| bytes.len() as u64 >= range.end - range.start)
        };
        let wanted = ranges.iter().filter(|range| !range.is_empty() && !is_there(range));
        let mut ranges: Vec<Range<u64>> = wanted.cloned().collect();
        ranges.sort_by_key(|range| range.start);
        let mut lanes = lock(&self.lanes);
        let stray = lanes.pop();
        lanes.clear();
        if total <= HELD {
            // Neighbours become one request.
            let mut joined: Vec<Range<u64>> = Vec::new();
            for range in ranges {
                match joined.last_mut() {
                    Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                    _ => joined.push(range),
                }
            }
            lanes.extend(joined.into_iter().map(|range| {
                let all = range.end - range.start;
                Lane::of(range, all)
            }));
        } else {
            let block = block_bytes(ranges.len());
            let apart = ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.end <= b.start);
            // Overlapping chunks come from a damaged footer. Their bytes are fetched on demand.
            if apart {
                lanes.extend(ranges.into_iter().map(|range| Lane::of(range, block)));
            }
        }
        lanes.iter_mut().for_each(|lane| lane.begin(&self.object));
        lanes.extend(stray);
    }

    /// Returns the bytes from `start` on: at least `least`, unless the lane ends before.
    fn from(&self, start: u64, least: usize) -> io::Result<Bytes> {
        if let Some(bytes) = self.object.look(start).filter(|bytes| bytes.len() >= least) {
            return Ok(bytes);
        }
        let mut lanes = lock(&self.lanes);
        match lanes.iter_mut().find(|lane| lane.range.contains(&start)) {
            Some(lane) => lane.bytes(&self.object, start, least),
            None => Ok(Bytes::new()),
        }
    }

    /// Reads some of the bytes at `offset`. Returns 0 at the end.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let there = self.from(offset, usize::from(!bytes.is_empty()))?;
        let read = there.len().min(bytes.len());
        bytes[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }

    /// Returns `len` bytes at `start`, which must exist.
    pub(crate) fn bytes(&self, start: u64, len: usize) -> io::Result<Bytes> {
        let there = self.from(start, len)?;
        if there.len() >= len {
            return Ok(there.slice(..len));
        }
        // The bytes span several lanes.
        let range = start..start + len as u64;
        self.object.wait(self.object.fetch(range))
    }
}

/// Returns the bytes of a block, for `stretches` ranges read side by side.
pub(super) fn block_bytes(stretches: usize) -> u64 {
    (HELD / (2 * stretches as u64).max(1)).max(LEAST_BLOCK)
}

/// Returns the memory for reading `stretches` ranges side by side, and for prefetching the next
/// ones.
pub(crate) fn held_bytes(stretches: usize, total: u64) -> u64 {
    match total {
        ..=HELD => 2 * total,
        _ => 2 * block_bytes(stretches) * stretches as u64,
    }
}
