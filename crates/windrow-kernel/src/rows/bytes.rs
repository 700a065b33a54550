//! Writes columns of one byte of each row: Booleans, markers, and the bytes of small numbers.
//!
//! ```text
//! of a column                        bytes of a row, of adjacent columns
//! bits      1 0 1 1 ...              | m0 | a0 | h0 | l0 |
//! values    a0 a1 a2 ...        -->  | m1 | a1 | h1 | l1 |
//! numbers   h0 l0 h1 l1 ...          | m2 | a2 | h2 | l2 |
//! ```
//!
//! For up to eight columns, the bytes of 64 rows are made side by side, joined to words of a row,
//! sixteen rows at a time, and stored.

use std::ops::Range;

use super::block::{self, BLOCK, Block, block_at, joined};
use super::lanes::{Bits, Places, check_bounds};
use crate::copy::copy_short;

/// Columns written at once: the bytes of a word.
const WORD: usize = 8;
/// Rows written at once: the bits of a word.
const ROWS: usize = 64;

/// The source of a column's bytes.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    Same(u8),
    /// The bytes of an unset and of a set bit.
    Bits(Bits<'a>, [u8; 2]),
    /// Byte `at` of numbers of `width` bytes, one or two, XORed with `flip`, and with `float` if
    /// the number is negative.
    Values {
        values: &'a [u8],
        width: usize,
        at: usize,
        flip: u8,
        float: u8,
    },
}

/// One byte of each row.
#[derive(Clone, Copy, Debug)]
pub struct ByteLane<'a> {
    pub source: Source<'a>,
    /// Validity bits; `None` if all bytes are valid.
    pub valid: Option<Bits<'a>>,
    /// The byte of a null.
    pub null: u8,
}

impl<'a> ByteLane<'a> {
    /// Creates a lane without nulls.
    pub fn of(source: Source<'a>) -> Self {
        Self { source, valid: None, null: 0 }
    }

    fn holds(&self, rows: usize) -> bool {
        let has = match self.source {
            Source::Same(_) => true,
            Source::Bits(bits, _) => bits.holds(rows),
            Source::Values { values, width, at, .. } => {
                matches!(width, 1 | 2) && at < width && values.len() / width >= rows
            }
        };
        has && self.valid.is_none_or(|bits| bits.holds(rows))
    }

    /// Writes the bytes of `count` rows from `row` on; the bytes after them are arbitrary.
    #[inline(always)]
    fn put(&self, row: usize, count: usize, out: &mut [u8; ROWS]) {
        match self.source {
            Source::Same(byte) => *out = [byte; ROWS],
            Source::Bits(bits, bytes) => *out = spread(bits.word(row), bytes),
            Source::Values { values, width: 1, flip, float, .. } => {
                for (out, value) in out.iter_mut().zip(&values[row..row + count]) {
                    let negative = (value.cast_signed() >> 7).cast_unsigned();
                    *out = value ^ flip ^ (float & negative);
                }
            }
            Source::Values { values, at, flip, float, .. } => {
                let values = values[2 * row..2 * (row + count)].as_chunks::<2>().0;
                let code = |value: &[u8; 2], at: usize| {
                    let value = u16::from_le_bytes(*value);
                    let negative = (value.cast_signed() >> 15) as u8;
                    (value >> (8 * at)) as u8 ^ flip ^ (float & negative)
                };
                // A loop for each byte vectorises.
                match at {
                    0 => out.iter_mut().zip(values).for_each(|(out, value)| *out = code(value, 0)),
                    _ => out.iter_mut().zip(values).for_each(|(out, value)| *out = code(value, 1)),
                }
            }
        }
        if let Some(valid) = self.valid {
            let keep = spread(valid.word(row), [0, 0xff]);
            for (out, keep) in out.iter_mut().zip(keep) {
                *out = *out & keep | self.null & !keep;
            }
        }
    }
}

/// Returns a byte for each bit: the first if the bit is unset, else the second.
#[inline(always)]
fn spread(bits: u64, [zero, one]: [u8; 2]) -> [u8; ROWS] {
    let mut out = [0; ROWS];
    for (at, out) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let set = block::spread((bits >> (BLOCK * at)) as u16);
        *out = set.map(|set| zero ^ set & (zero ^ one));
    }
    out
}

/// Writes adjacent bytes for the rows `rows`; the bytes of the first row start at
/// `places.place(0)`.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lanes.
// Not inlined: inlined into its one caller, Booleans took 7 % longer.
#[inline(never)]
pub fn put_bytes<P: Places>(lanes: &[ByteLane<'_>], rows: Range<usize>, places: P, out: &mut [u8]) {
    check_bounds(lanes.len(), rows.len(), places, out.len());
    assert!(lanes.iter().all(|lane| lane.holds(rows.end)), "a byte for each row");
    let out = out.as_mut_ptr();
    for (word, lanes) in lanes.chunks(WORD).enumerate() {
        let places = places.shifted(word * WORD);
        // SAFETY: places, bits and values were checked above, for all `rows`.
        unsafe {
            match lanes.len() {
                1 => put_of::<1, P>(lanes, rows.clone(), places, out),
                2 => put_of::<2, P>(lanes, rows.clone(), places, out),
                3 | 4 => put_of::<4, P>(lanes, rows.clone(), places, out),
                _ => put_of::<WORD, P>(lanes, rows.clone(), places, out),
            }
        }
    }
}

/// Writes more than `N / 2` and at most `N` lanes.
///
/// # Safety
/// The bytes of the `n`th of `rows` lie within `out` at `places.place(n)`. Each lane has all
/// `rows`.
unsafe fn put_of<const N: usize, P: Places>(
    lanes: &[ByteLane<'_>],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) {
    // Whether the rows have these bytes only.
    let is_whole = lanes.len() == N && places.stride() == Some(N);
    let mut columns = [[0; ROWS]; N];
    for first in (0..rows.len()).step_by(ROWS) {
        let count = ROWS.min(rows.len() - first);
        for (column, lane) in columns.iter_mut().zip(lanes) {
            lane.put(rows.start + first, count, column);
        }
        for at in (0..count).step_by(BLOCK) {
            let mut blocks = columns.each_ref().map(|column| block_at(column, at));
            // Words of one byte become words of two, four and eight.
            if N > 1 {
                blocks = joined_all::<N, 1>(blocks);
            }
            if N > 2 {
                blocks = joined_all::<N, 2>(blocks);
            }
            if N > 4 {
                blocks = joined_all::<N, 4>(blocks);
            }
            let (places, count) = (places.behind(first + at), BLOCK.min(count - at));
            if is_whole && count == BLOCK {
                // SAFETY: the caller provides places of `count` rows within `out`; with stride `N`
                // the rows are adjacent.
                unsafe { out.add(places.place(0)).cast::<[Block; N]>().write(blocks) };
                continue;
            }
            for (row, word) in blocks.as_flattened().as_chunks::<N>().0[..count].iter().enumerate()
            {
                // SAFETY: the caller provides places of whole words of these lanes within `out`.
                unsafe {
                    let to = out.add(places.place(row));
                    match lanes.len() == N {
                        true => to.cast::<[u8; N]>().write(*word),
                        false => {
                            let to = std::slice::from_raw_parts_mut(to, lanes.len());
                            copy_short(to, &word[..lanes.len()]);
                        }
                    }
                }
            }
        }
    }
}

/// Doubles the length of words: joins each word of `OF` bytes, over as many blocks, with the next
/// one.
#[inline(always)]
fn joined_all<const N: usize, const OF: usize>(blocks: [Block; N]) -> [Block; N] {
    let mut out = blocks;
    for pair in 0..N / 2 {
        let (word, part) = (pair / OF, pair % OF);
        let first = 2 * word * OF;
        let both = joined::<OF>(blocks[first + part], blocks[first + OF + part]);
        out[first + 2 * part..][..2].copy_from_slice(&both);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lanes::{Scattered, Strided};
    use super::*;

    /// A kind, the bytes of bits, whether there are nulls, and the start of the data.
    fn lane(data: &[u8], (kind, bytes, nullable, at): (u8, [u8; 3], bool, usize)) -> ByteLane<'_> {
        let source = match kind {
            0 => Source::Same(bytes[0]),
            1 => Source::Bits(Bits { bytes: data, first: at }, [bytes[0], bytes[1]]),
            _ => {
                let width = if kind == 2 { 1 } else { 2 };
                let [flip, float, _] = bytes;
                Source::Values {
                    values: &data[at..],
                    width,
                    at: usize::from(kind) % width,
                    flip,
                    float,
                }
            }
        };
        let valid = nullable.then_some(Bits { bytes: &data[at / 2..], first: at });
        ByteLane { source, valid, null: bytes[2] }
    }

    /// Returns the byte of a row.
    fn byte(lane: &ByteLane<'_>, row: usize) -> u8 {
        match (lane.valid, lane.source) {
            (Some(valid), _) if !valid.get(row) => lane.null,
            (_, Source::Same(byte)) => byte,
            (_, Source::Bits(bits, bytes)) => bytes[usize::from(bits.get(row))],
            (_, Source::Values { values, width, at, flip, float }) => {
                let value = &values[row * width..(row + 1) * width];
                value[at] ^ flip ^ if value[width - 1] >= 0x80 { float } else { 0 }
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_of_rows_are_those_of_the_columns(
            data in prop::collection::vec(any::<u8>(), 2800),
            kinds in prop::collection::vec((0u8..5, any::<[u8; 3]>(), any::<bool>(), 0usize..20), 1..19),
            rows in 0usize..300,
            first in 0usize..70,
            gap in 0usize..3,
            scattered: bool,
        ) {
            let lanes: Vec<ByteLane<'_>> = kinds.into_iter().map(|kind| lane(&data, kind)).collect();
            let rows = first..first + rows;
            let stride = lanes.len() + gap;
            let places = Strided { first: 2, stride };
            let cursors: Vec<usize> = (0..rows.len()).map(|row| row * stride).collect();
            let mut out = vec![0xaa; 2 + rows.len() * stride];
            let mut twin = out.clone();
            let by_cursor = Scattered { cursors: &cursors, distance: 2 };
            match scattered {
                true => put_bytes(&lanes, rows.clone(), by_cursor, &mut out),
                false => put_bytes(&lanes, rows.clone(), places, &mut out),
            }
            for (at, row) in rows.enumerate() {
                for (column, lane) in lanes.iter().enumerate() {
                    twin[places.place(at) + column] = byte(lane, row);
                }
            }
            prop_assert_eq!(&out, &twin);
        }
    }
}
