//! Copies of short byte strings of varying length, and of rows scattered in memory.
//!
//! For rows of 10 to 200 bytes, a call of `memcpy` costs more than the moves. These copies use a
//! few moves of constant size, whose last one overlaps the one before, and never touch a byte
//! outside of the two slices.

use crate::merge::copy_bytes;

/// Copies `source` to the start of `target`.
///
/// # Panics
/// If `target` is shorter than `source`.
#[inline(always)]
pub fn copy_short(target: &mut [u8], source: &[u8]) {
    let len = source.len();
    let target = &mut target[..len];
    if len >= 8 {
        // SAFETY: both slices have `len` bytes, at least 8, and a mutable slice overlaps no other.
        unsafe { copy_bytes(source.as_ptr(), target.as_mut_ptr(), len) };
    } else if len >= 4 {
        let (head, tail): ([u8; 4], [u8; 4]) = (fixed(source, 0), fixed(source, len - 4));
        target[..4].copy_from_slice(&head);
        target[len - 4..].copy_from_slice(&tail);
    } else {
        for (target, source) in target.iter_mut().zip(source) {
            *target = *source;
        }
    }
}

/// Copies rows, one after the other, to the start of `target`.
///
/// # Panics
/// If `target` is too short.
pub fn copy_rows(mut target: &mut [u8], rows: &[&[u8]]) {
    for row in rows {
        copy_short(target, row);
        target = &mut target[row.len()..];
    }
}

/// Rows of one length in several parts; the low `bits` of an index are the place in the part.
#[derive(Clone, Copy, Debug)]
pub struct Table<'p, 'a> {
    pub parts: &'p [&'a [u8]],
    pub bits: u32,
    pub stride: usize,
}

impl<'a> Table<'_, 'a> {
    /// Returns the row of an index, as [`Table::row`] does, for the stride `N`.
    #[inline(always)]
    fn row_of<const N: usize>(self, index: usize) -> &'a [u8; N] {
        let rows: &'a [[u8; N]] = self.parts[index >> self.bits].as_chunks::<N>().0;
        &rows[index & ((1 << self.bits) - 1)]
    }

    /// Returns the row of an index.
    #[inline(always)]
    pub fn row(self, index: usize) -> &'a [u8] {
        let at = index & ((1 << self.bits) - 1);
        &self.parts[index >> self.bits][at * self.stride..][..self.stride]
    }
}

/// Copies the rows of `indexes`, one after the other, to the start of `target`, until `keep` is
/// false for a row or `target` is full. Returns the number of copied rows.
///
/// For rows of 32 bytes, moves of constant size to addresses with constant strides take half the
/// time.
///
/// # Panics
/// If an index has no row.
pub fn gather(
    table: Table<'_, '_>,
    indexes: impl Iterator<Item = usize>,
    keep: impl Fn(&[u8]) -> bool,
    target: &mut [u8],
) -> usize {
    macro_rules! lengths {
        ($($length:literal)*) => {
            match table.stride {
                $($length => gather_of::<$length>(table, indexes, keep, target),)*
                stride => {
                    let pairs = target.chunks_exact_mut(stride).zip(indexes);
                    let pairs = pairs.map(|(to, index)| (to, table.row(index)));
                    pairs.take_while(|pair| keep(pair.1)).map(|(to, row)| copy_short(to, row)).count()
                }
            }
        };
    }
    lengths!(16 24 32 40 48 56 64 72 80 88 96 104 112 120 128)
}

#[inline(always)]
fn gather_of<const N: usize>(
    table: Table<'_, '_>,
    indexes: impl Iterator<Item = usize>,
    keep: impl Fn(&[u8]) -> bool,
    target: &mut [u8],
) -> usize {
    // In a single part, the index is the place.
    if let [part] = table.parts {
        let rows = part.as_chunks::<N>().0;
        return gather_rows(indexes.map(|index| &rows[index]), keep, target);
    }
    gather_rows(indexes.map(|index| table.row_of::<N>(index)), keep, target)
}

#[inline(always)]
fn gather_rows<'a, const N: usize>(
    rows: impl Iterator<Item = &'a [u8; N]>,
    keep: impl Fn(&[u8]) -> bool,
    target: &mut [u8],
) -> usize {
    let mut count = 0;
    for (to, row) in target.as_chunks_mut::<N>().0.iter_mut().zip(rows) {
        if !keep(row) {
            break;
        }
        *to = *row;
        count += 1;
    }
    count
}

/// Writes each byte of `source`, plus `add` and then XOR `flip`, to `target`.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub fn add_short(target: &mut [u8], source: &[u8], add: u8, flip: u8) {
    let len = source.len();
    assert_eq!(target.len(), len);
    let mut at = 0;
    while at + 16 <= len {
        put_sum::<16>(target, source, at, add, flip);
        at += 16;
    }
    if at < len && len >= 16 {
        put_sum::<16>(target, source, len - 16, add, flip);
    } else if len >= 8 {
        put_sum::<8>(target, source, 0, add, flip);
        put_sum::<8>(target, source, len - 8, add, flip);
    } else if len >= 4 {
        put_sum::<4>(target, source, 0, add, flip);
        put_sum::<4>(target, source, len - 4, add, flip);
    } else {
        for (target, source) in target.iter_mut().zip(source) {
            *target = source.wrapping_add(add) ^ flip;
        }
    }
}

#[inline(always)]
fn put_sum<const N: usize>(target: &mut [u8], source: &[u8], at: usize, add: u8, flip: u8) {
    let mut bytes: [u8; N] = fixed(source, at);
    bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(add) ^ flip);
    target[at..at + N].copy_from_slice(&bytes);
}

#[inline(always)]
fn fixed<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_length_are_gathered() {
        let source: Vec<u8> = (0..200 * 5).map(|i| (i % 251) as u8).collect();
        for stride in 1..200 {
            let (parts, indexes) =
                ([&source[2 * stride..5 * stride], &source[..2 * stride]], [4, 2, 0, 5, 1]);
            let table = Table { parts: &parts, bits: 2, stride };
            let all: Vec<&[u8]> = indexes.iter().map(|&index| table.row(index)).collect();
            for (from, room, most) in [(0, 5, 5), (7, 5, 5), (16, 5, 3), (16, 4, 5), (0, 6, 5)] {
                let mut target = vec![0; from + room * stride];
                let keep =
                    |row: &[u8]| all[most..].iter().all(|other| row.as_ptr() != other.as_ptr());
                let copied = gather(table, indexes.into_iter(), keep, &mut target[from..]);
                let (count, end) = (room.min(most), from + room.min(most) * stride);
                assert_eq!(copied, count);
                assert_eq!(target[from..end], all[..count].concat());
                assert!(target[..from].iter().chain(&target[end..]).all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn rows_that_vary_are_copied() {
        let source: Vec<u8> = (0..4000).map(|i| (i % 251) as u8 + 1).collect();
        for (lengths, spare) in [[1, 0, 63, 64, 65], [49, 128, 200, 7, 127]].iter().zip([0, 70]) {
            let rows: Vec<&[u8]> = lengths.iter().map(|&len| &source[len..2 * len]).collect();
            let expected = rows.concat();
            let mut target = vec![0; expected.len() + spare];
            copy_rows(&mut target, &rows);
            assert_eq!(target[..expected.len()], expected);
        }
    }

    #[test]
    fn every_length_is_copied_and_nothing_else_is_written() {
        let source: Vec<u8> = (0..700).map(|i| (i % 251) as u8 + 1).collect();
        for len in 0..source.len() {
            let mut target = vec![0; len + 3];
            copy_short(&mut target, &source[..len]);
            assert_eq!(&target[..len], &source[..len]);
            assert_eq!(&target[len..], &[0; 3]);
            let sums: Vec<u8> = source[..len].iter().map(|byte| byte.wrapping_add(2) ^ 9).collect();
            add_short(&mut target[..len], &source[..len], 2, 9);
            assert_eq!((&target[..len], &target[len..]), (&sums[..], &[0; 3][..]));
        }
    }
}
