//! Row starts of a chunk of variable-length rows, in memory freed with the chunk.
//!
//! ```text
//! few, or no limit   | 0 | o1 | ... | used |              from the allocator
//! many               | 0 | o1 | ... | used | to a page |  a mapping of its own
//! ```
//! With short rows, the starts are a tenth of a chunk. Chunks are freed in any order and have
//! different numbers of rows. The allocator would keep more memory than is leased: holes too small
//! for the next lists, in the heap of each thread.

use std::ops::Deref;

use arrow_buffer::ScalarBuffer;
use bytes::Bytes;

use super::resident::OFFSET_BYTES;
use windrow_pool::{Lease, Pool};

/// With a limit, lists of at least so many bytes are mappings, which waste at most a page each. The
/// lists of chunks of 128 KiB left 13 MiB of holes in the heap of a table at a limit of 64 MiB.
const LEAST_MAPPED: usize = 3 << 10;

/// Starts of rows; the last entry is the end. Leased.
#[derive(Debug)]
pub(super) enum Listed {
    Allocated(Vec<u32>, Lease),
    Mapped(ScalarBuffer<u32>, usize),
}

impl Listed {
    /// Takes the entries of `starts`. If the entries were copied into a mapping, `starts` keeps a
    /// zero and its capacity for the next rows; otherwise `starts` becomes empty.
    pub(super) fn take(pool: &Pool, starts: &mut Vec<u32>) -> Self {
        if let Some(mapped) = Self::mapped(pool, starts.len(), |bytes| {
            for (place, start) in bytes.chunks_exact_mut(OFFSET_BYTES).zip(&*starts) {
                place.copy_from_slice(&start.to_ne_bytes());
            }
        }) {
            starts.truncate(1);
            return mapped;
        }
        Self::allocated(pool, std::mem::take(starts))
    }

    /// Reads the starts of rows from `ends`, the row ends of an image in the store.
    pub(super) fn read(pool: &Pool, ends: &[u8]) -> Self {
        let ends = ends.as_chunks::<OFFSET_BYTES>().0;
        let mapped = Self::mapped(pool, ends.len() + 1, |bytes| {
            let places = bytes.chunks_exact_mut(OFFSET_BYTES).skip(1);
            for (place, &end) in places.zip(ends) {
                place.copy_from_slice(&u32::from_le_bytes(end).to_ne_bytes());
            }
        });
        mapped.unwrap_or_else(|| {
            let mut starts = Vec::with_capacity(ends.len() + 1);
            starts.push(0);
            starts.extend(ends.iter().map(|&end| u32::from_le_bytes(end)));
            Self::allocated(pool, starts)
        })
    }

    /// Maps memory for `count` starts and calls `fill`, which may leave zeros. Returns `None` if
    /// the list is to be allocated instead.
    fn mapped(pool: &Pool, count: usize, fill: impl FnOnce(&mut [u8])) -> Option<Self> {
        let len = count * OFFSET_BYTES;
        if !pool.budget().is_limited() || len < LEAST_MAPPED {
            return None;
        }
        // The allocator may still have memory when the system has no more mappings.
        let mut buffer = pool.page_buffer(len).ok()?;
        fill(&mut buffer[..len]);
        let leased = buffer.len();
        Some(Self::Mapped(ScalarBuffer::new(Bytes::from_owner(buffer).into(), 0, count), leased))
    }

    fn allocated(pool: &Pool, mut starts: Vec<u32>) -> Self {
        // Without a limit, lists are recycled with their capacity.
        if pool.budget().is_limited() {
            starts.shrink_to_fit();
        }
        let lease = pool.budget().lease(starts.capacity() * OFFSET_BYTES);
        Self::Allocated(starts, lease)
    }

    /// Returns the bytes of memory of the list.
    pub(super) fn leased_bytes(&self) -> usize {
        match self {
            Self::Allocated(_, lease) => lease.bytes(),
            Self::Mapped(_, leased) => *leased,
        }
    }

    /// Moves the starts into an exactly sized allocation.
    pub(super) fn trim(&mut self, pool: &Pool) {
        let exact = self.to_vec();
        let lease = pool.budget().lease(exact.capacity() * OFFSET_BYTES);
        if let Self::Allocated(starts, _) = std::mem::replace(self, Self::Allocated(exact, lease)) {
            pool.recycle_starts(starts);
        }
    }

    /// Recycles the memory if it was allocated rather than mapped.
    pub(super) fn recycle(&mut self, pool: &Pool) {
        if let Self::Allocated(starts, _) = self {
            pool.recycle_starts(std::mem::take(starts));
        }
    }
}

impl Deref for Listed {
    type Target = [u32];

    #[inline(always)]
    fn deref(&self) -> &[u32] {
        match self {
            Self::Allocated(starts, _) => starts,
            Self::Mapped(starts, _) => starts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_pool::{Budget, Pool, PoolOptions};

    const LIMIT: usize = 1 << 20;

    fn limited() -> Pool {
        Pool::new(Budget::bytes(LIMIT), PoolOptions::default()).unwrap()
    }

    fn starts(rows: u32) -> Vec<u32> {
        (0..=rows).map(|row| row * 7).collect()
    }

    fn ends(starts: &[u32]) -> Vec<u8> {
        starts[1..].iter().flat_map(|start| start.to_le_bytes()).collect()
    }

    #[test]
    fn long_lists_are_mappings_where_memory_has_a_limit() {
        let rows = (LEAST_MAPPED / OFFSET_BYTES) as u32;
        for (pool, rows, maps) in [
            (limited(), rows, true),
            (limited(), rows - 1, true),
            (limited(), rows - 2, false),
            (Pool::unlimited(), rows, false),
        ] {
            let expected = starts(rows);
            let mut filled = expected.clone();
            let taken = Listed::take(&pool, &mut filled);
            assert_eq!(filled, if maps { vec![0] } else { vec![] }, "{rows} rows");
            let read = Listed::read(&pool, &ends(&expected));
            for listed in [&taken, &read] {
                assert_eq!(listed[..], expected);
                assert_eq!(matches!(listed, Listed::Mapped(..)), maps, "{rows} rows");
            }
            let leased = taken.leased_bytes() + read.leased_bytes();
            assert_eq!(pool.budget().used(), leased);
            assert!(leased >= 2 * expected.len() * OFFSET_BYTES);
            drop((taken, read));
            assert_eq!(pool.budget().used(), 0);
        }
    }

    #[test]
    fn a_list_that_is_trimmed_takes_what_it_has() {
        let pool = limited();
        for rows in [3, 10_000] {
            let mut listed = Listed::take(&pool, &mut starts(rows));
            listed.trim(&pool);
            assert_eq!(listed[..], starts(rows));
            assert_eq!(pool.budget().used(), listed.len() * OFFSET_BYTES);
        }
    }
}
