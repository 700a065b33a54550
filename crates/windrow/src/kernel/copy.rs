//! Copies of short byte strings of varying length.
//!
//! A call of `memcpy` costs more than the moves when rows are 10 to 200 bytes. These copies use a
//! few moves of constant size, the last one overlapping the one before, and never touch a byte
//! outside of the two slices.

use super::prefetch::prefetch;

/// Rows that a gather asks for before it copies them.
const AHEAD: usize = 12;

/// Copies `source` to the start of `target`.
///
/// # Panics
/// If `target` is shorter than `source`.
#[inline(always)]
pub(crate) fn copy_short(target: &mut [u8], source: &[u8]) {
    let len = source.len();
    let target = &mut target[..len];
    if len >= 32 {
        if len > 512 {
            target.copy_from_slice(source);
            return;
        }
        let mut at = 0;
        while at + 32 <= len {
            target[at..at + 32].copy_from_slice(&source[at..at + 32]);
            at += 32;
        }
        target[len - 32..].copy_from_slice(&source[len - 32..]);
    } else if len >= 16 {
        let (head, tail): ([u8; 16], [u8; 16]) = (fixed(source, 0), fixed(source, len - 16));
        target[..16].copy_from_slice(&head);
        target[len - 16..].copy_from_slice(&tail);
    } else if len >= 8 {
        let (head, tail): ([u8; 8], [u8; 8]) = (fixed(source, 0), fixed(source, len - 8));
        target[..8].copy_from_slice(&head);
        target[len - 8..].copy_from_slice(&tail);
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

/// Copies `rows`, all of `stride` bytes, one behind the other to the start of `target`, up to the first
/// for which `keep` is false; returns how many.
///
/// # Panics
/// If a row is shorter, or `target` has no room for all.
pub(crate) fn gather<'a>(
    rows: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    stride: usize,
    target: &mut [u8],
    keep: impl Fn(&[u8]) -> bool,
) -> usize {
    macro_rules! lengths {
        ($($length:literal)*) => {
            match stride {
                $($length => gather_of::<$length>(rows, target, keep),)*
                _ => {
                    let len = rows.len();
                    let targets = target[..len * stride].chunks_exact_mut(stride);
                    for (index, (target, row)) in targets.zip(rows).enumerate() {
                        if !keep(row) {
                            return index;
                        }
                        copy_short(target, &row[..stride]);
                    }
                    len
                }
            }
        };
    }
    lengths!(16 24 32 40 48 56 64 72 80 88 96 104 112 120 128)
}

/// [`gather`], with moves of constant size: a third faster for rows of 96 bytes.
#[inline(always)]
fn gather_of<'a, const N: usize>(
    rows: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    target: &mut [u8],
    keep: impl Fn(&[u8]) -> bool,
) -> usize {
    let len = rows.len();
    let (targets, _) = target[..len * N].as_chunks_mut::<N>();
    let mut ahead = rows.clone().skip(AHEAD);
    for (index, (target, row)) in targets.iter_mut().zip(rows).enumerate() {
        if !keep(row) {
            return index;
        }
        if let Some(row) = ahead.next() {
            for line in (0..N).step_by(64) {
                prefetch(row.as_ptr().wrapping_add(line));
            }
        }
        target.copy_from_slice(&row[..N]);
    }
    len
}

/// Writes each byte of `source`, plus `add` and then with the bits of `flip` complemented, to
/// `target`, which is of the same length.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub(crate) fn add_short(target: &mut [u8], source: &[u8], add: u8, flip: u8) {
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
            let rows: Vec<&[u8]> = source.chunks_exact(stride).take(5).rev().collect();
            for kept in 0..=5 {
                let mut target = vec![0; 5 * stride + 3];
                let keep = |row: &[u8]| kept == 5 || row.as_ptr() != rows[kept].as_ptr();
                let all = rows.iter().copied();
                assert_eq!(gather(all, stride, &mut target, keep), kept);
                assert_eq!(target[..kept * stride], rows[..kept].concat());
                assert!(target[kept * stride..].iter().all(|&byte| byte == 0));
            }
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
