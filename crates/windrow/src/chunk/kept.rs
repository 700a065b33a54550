//! Chunks as batches keep them: each time with its diffs is stored once.
//!
//! ```text
//! whole     | a 1 | t +1 | a 2 | t +1 | b 1 | u -1 |      merged and decoded
//! short     | a 1 | a 2 |     t +1                        read by cursors, expanded for all others
//! numbered  | a 1 0 | a 2 0 | b 1 1 |     t +1, u -1      short, if rows differ in time or diffs
//! ```
//! Most of an index is old: compaction advanced the times of its rows to one time, and each diff is
//! one. For rows of two numbers, this saves half. In a loop, rows have the times of some
//! iterations. A number of one byte takes the place of 16 to 24 bytes of time and diff.
//!
//! Invariant: expanded, the rows equal the original rows.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::elided::elided;
use super::resident::Chunk;
use super::sought::word_at;
use super::times::{TimeCodes, time_codes};
use super::view::{Starts, View};
use windrow_kernel::prefetch::prefetch_value;
use windrow_pool::Lease;
use windrow_rows::{Layout, Result};

/// Chunks of fewer rows stay whole: there is little to save.
const LEAST_ROWS: usize = 4;
/// The saving must be at least one `LEAST_GAIN`th of the row bytes.
const LEAST_GAIN: usize = 8;
/// Least rows with numbers: each merge expands them, and chunks of rounds are small.
const LEAST_NUMBERED: usize = 256;
/// Most different ends: their numbers fit into a byte.
const MOST_ENDS: usize = 256;

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
    /// The different times and diffs, each of `behind` bytes.
    ends: Box<[u8]>,
    behind: usize,
    /// Whether rows end with the number of their time and diffs. Otherwise, there is only one.
    numbered: bool,
    /// The first row and the last, whole.
    bounds: [Box<[u8]>; 2],
    _lease: Lease,
}

impl Short {
    /// Splits a short row into key and value, and time and diffs.
    #[inline(always)]
    fn split<'a>(&'a self, row: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        match row.split_last() {
            Some((&number, body)) if self.numbered => {
                (body, &self.ends[usize::from(number) * self.behind..][..self.behind])
            }
            _ => (row, &self.ends),
        }
    }

    /// Returns the bytes that each row lacks.
    fn gain(&self) -> usize {
        self.behind - usize::from(self.numbered)
    }
}

impl From<Arc<Chunk>> for Kept {
    fn from(rows: Arc<Chunk>) -> Self {
        Self { rows, short: None }
    }
}

/// The rows as they lie in memory: shortened ones lack times and diffs, or have a number in their
/// place. Methods of [`Kept`] tell of the whole rows.
impl Deref for Kept {
    type Target = Chunk;

    #[inline(always)]
    fn deref(&self) -> &Chunk {
        &self.rows
    }
}

impl Kept {
    /// Returns the rows of `chunk` shortened, if the last `behind` bytes (times and diffs) of all
    /// rows agree or have few values, and the budget has memory to spare. Costs one comparison per
    /// row up to the first that differs, then a look-up per row, and a copy.
    pub(crate) fn shortened(chunk: Arc<Chunk>, behind: usize) -> Self {
        let rows = chunk.rows();
        if rows.len() < LEAST_ROWS || rows.len() * behind * LEAST_GAIN < chunk.bytes() {
            return chunk.into();
        }
        let last = rows.last();
        let alike =
            end_alike(rows, behind).then(|| (last[last.len() - behind..].into(), Vec::new()));
        let Some((ends, numbers)) = alike.or_else(|| numbered(rows, behind)) else {
            return chunk.into();
        };
        let Some(short) = chunk.without_ends(behind, &numbers) else { return chunk.into() };
        let bounds = [rows.row(0), last].map(Box::from);
        let (_lease, numbered) = (chunk.lease(ends.len()), !numbers.is_empty());
        let lacks = Short { ends, behind, numbered, bounds, _lease };
        Self { rows: Arc::new(short), short: Some(Arc::new(lacks)) }
    }

    /// Returns true if the rows are shortened.
    pub(crate) fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// Splits a row of [`Chunk::rows`] into key and value, and time and diffs, which take `behind`
    /// bytes.
    #[inline(always)]
    pub(crate) fn split<'a>(&'a self, row: &'a [u8], behind: usize) -> (&'a [u8], &'a [u8]) {
        match &self.short {
            Some(short) => short.split(row),
            None => row.split_at(row.len() - behind),
        }
    }

    /// Returns the whole chunk: the original, or an expanded copy.
    ///
    /// # Errors Fails if there is no memory for the copy.
    pub(crate) fn whole(&self) -> Result<Arc<Chunk>> {
        match &self.short {
            None => Ok(Arc::clone(&self.rows)),
            Some(short) => Ok(Arc::new(self.rows.with_ends(short.gain(), |row| short.split(row))?)),
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
            Some(short) => short.bounds.each_ref().map(|row| &row[..]),
        }
    }

    /// Returns the bytes that each row lacks.
    fn gain(&self) -> usize {
        self.short.as_ref().map_or(0, |short| short.gain())
    }

    /// Returns the bytes of the whole rows.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() + self.len() * self.gain()
    }

    /// Returns the length of the whole rows, if all have the same.
    pub(super) fn stride(&self) -> Option<usize> {
        Some(self.rows.stride()? + self.gain())
    }

    /// Returns the least and the greatest time code of the rows, whose times take `width` bytes.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> TimeCodes {
        match &self.short {
            None => self.rows.times(layout, width),
            Some(short) => {
                let ends = short.ends.chunks_exact(short.behind);
                time_codes(width, ends.map(|end| &end[..width]))
            }
        }
    }

    /// Returns true if the rows have other owners.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.rows) > 1
    }

    /// Returns the image of an index page without the bytes common to all rows; `None` if this
    /// saves too little.
    pub(super) fn elided(&self) -> Option<Vec<u8>> {
        let (own, whole) = (self.rows.stride()?, self.stride()?);
        match &self.short {
            Some(short) if !short.numbered => elided(self.rows().bytes, own, &short.ends),
            _ => elided(&self.image(), whole, &[]),
        }
    }

    /// Returns the image of whole rows. Allocates no memory of the pool: a thread that frees memory
    /// by writing must not wait for memory.
    pub(super) fn image(&self) -> Cow<'_, [u8]> {
        match &self.short {
            None => self.rows.image(),
            Some(short) => {
                Cow::Owned(self.rows.image_with_ends(short.gain(), |row| short.split(row)))
            }
        }
    }

    /// Prefetches the [`Chunk`] itself, which points to the rows.
    pub(crate) fn prefetch_itself(&self) {
        prefetch_value(&*self.rows);
    }
}

/// Returns true if the last `behind` bytes of all rows agree.
fn end_alike(rows: View<'_>, behind: usize) -> bool {
    // Common lengths are compared as numbers: a time of 8 to 24 bytes, and a diff of 8.
    match behind {
        8 => ends_alike::<8>(rows),
        16 => ends_alike::<16>(rows),
        20 => ends_alike::<20>(rows),
        24 => ends_alike::<24>(rows),
        32 => ends_alike::<32>(rows),
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

/// Returns the different ends of the rows, and the number of each row's end. Returns `None` if ends
/// or rows are too many or too few, or too little is saved. Costs a look-up in a hash table per row.
fn numbered(rows: View<'_>, behind: usize) -> Option<(Box<[u8]>, Vec<u8>)> {
    /// Places of the table, of which ends take at most half. An odd number near 2^64 / phi spreads
    /// hashes. Words are turned, since they differ in a few bytes at one end.
    const PLACES: usize = 2 * MOST_ENDS;
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const TURN: u32 = 17;
    if rows.len() < LEAST_NUMBERED {
        return None;
    }
    let (mut places, mut ends) = ([None::<u8>; PLACES], Vec::new());
    let mut numbers = Vec::with_capacity(rows.len());
    for row in (0..rows.len()).map(|row| rows.row(row)) {
        let end = &row[row.len() - behind..];
        let words = (0..behind).step_by(size_of::<u64>()).map(|at| word_at(end, at));
        let hash = words.fold(0, |hash: u64, word| hash.rotate_left(TURN) ^ word);
        let mut place = (hash.wrapping_mul(SPREAD) >> 32) as usize % PLACES;
        numbers.push(loop {
            let Some(number) = places[place] else {
                let number = u8::try_from(ends.len() / behind).ok()?;
                places[place] = Some(number);
                ends.extend_from_slice(end);
                break number;
            };
            if ends[usize::from(number) * behind..].starts_with(end) {
                break number;
            }
            place = (place + 1) % PLACES;
        });
    }
    let gain = rows.len() * (behind - 1);
    (gain > ends.len() + rows.bytes.len() / LEAST_GAIN).then(|| (ends.into(), numbers))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::chunk::tests::tiny;

    const BEHIND: usize = 16;

    /// Makes a chunk of rows with these bodies, each followed by its byte `BEHIND` times.
    fn chunk_of(rows: &[(Vec<u8>, u8)], fixed: bool) -> Arc<Chunk> {
        let pool = tiny(64 << 10);
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
            mut rows in prop::collection::vec((prop::collection::vec(0u8..3, 0..9), any::<u8>()), 1..900),
            fixed in any::<bool>(),
            ends in 1u8..=255,
        ) {
            for (body, end) in &mut rows {
                if fixed {
                    body.resize(6, 7);
                }
                *end %= ends;
            }
            let chunk = chunk_of(&rows, fixed);
            let (whole, kept) = (Kept::from(Arc::clone(&chunk)), Kept::shortened(chunk, BEHIND));
            let distinct = rows.iter().map(|row| row.1).collect::<HashSet<_>>().len();
            let is_short = match distinct {
                1 => rows.len() >= LEAST_ROWS && rows.iter().any(|(body, _)| !body.is_empty()),
                _ => rows.len() >= LEAST_NUMBERED
                    && rows.len() * (BEHIND - 1) > distinct * BEHIND + whole.bytes() / LEAST_GAIN,
            };
            prop_assert_eq!(kept.is_short(), is_short);
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

    #[test]
    fn more_ends_than_numbers_stay() {
        let rows: Vec<_> = (0..600u32).map(|row| (row.to_be_bytes().to_vec(), row as u8)).collect();
        let chunk = chunk_of(&rows, true);
        assert!(Kept::shortened(Arc::clone(&chunk), BEHIND).is_short(), "256 ends");
        // The bodies are different.
        assert!(!Kept::shortened(chunk, BEHIND + 4).is_short(), "600 ends");
    }
}
