//! What is in memory of an object that is being read, and how reads get to it.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::lane::Lane;
use super::object::Object;
use super::{HELD, RANGE};

/// Bytes that are asked for by a read that nobody told of: headers, and where a line ends.
const STRAY: u64 = 256 << 10;

/// The least block of a column chunk: a request for less costs more than its bytes.
const LEAST_BLOCK: u64 = 256 << 10;

/// One reader's view of an object.
pub(crate) struct Window {
    object: Arc<Object>,
    /// Apart from each other, but for the last, which has all that no other has.
    lanes: Mutex<Vec<Lane>>,
}

impl Window {
    /// Of which nothing is there yet.
    pub(crate) fn of(object: &Arc<Object>) -> Self {
        let stray = Lane::here_and_there(0..object.len(), STRAY, RANGE);
        Self { object: Arc::clone(object), lanes: Mutex::new(vec![stray]) }
    }

    /// That is read from the start to the end.
    pub(crate) fn stream(object: &Arc<Object>) -> Self {
        let all = Lane::of(0..object.len(), RANGE.min(object.len()));
        Self { object: Arc::clone(object), lanes: Mutex::new(vec![all]) }
    }

    /// Asks for `ranges`, which are read side by side, each from its start on. Those that are `total` together are
    /// held if that is little, or else a block of each and the one behind it. Nothing is waited for.
    pub(crate) fn hold(&self, ranges: &[Range<u64>], total: u64) {
        let is_there = |range: &Range<u64>| {
            let look = self.object.look(range.start);
            look.is_some_and(|bytes| bytes.len() as u64 >= range.end - range.start)
        };
        let wanted = ranges.iter().filter(|range| !range.is_empty() && !is_there(range));
        let mut ranges: Vec<Range<u64>> = wanted.cloned().collect();
        ranges.sort_by_key(|range| range.start);
        let mut lanes = self.lanes();
        let stray = lanes.pop();
        lanes.clear();
        if total <= HELD {
            // Neighbours are one request.
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
            // Chunks over each other are a damaged footer's: their bytes are looked for one by one.
            if apart {
                lanes.extend(ranges.into_iter().map(|range| Lane::of(range, block)));
            }
        }
        lanes.iter_mut().for_each(|lane| lane.begin(&self.object));
        lanes.extend(stray);
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes from `start` on; `least` of them, unless what is read together ends before.
    fn from(&self, start: u64, least: usize) -> io::Result<Bytes> {
        if let Some(bytes) = self.object.look(start).filter(|bytes| bytes.len() >= least) {
            return Ok(bytes);
        }
        let mut lanes = self.lanes();
        match lanes.iter_mut().find(|lane| lane.range.contains(&start)) {
            Some(lane) => lane.bytes(&self.object, start, least),
            None => Ok(Bytes::new()),
        }
    }

    /// Reads some of the bytes at `offset`; none at the end.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let there = self.from(offset, usize::from(!bytes.is_empty()))?;
        let read = there.len().min(bytes.len());
        bytes[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }

    /// `len` bytes at `start`, which must be there.
    pub(crate) fn bytes(&self, start: u64, len: usize) -> io::Result<Bytes> {
        let there = self.from(start, len)?;
        if there.len() >= len {
            return Ok(there.slice(..len));
        }
        // Of more than one lane.
        let range = start..start + len as u64;
        self.object.wait(self.object.fetch(range))
    }
}

/// Bytes of a block, where so many stretches are read side by side.
pub(super) fn block_bytes(stretches: usize) -> u64 {
    (HELD / (2 * stretches as u64).max(1)).max(LEAST_BLOCK)
}

/// What a reader of such stretches takes, together with what is fetched for the next one.
pub(crate) fn held_bytes(stretches: usize, total: u64) -> u64 {
    match total {
        ..=HELD => 2 * total,
        _ => 2 * block_bytes(stretches) * stretches as u64,
    }
}
