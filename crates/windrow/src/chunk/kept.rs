//! Chunks as batches keep them: times and diffs are stored once if they are the same in all rows.
//!
//! ```text
//! whole    | a 1 | t +1 | a 2 | t +1 | b 1 | t +1 |       merged and decoded
//! short    | a 1 | a 2 | b 1 |     t +1                   read by cursors, expanded for all others
//! ```
//! Most of an index is old: compaction advanced the times of its rows to one time, and each diff is
//! one. For rows of two numbers, this saves half.
//!
//! Invariant: expanded, the rows equal the original rows.

use std::borrow::Cow;
use std::sync::Arc;

use super::elided::elided;
use super::filter::Filter;
use super::resident::Chunk;
use super::times::{TimeCodes, time_codes};
use super::view::{Starts, View};
use windrow_kernel::prefetch::prefetch_value;
use windrow_rows::{Layout, Result};

/// Chunks of fewer rows stay whole: there is little to save.
const LEAST_ROWS: usize = 4;
/// The saving must be at least one `LEAST_GAIN`th of the row bytes.
const LEAST_GAIN: usize = 8;

/// Sorted rows in memory, to be read many times. Cheap to clone: clones share the rows.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The rows, whole or short.
    rows: Arc<Chunk>,
    short: Option<Arc<Short>>,
}

/// The parts of shortened rows that the chunk lacks.
#[derive(Debug)]
struct Short {
    /// The common time and diffs.
    end: Box<[u8]>,
    /// The first row and the last, whole.
    ends: [Box<[u8]>; 2],
}

impl From<Arc<Chunk>> for Kept {
    fn from(rows: Arc<Chunk>) -> Self {
        Self { rows, short: None }
    }
}

impl Kept {
    /// Returns the rows of `chunk` shortened, if the last `behind` bytes (times and diffs) of all
    /// rows agree and the budget has memory to spare. Costs one comparison per row up to the first
    /// that differs, or a copy.
    pub(crate) fn shortened(chunk: Arc<Chunk>, behind: usize) -> Self {
        let rows = chunk.rows();
        if rows.len() < LEAST_ROWS
            || rows.len() * behind * LEAST_GAIN < chunk.bytes()
            || !end_alike(rows, behind)
        {
            return chunk.into();
        }
        let last = rows.last();
        let end = last[last.len() - behind..].into();
        let Some(short) = chunk.without_ends(behind) else { return chunk.into() };
        let ends = [rows.row(0), last].map(Box::from);
        Self { rows: Arc::new(short), short: Some(Arc::new(Short { end, ends })) }
    }

    /// Returns the rows; shortened rows lack times and diffs.
    #[inline(always)]
    pub(crate) fn rows(&self) -> View<'_> {
        self.rows.rows()
    }

    /// Returns the common end of shortened rows.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.short.as_ref().map(|short| &short.end[..])
    }

    /// Splits a row of [`Kept::rows`] into key and value, and time and diffs, which take `behind`
    /// bytes.
    #[inline(always)]
    pub(crate) fn split<'a>(&'a self, row: &'a [u8], behind: usize) -> (&'a [u8], &'a [u8]) {
        match self.end() {
            Some(end) => (row, end),
            None => row.split_at(row.len() - behind),
        }
    }

    /// Returns the whole chunk: the original, or an expanded copy.
    ///
    /// # Errors Fails if there is no memory for the copy.
    pub(crate) fn whole(&self) -> Result<Arc<Chunk>> {
        match &self.short {
            None => Ok(Arc::clone(&self.rows)),
            Some(short) => Ok(Arc::new(self.rows.with_ends(&short.end)?)),
        }
    }

    /// Moves an unshared chunk into an exactly sized buffer, if its buffer is much larger.
    pub(crate) fn trim(&mut self) {
        if self.short.is_none()
            && let Some(own) = Arc::get_mut(&mut self.rows)
        {
            own.trim();
        }
    }

    /// Writes the starts of whole rows after the rows, if the chunk is not shared.
    pub(super) fn write_starts(&mut self) {
        if self.short.is_none()
            && let Some(own) = Arc::get_mut(&mut self.rows)
        {
            own.write_starts();
        }
    }

    /// Returns the first row and the last, whole.
    pub(crate) fn ends(&self) -> [&[u8]; 2] {
        match &self.short {
            None => [self.rows().row(0), self.rows().last()],
            Some(short) => short.ends.each_ref().map(|end| &end[..]),
        }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the bytes of the whole rows.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() + self.len() * self.end().map_or(0, <[u8]>::len)
    }

    /// Returns the bytes of memory that the rows hold.
    pub(crate) fn leased_bytes(&self) -> usize {
        self.rows.leased_bytes()
    }

    /// Returns the length of the whole rows, if all have the same.
    pub(super) fn stride(&self) -> Option<usize> {
        Some(self.rows.stride()? + self.end().map_or(0, <[u8]>::len))
    }

    /// Returns the least and the greatest time code of the rows, whose times take `width` bytes.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> TimeCodes {
        match self.end() {
            None => self.rows.times(layout, width),
            Some(end) => time_codes(width, std::iter::once(&end[..width])),
        }
    }

    /// Returns the times if they were computed before.
    pub(super) fn known_times(&self) -> Option<TimeCodes> {
        self.rows.known_times()
    }

    /// Makes a filter of the keys, unless the chunk has a filter or too few rows.
    pub(crate) fn make_filter(&self, layout: &Layout) {
        self.rows.make_filter(layout);
    }

    /// Returns the filter, if one was made.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.rows.filter()
    }

    /// Returns true if the rows have other owners.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.rows) > 1
    }

    /// Returns true if leases exceed the budget.
    pub(crate) fn is_beyond_limit(&self) -> bool {
        self.rows.is_beyond_limit()
    }

    /// Returns the image of an index page without the bytes common to all rows; `None` if this
    /// saves too little.
    pub(super) fn elided(&self) -> Option<Vec<u8>> {
        elided(self.rows().bytes, self.rows.stride()?, self.end().unwrap_or_default())
    }

    /// Returns the image of whole rows. Allocates no memory of the pool: a thread that frees memory
    /// by writing must not wait for memory.
    pub(super) fn image(&self) -> Cow<'_, [u8]> {
        match &self.short {
            None => self.rows.image(),
            Some(short) => Cow::Owned(self.rows.image_with_ends(&short.end)),
        }
    }

    /// Prefetches what a merge reads first.
    pub(crate) fn prefetch(&self) {
        self.rows.prefetch();
    }

    /// Prefetches the [`Chunk`] itself, which points to the rows.
    pub(crate) fn prefetch_itself(&self) {
        prefetch_value(&*self.rows);
    }
}

/// Returns true if the last `behind` bytes of all rows agree.
fn end_alike(rows: View<'_>, behind: usize) -> bool {
    // Common lengths are compared as numbers: a time of 8 or 12 bytes, and a diff of 8.
    match behind {
        8 => ends_alike::<8>(rows),
        16 => ends_alike::<16>(rows),
        20 => ends_alike::<20>(rows),
        _ => {
            let last = rows.last();
            let end = &last[last.len() - behind..];
            (0..rows.len()).all(|row| rows.row(row).ends_with(end))
        }
    }
}

fn ends_alike<const N: usize>(rows: View<'_>) -> bool {
    let end: Option<&[u8; N]> = rows.last().last_chunk();
    match rows.starts {
        Starts::Every(stride) => rows.bytes.chunks_exact(stride).all(|row| row.last_chunk() == end),
        Starts::At(_) => (0..rows.len()).all(|row| rows.row(row).last_chunk() == end),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::tests::tiny;

    const BEHIND: usize = 5;

    /// Makes a chunk of rows with these bodies, each followed by its byte `BEHIND` times.
    fn chunk_of(rows: &[(Vec<u8>, u8)], fixed: bool) -> Arc<Chunk> {
        let pool = tiny(4 << 10);
        let (mut bytes, mut starts) = (Vec::new(), vec![0u32]);
        for (body, end) in rows {
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(&[*end; BEHIND]);
            starts.push(bytes.len() as u32);
        }
        let mut buffer = pool.buffer(bytes.len()).unwrap();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Arc::new(match fixed {
            true => Chunk::strided(&pool, buffer, bytes.len(), bytes.len() / rows.len()),
            false => Chunk::varying(&pool, buffer, &mut starts),
        })
    }

    fn all(rows: View<'_>) -> Vec<&[u8]> {
        (0..rows.len()).map(|row| rows.row(row)).collect()
    }

    proptest! {
        #[test]
        fn short_rows_are_what_they_were(
            mut rows in prop::collection::vec((prop::collection::vec(0u8..3, 0..9), 0u8..2), 1..40),
            fixed in any::<bool>(),
            alike in any::<bool>(),
        ) {
            for (body, end) in &mut rows {
                if fixed {
                    body.resize(6, 7);
                }
                if alike {
                    *end = 1;
                }
            }
            let chunk = chunk_of(&rows, fixed);
            let (whole, kept) = (Kept::from(Arc::clone(&chunk)), Kept::shortened(chunk, BEHIND));
            let end = [rows[0].1; BEHIND];
            let is_short = rows.len() >= LEAST_ROWS
                && rows.iter().any(|(body, _)| !body.is_empty())
                && rows.iter().all(|row| row.1 == end[0]);
            prop_assert_eq!(kept.end(), is_short.then_some(&end[..]));
            let again = kept.whole().unwrap();
            prop_assert_eq!(all(again.rows()), all(whole.rows()));
            for (row, (body, end)) in rows.iter().enumerate() {
                let split = kept.split(kept.rows().row(row), BEHIND);
                prop_assert_eq!(split, (&body[..], &[*end; BEHIND][..]));
            }
            prop_assert_eq!(kept.ends(), whole.ends());
            prop_assert_eq!((kept.len(), kept.bytes()), (whole.len(), whole.bytes()));
            prop_assert_eq!(kept.stride(), whole.stride());
            prop_assert_eq!(kept.elided(), whole.elided());
            prop_assert_eq!(kept.image(), whole.image());
            prop_assert!(!is_short || kept.leased_bytes() < whole.leased_bytes());
        }
    }
}
