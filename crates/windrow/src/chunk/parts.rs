//! Parts of a page in a store: some KiB of its rows, read without the rest.
//!
//! ```text
//! image   | rows of part 0 | rows of part 1 | ... | bytes common to all rows, or row ends |
//! words     fig              ham                    where first rows of parts differ; in memory
//! read    | rows of part 0 | h |                    with the next first row, to end the last key
//! ```
//! A look-up of one key reads one part: 4 KiB of a page of 64 KiB. All parts but the last have the
//! same number of rows.
//!
//! Invariant: the words of the first rows ascend. A part has the rows of its page, or reading it
//! fails.

use std::ops::Range;
use std::sync::Arc;

use super::elided::{expand, head_bytes};
use super::kept::Kept;
use super::resident::{Chunk, OFFSET_BYTES};
use super::sought::{Sought, word_at};
use windrow_pool::{Extent, Lease, Pool};
use windrow_rows::{Error, Result};

/// The smallest chunks have so many parts. A part has at most the bytes of one disk read.
const PARTS: usize = 16;
const MOST_BYTES: usize = 4 << 10;

/// Consecutive rows of a page.
#[derive(Debug)]
pub(crate) struct PartRows {
    /// The rows of the part, then the first row of the next part.
    pub(crate) rows: Kept,
    /// Index of the first row in the page.
    pub(crate) first: usize,
    /// Number of the part.
    pub(crate) number: usize,
}

/// Where a key may be among the parts of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Nowhere,
    Part(usize),
    /// A part starts with the word of the key, so words do not decide.
    Unknown,
}

/// The positions of the parts in the image of a page.
#[derive(Debug)]
pub(super) struct Parts {
    /// The prefix of all rows.
    shared: Box<[u8]>,
    /// The word after `shared` of the first row of each part.
    words: Box<[u64]>,
    /// Rows per part.
    each: usize,
    /// Rows of the page.
    rows: usize,
    form: Form,
    _lease: Lease,
}

/// How an image stores rows.
#[derive(Debug)]
enum Form {
    /// Rows of `stride` bytes, reduced to the `kept` differing bytes. `head` holds the common
    /// bytes; it is empty if all bytes are kept.
    Every { stride: usize, kept: usize, head: Box<[u8]> },
    /// Rows as they are: the start of the first row of each part, and the end of all rows.
    At(Box<[u32]>),
}

impl Parts {
    /// Returns the parts of `chunk`, whose `image` is in the store; `ends` are its first and last
    /// row. Returns `None` for a single part.
    pub(super) fn of(pool: &Pool, chunk: &Kept, ends: [&[u8]; 2], image: &[u8]) -> Option<Self> {
        let (rows, used) = (chunk.len(), chunk.bytes());
        let (form_of, kept_bytes) = match chunk.stride() {
            Some(stride) if image.len() < used => {
                let kept = image.len() - head_bytes(stride);
                (Some((stride, kept / rows, &image[kept..])), kept)
            }
            Some(stride) => (Some((stride, stride, &[][..])), used),
            None => (None, used),
        };
        let bytes = (pool.chunk_bytes() / PARTS).clamp(1, MOST_BYTES);
        let each = (bytes * rows / kept_bytes.max(1)).max(1);
        let count = rows.div_ceil(each);
        if count < 2 {
            return None;
        }
        let [first, last] = ends;
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let view = chunk.rows();
        let words = (0..count).map(|part| word_at(view.row(part * each), shared)).collect();
        let form = match form_of {
            Some((stride, kept, head)) => Form::Every { stride, kept, head: head.into() },
            None => {
                let start = |part: usize| end_before(&image[used..], (part * each).min(rows));
                Form::At((0..=count).map(start).collect())
            }
        };
        let bytes = shared
            + count * size_of::<u64>()
            + image.len() / 1024
            + match &form {
                Form::Every { head, .. } => head.len(),
                Form::At(starts) => size_of_val(&**starts),
            };
        let _lease = pool.budget().lease(size_of::<Self>() + bytes);
        Some(Self { shared: first[..shared].into(), words, each, rows, form, _lease })
    }

    /// Returns the part that has the first row with `key`, if the key is in the page.
    pub(super) fn find(&self, key: &[u8]) -> Whereabouts {
        if self.shared.starts_with(key) {
            return Whereabouts::Part(0);
        }
        if !key.starts_with(&self.shared) {
            return Whereabouts::Nowhere;
        }
        let sought = Sought::new(key, &self.shared);
        let word = sought.low;
        let behind = self.words.partition_point(|&first| first < word);
        if sought.inexact && self.words.get(behind) == Some(&word) {
            return Whereabouts::Unknown;
        }
        match behind.checked_sub(1) {
            Some(part) => Whereabouts::Part(part),
            None if sought.ends_before(self.words[0]) => Whereabouts::Nowhere,
            None => Whereabouts::Part(0),
        }
    }

    /// Returns the rows of a part and the row after it.
    fn range(&self, part: usize) -> Range<usize> {
        part * self.each..((part + 1) * self.each + 1).min(self.rows)
    }

    /// Returns the bytes of these rows in the image.
    pub(super) fn bytes(&self, part: usize) -> Range<usize> {
        match &self.form {
            Form::Every { kept, .. } => {
                let Range { start, end } = self.range(part);
                start * kept..end * kept
            }
            Form::At(starts) => starts[part] as usize..starts[part + 1] as usize,
        }
    }

    /// Returns the bytes of the row ends in the image, if rows vary.
    pub(super) fn ends(&self, part: usize) -> Option<Range<usize>> {
        let Form::At(starts) = &self.form else { return None };
        let (used, Range { start, end }) = (*starts.last()? as usize, self.range(part));
        Some(used + start * OFFSET_BYTES..used + end * OFFSET_BYTES)
    }

    /// Reads a part from the `extent` of the image.
    pub(super) fn read(&self, pool: &Pool, extent: &Extent, part: usize) -> Result<PartRows> {
        let rows = self.range(part);
        let chunk = match &self.form {
            Form::Every { stride, kept, head } => {
                let image = pool.load_part(extent, self.bytes(part))?;
                let used = rows.len() * stride;
                if kept == stride {
                    Chunk::strided(pool, pool.small_buffer(&image), used, *stride)
                } else {
                    let len = image.len() + head.len();
                    let mut bytes = Vec::with_capacity(len.max(used));
                    bytes.extend_from_slice(&image);
                    bytes.extend_from_slice(head);
                    bytes.resize(len.max(used), 0);
                    if !expand(&mut bytes, len, used, *stride) {
                        return Err(corrupt("a part that is not of its page"));
                    }
                    Chunk::strided(pool, pool.small_buffer(&bytes[..used]), used, *stride)
                }
            }
            Form::At(starts) => {
                let start = starts[part] as usize;
                let ends = pool.load_part(extent, self.ends(part).unwrap_or_default())?;
                let ends = ends.as_chunks::<OFFSET_BYTES>().0;
                let ends = ends.iter().map(|&end| u32::from_le_bytes(end) as usize);
                let mut places: Vec<u32> = std::iter::once(0)
                    .chain(ends.map(|end| end.wrapping_sub(start) as u32))
                    .collect();
                let end = start + places.last().map_or(0, |&end| end as usize);
                let most = starts.last().map_or(0, |&end| end as usize);
                if !places.is_sorted() || end > most {
                    return Err(corrupt("row ends that do not ascend to the end"));
                }
                let bytes = pool.load_part(extent, start..end)?;
                Chunk::varying(pool, pool.small_buffer(&bytes), &mut places)
            }
        };
        Ok(PartRows { rows: Arc::new(chunk).into(), first: rows.start, number: part })
    }
}

/// Returns the end of the row before row `row`, read from `ends`.
fn end_before(ends: &[u8], row: usize) -> u32 {
    let Some(before) = row.checked_sub(1) else { return 0 };
    ends.as_chunks::<OFFSET_BYTES>().0.get(before).map_or(0, |&end| u32::from_le_bytes(end))
}

/// Returns the error for bytes read from a store.
pub(super) fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "spilled chunk".into(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use crate::chunk::tests::tiny;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use windrow_pool::{Codec, SpillTo};

    /// Makes a chunk of `rows`, which ascend.
    fn chunk_of(pool: &Pool, rows: &[Vec<u8>], fixed: bool) -> Kept {
        let bytes = rows.concat();
        let buffer = pool.small_buffer(&bytes);
        if fixed {
            return Arc::new(Chunk::strided(pool, buffer, bytes.len(), rows[0].len())).into();
        }
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len() as u32;
            Some(*end)
        });
        let mut starts = std::iter::once(0).chain(ends).collect();
        Arc::new(Chunk::varying(pool, buffer, &mut starts)).into()
    }

    proptest! {
        #[test]
        fn parts_have_the_rows_of_their_page(
            rows in prop::collection::btree_set(prop::collection::vec(0u8..4, 1..14), 2..80),
            shared in prop::collection::vec(0u8..3, 0..12),
            keys in prop::collection::vec(prop::collection::vec(0u8..5, 0..14), 1..8),
            (fixed, within) in any::<(bool, bool)>(),
            chunk_bytes in 60usize..4000,
        ) {
            let rows: BTreeSet<Vec<u8>> = rows
                .into_iter()
                .map(|mut row| {
                    if fixed {
                        row.resize(12, 1);
                    }
                    // A time and a diff, common to all rows.
                    [&shared[..], &row, &[7; 16]].concat()
                })
                .collect();
            let rows: Vec<Vec<u8>> = rows.into_iter().collect();
            let pool = tiny(chunk_bytes).for_index();
            let chunk = chunk_of(&pool, &rows, fixed);
            let image = chunk.elided().unwrap_or_else(|| chunk.image().into_owned());
            let extent = pool.store(&image, (SpillTo::Disk, Codec::None)).unwrap();
            let ends = [&rows[0][..], &rows[rows.len() - 1]];
            let Some(parts) = Parts::of(&pool, &chunk, ends, &image) else { return Ok(()) };
            let of_rows = rows.iter().map(|row| row[..row.len() - 16].to_vec());
            let others = keys.into_iter().map(|key| match within {
                true => [&shared[..], &key].concat(),
                false => key,
            });
            for key in of_rows.chain(others) {
                let first = rows.partition_point(|row| row < &key);
                let is_there = rows.get(first).is_some_and(|row| row.starts_with(&key));
                match parts.find(&key) {
                    Whereabouts::Nowhere => prop_assert!(!is_there),
                    Whereabouts::Unknown => {}
                    Whereabouts::Part(number) => {
                        let part = parts.read(&pool, &extent, number).unwrap();
                        let view = part.rows.rows();
                        let range = part.first..part.first + view.len();
                        let read: Vec<&[u8]> = (0..view.len()).map(|row| view.row(row)).collect();
                        prop_assert_eq!(&read[..], &rows[range.clone()]);
                        prop_assert!(!is_there || range.contains(&first));
                        prop_assert_eq!(part.number, number);
                    }
                }
            }
        }
    }
}
