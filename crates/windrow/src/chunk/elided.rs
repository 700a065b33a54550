//! Pages of fixed-length rows without the byte positions in which no two rows differ.
//!
//! ```text
//! rows    00 00 07 | 00 01 | 00 09 | 01       row 0     (u64, u64) at one time, 32 bytes a row:
//!         00 00 08 | 00 01 | 00 09 | 01       row 1     some two or three bytes of key and of
//!         00 00 09 | 00 02 | 00 09 | 01       row 2     value differ, none of time and diff
//!
//! image   07 01 | 08 01 | 09 02 | 00 00 00 00 00 00 00 09 01 | 24 00
//!         differing bytes        row 0, zeros there           a bit per byte, low first: differs
//! ```
//! Repeated keys, a time and a diff common to the page, and leading bytes of small numbers take no
//! space. Images exist only in a store or on the way to it. In memory, rows have their whole key
//! and value, since readers need a slice of both.
//!
//! Invariant: an image is shorter than its rows, so readers recognize an image by its length. An
//! image expands to its original rows, or expanding fails.

use std::ops::Range;

/// The saving must be at least one `LEAST_GAIN`th of the rows; otherwise rows are stored unchanged.
const LEAST_GAIN: usize = 8;
/// Longer rows are stored unchanged: they differ in too many positions.
const LONGEST: usize = 256;

/// Returns the image of rows of `stride` bytes, each with `end` appended, if it is smaller by an
/// eighth.
pub(super) fn elided(rows: &[u8], stride: usize, end: &[u8]) -> Option<Vec<u8>> {
    let whole = stride + end.len();
    if stride == 0 || whole > LONGEST || rows.len() <= stride {
        return None;
    }
    let first = &rows[..stride];
    let mut differing = vec![0; stride];
    for row in rows.chunks_exact(stride) {
        differing.iter_mut().zip(row.iter().zip(first)).for_each(|(all, (a, b))| *all |= a ^ b);
    }
    let kept: usize = differing.iter().filter(|&&byte| byte != 0).count();
    let count = rows.len() / stride;
    let len = count * kept + head_bytes(whole);
    // Readers recognize an image by its length.
    if len + (count * whole / LEAST_GAIN).max(1) > count * whole {
        return None;
    }
    let mut mask = vec![0; mask_bytes(whole)];
    for (at, _) in differing.iter().enumerate().filter(|&(_, &byte)| byte != 0) {
        mask[at / 8] |= 1 << (at % 8);
    }
    let spans = spans(&mask, whole);
    let mut image = Vec::with_capacity(len);
    for row in rows.chunks_exact(stride) {
        for span in &spans {
            image.extend_from_slice(&row[span.clone()]);
        }
    }
    image.extend(first.iter().zip(&differing).map(|(&byte, &all)| if all == 0 { byte } else { 0 }));
    image.extend_from_slice(end);
    image.extend_from_slice(&mask);
    Some(image)
}

/// Expands the image in the first `len` bytes of `buffer` to `used` bytes of rows of `stride`
/// bytes. Returns false, with arbitrary bytes in the buffer, if it is not an image of such rows.
pub(super) fn expand(buffer: &mut [u8], len: usize, used: usize, stride: usize) -> bool {
    let head = head_bytes(stride);
    if stride == 0 || !used.is_multiple_of(stride) || len < head || len.max(used) > buffer.len() {
        return false;
    }
    let (same, mask) = {
        let head = &buffer[len - head..len];
        (head[..stride].to_vec(), head[stride..].to_vec())
    };
    let spans = spans(&mask, stride);
    let kept: usize = spans.iter().map(ExactSizeIterator::len).sum();
    let count = used / stride;
    if count * kept + head != len || spans.last().is_some_and(|span| span.end > stride) {
        return false;
    }
    let gaps = gaps(&spans, stride);
    // Backwards, each row from the right: reads stay before writes.
    for row in (0..count).rev() {
        let mut from = (row + 1) * kept;
        for span in spans.iter().rev() {
            from -= span.len();
            buffer.copy_within(from..from + span.len(), row * stride + span.start);
        }
        for gap in &gaps {
            buffer[row * stride..][gap.clone()].copy_from_slice(&same[gap.clone()]);
        }
    }
    true
}

/// Returns the bytes of an image after the differing bytes of its rows.
pub(super) fn head_bytes(stride: usize) -> usize {
    stride + mask_bytes(stride)
}

fn mask_bytes(stride: usize) -> usize {
    stride.div_ceil(8)
}

/// Returns the byte ranges that are set in `mask`.
fn spans(mask: &[u8], stride: usize) -> Vec<Range<usize>> {
    let is_set = |at: &usize| mask[at / 8] >> (at % 8) & 1 == 1;
    let mut spans: Vec<Range<usize>> = Vec::new();
    for at in (0..8 * mask_bytes(stride)).filter(is_set) {
        match spans.last_mut() {
            Some(span) if span.end == at => span.end += 1,
            _ => spans.push(at..at + 1),
        }
    }
    spans
}

/// Returns the gaps between `spans`.
fn gaps(spans: &[Range<usize>], stride: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(spans.iter().map(|span| span.end));
    let ends = spans.iter().map(|span| span.start).chain([stride]);
    starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bytes() {
        let rows = [
            [0, 0, 7, 0, 1, 0, 9, 1],
            [0, 0, 8, 0, 1, 0, 9, 1],
            [0, 0, 9, 0, 2, 0, 9, 1],
            [0, 0, 9, 0, 3, 0, 9, 1],
        ];
        let image = elided(&rows.concat(), 8, &[]).unwrap();
        let expected = [&[7, 1, 8, 1, 9, 2, 9, 3][..], &[0, 0, 0, 0, 0, 0, 9, 1], &[0b0001_0100]];
        assert_eq!(image, expected.concat());
        // The same rows with a separate end.
        let short = rows.map(|row| [row[0], row[1], row[2], row[3], row[4], row[5]]);
        assert_eq!(elided(&short.concat(), 6, &[9, 1]).unwrap(), expected.concat());
    }

    #[test]
    fn numbers_and_edges_take_what_differs() {
        // A thousand rows of each, big-endian, at one time.
        let numbers: Vec<u8> =
            (0..1000u64).flat_map(|n| [n, n * 7919, 5, 1].map(u64::to_be_bytes).concat()).collect();
        let edges: Vec<u8> = (0..1000u32)
            .flat_map(|n| {
                [&[n / 16, n * 7919].map(u32::to_be_bytes).concat()[..], &[0; 15], &[1]].concat()
            })
            .collect();
        let a_row = |rows: &[u8], stride| elided(rows, stride, &[]).map(|image| image.len() / 1000);
        assert_eq!((a_row(&numbers, 32), a_row(&edges, 24)), (Some(5), Some(4)));
    }

    proptest! {
        #[test]
        fn rows_come_back(
            stride in 1usize..70,
            count in 2usize..60,
            same in prop::collection::vec(any::<bool>(), 70),
            bytes in prop::collection::vec(any::<u8>(), 70 * 60),
            room in 0usize..9,
        ) {
            let mut rows = bytes[..stride * count].to_vec();
            for at in (stride..rows.len()).filter(|at| same[at % stride]) {
                rows[at] = rows[at % stride];
            }
            if let Some(image) = elided(&rows, stride, &[]) {
                prop_assert!(image.len() < rows.len());
                let mut buffer = image.clone();
                buffer.resize(rows.len() + room, 0xaa);
                prop_assert!(expand(&mut buffer, image.len(), rows.len(), stride));
                prop_assert_eq!(&buffer[..rows.len()], &rows[..]);
            }
        }

        #[test]
        fn what_is_no_image_is_refused_or_expanded(
            stride in 0usize..70,
            rows in 0usize..40,
            image in prop::collection::vec(any::<u8>(), 0..600),
            used in 0usize..900,
            whole in any::<bool>(),
        ) {
            let used = if whole { rows * stride } else { used };
            let mut buffer = image.clone();
            buffer.resize(1000, 0);
            expand(&mut buffer, image.len(), used, stride);
        }
    }
}
