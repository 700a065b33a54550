//! A range of an object, read from start to end, with some blocks in memory.
//!
//! ```text
//!  |====== current ======|------ ahead ------|            |
//!     ^ read here         on its way                    end
//! ```
//! At most two blocks are in memory: the prefetched block becomes the current one, and the next
//! block is prefetched.

use std::io;
use std::ops::Range;

use bytes::Bytes;

use super::object::{Fetch, Object};

/// A range of an object, with its loaded blocks.
pub(super) struct Lane {
    pub(super) range: Range<u64>,
    /// Bytes to fetch at a time, and their maximum: blocks grow while reads follow each other.
    block: u64,
    most: u64,
    /// Whether the next block is prefetched.
    reads_ahead: bool,
    /// The current block, and its offset.
    current: Option<(u64, Bytes)>,
    ahead: Option<(Range<u64>, Fetch)>,
}

impl Lane {
    /// Makes a lane for reads from start to end, in blocks of `block` bytes.
    pub(super) fn of(range: Range<u64>, block: u64) -> Self {
        let block = block.max(1);
        Self { range, block, most: block, reads_ahead: true, current: None, ahead: None }
    }

    /// Makes a lane for reads at scattered positions, some of them sequential.
    pub(super) fn here_and_there(range: Range<u64>, block: u64, most: u64) -> Self {
        Self { range, block, most, reads_ahead: false, current: None, ahead: None }
    }

    /// Prefetches the first block, without waiting.
    pub(super) fn begin(&mut self, object: &Object) {
        let range = self.range.start..self.range.end.min(self.range.start + self.block);
        let fetch = object.fetch(range.clone());
        self.ahead = Some((range, fetch));
    }

    /// Returns at least `least` bytes from `start` on, or all until the end of the range. `start`
    /// must lie in the range.
    pub(super) fn bytes(&mut self, object: &Object, start: u64, least: usize) -> io::Result<Bytes> {
        let least = (least as u64).min(self.range.end - start);
        loop {
            let there = self.current(start).unwrap_or_default();
            if there.len() as u64 >= least {
                return Ok(there);
            }
            let at = start + there.len() as u64;
            if there.is_empty() {
                // Free the current block before its replacement arrives.
                let old = self.current.take();
                if old.is_some_and(|(from, bytes)| from + bytes.len() as u64 == at) {
                    self.block = (self.block * 4).min(self.most);
                }
            }
            let (from, block) = self.fetched(object, at, start + least - at)?;
            self.current = Some(match there.is_empty() {
                true => (from, block),
                false => {
                    let more = usize::try_from(at - from).unwrap_or(usize::MAX);
                    (start, [&*there, &block[more..]].concat().into())
                }
            });
        }
    }

    fn current(&self, start: u64) -> Option<Bytes> {
        let (from, bytes) = self.current.as_ref()?;
        let within = usize::try_from(start.checked_sub(*from)?).ok()?;
        (within < bytes.len()).then(|| bytes.slice(within..))
    }

    /// Returns the block around `at`, and its offset: the prefetched block, or one fetched now. A
    /// lane that reads ahead then prefetches the next block.
    fn fetched(&mut self, object: &Object, at: u64, least: u64) -> io::Result<(u64, Bytes)> {
        let (range, fetch) = match self.ahead.take() {
            Some((range, fetch)) if range.contains(&at) => (range, fetch),
            _ => {
                let range = at..self.range.end.min(at + self.block.max(least));
                (range.clone(), object.fetch(range))
            }
        };
        let bytes = object.wait(fetch)?;
        if self.reads_ahead && range.end < self.range.end {
            let next = range.end..self.range.end.min(range.end + self.block);
            self.ahead = Some((next.clone(), object.fetch(next)));
        }
        Ok((range.start, bytes))
    }
}
