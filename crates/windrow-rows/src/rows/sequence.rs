//! Sequences: the position of a row in the input, as bytes that compare like the number.
//!
//! Rows of one length carry eight bytes, big-endian. Rows that vary carry the short code: the
//! number is an input (24 bits) and a row within the input (40 bits), and most jobs have few inputs
//! and rows far below 2^40.
//!
//! ```text
//! input < 40    | 6 * input + k       | row: k bytes |                    k = 0..=5, 4 bytes for
//! input >= 40   | 239 + j | input: j bytes | k | row: k bytes |           16 million rows
//! ```
//!
//! Invariant: each number has one code. Codes ascend with the numbers, and no code is a prefix of
//! another: codes have the shortest form, and a longer form starts with a greater length byte.

use windrow_kernel::copy::copy_short;

/// Bits of the row within its input.
const ROW_BITS: u32 = 40;
/// Number of inputs that fit into the first byte.
const NEAR_INPUTS: u64 = 40;
/// Values of `k`: 0 to 5 bytes of a row.
const LENGTHS: u64 = 6;
/// First byte of greater inputs, minus the number of their bytes.
const FAR: u8 = 239;
/// Bytes of the longest code.
const LONGEST: usize = 1 + 3 + 1 + 5;

/// Counts the bytes of `number` without leading zeros.
fn bytes_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

fn parts(sequence: u64) -> (u64, u64) {
    (sequence >> ROW_BITS, sequence & ((1 << ROW_BITS) - 1))
}

/// Returns the bytes of the short code of `sequence`.
pub(super) fn short_len(sequence: u64) -> usize {
    let (input, row) = parts(sequence);
    let input = if input < NEAR_INPUTS { 0 } else { bytes_of(input) + 1 };
    1 + input + bytes_of(row)
}

/// Returns the last sequence of the same input whose code has the same length as the code of
/// `sequence`.
fn same_len_until(sequence: u64) -> u64 {
    let (input, row) = parts(sequence);
    input << ROW_BITS | ((1 << (8 * bytes_of(row))) - 1)
}

/// Returns the length of the short codes of `first`, `first + 1`, ..., if all `count` codes have
/// one length and one first byte.
pub(super) fn same_len(first: u64, count: usize) -> Option<usize> {
    let last = first.checked_add(count.saturating_sub(1) as u64)?;
    let near = first >> ROW_BITS < NEAR_INPUTS;
    (near && last <= same_len_until(first)).then(|| short_len(first))
}

/// Returns the short code of `sequence`, and its length.
fn short(sequence: u64) -> ([u8; LONGEST], usize) {
    let (input, row) = parts(sequence);
    let mut out = [0; LONGEST];
    let row_len = bytes_of(row);
    let mut at = 1;
    if input < NEAR_INPUTS {
        out[0] = (input * LENGTHS) as u8 + row_len as u8;
    } else {
        let len = bytes_of(input);
        out[0] = FAR + len as u8;
        out[1..1 + len].copy_from_slice(&input.to_be_bytes()[8 - len..]);
        out[1 + len] = row_len as u8;
        at += len + 1;
    }
    out[at..at + row_len].copy_from_slice(&row.to_be_bytes()[8 - row_len..]);
    (out, at + row_len)
}

/// Writes the short codes of `first`, `first + 1`, ..., each `distance` after its cursor, with all
/// bytes complemented by `flip`. Returns the distance to the next field; the cursors may have
/// moved.
pub(super) fn put_short(
    first: u64,
    flip: u8,
    cursors: &mut [usize],
    distance: usize,
    out: &mut [u8],
) -> usize {
    if let Some(len) = same_len(first, cursors.len()) {
        let (input, row) = parts(first);
        let head = input * LENGTHS + (len as u64 - 1);
        let words =
            (head << (8 * (len - 1)) | row..).map(|word| word ^ u64::from_ne_bytes([flip; 8]));
        for (cursor, word) in cursors.iter().zip(words) {
            copy_short(&mut out[cursor + distance..], &word.to_be_bytes()[8 - len..]);
        }
        return distance + len;
    }
    for (row, cursor) in (0..).zip(cursors) {
        let (mut code, len) = short(first.wrapping_add(row));
        code.iter_mut().for_each(|byte| *byte ^= flip);
        *cursor += distance;
        out[*cursor..*cursor + len].copy_from_slice(&code[..len]);
        *cursor += len;
    }
    0
}

/// Returns the end of the short code that starts at `at` in `row`; at most the end of the row.
#[inline]
pub(super) fn skip_short(row: &[u8], at: usize, flip: u8) -> usize {
    let Some(&head) = row.get(at) else { return row.len() };
    let head = head ^ flip;
    if u64::from(head) < NEAR_INPUTS * LENGTHS {
        return (at + 1 + usize::from(head % LENGTHS as u8)).min(row.len());
    }
    let length_at = at + 1 + usize::from(head - FAR);
    let row_len = row.get(length_at).map_or(row.len(), |&len| usize::from(len ^ flip));
    (length_at + 1 + row_len).min(row.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers around every change of length, in order.
    fn numbers() -> Vec<u64> {
        let mut out = Vec::new();
        for input in [0u64, 1, 2, 39, 40, 41, 255, 256, 65_535, 65_536, (1 << 24) - 1] {
            let rows = (0..=5).flat_map(|bytes| {
                let end = 1u64 << (8 * bytes);
                [end - 1, end, end + 1, end + 2]
            });
            out.extend(rows.filter(|row| *row < 1 << ROW_BITS).map(|row| input << ROW_BITS | row));
            out.push(input << ROW_BITS | ((1 << ROW_BITS) - 1));
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    #[test]
    fn codes_ascend_and_end_where_they_say() {
        let numbers = numbers();
        let code = |number: u64| {
            let (bytes, len) = short(number);
            assert_eq!(len, short_len(number));
            assert_eq!(skip_short(&[&bytes[..len], &[7; 9]].concat(), 0, 0), len);
            bytes[..len].to_vec()
        };
        for (&a, &b) in numbers.iter().zip(&numbers[1..]) {
            let (x, y) = (code(a), code(b));
            assert!(x < y && !y.starts_with(&x), "{a:x} {x:x?} {b:x} {y:x?}");
            assert_eq!(same_len_until(a) >= b, x.len() == y.len() && a >> 40 == b >> 40);
        }
    }

    #[test]
    fn tiles_are_written_as_single_codes_are() {
        for flip in [0, 0xff] {
            for first in numbers() {
                for count in [1, 2, 5, 128] {
                    let mut cursors: Vec<usize> = (0..count).map(|row| row * 20).collect();
                    let mut out = vec![0xaa; count * 20];
                    let behind = put_short(first, flip, &mut cursors, 3, &mut out);
                    for (row, cursor) in cursors.iter().enumerate() {
                        let (code, len) = short(first.wrapping_add(row as u64));
                        let start = row * 20 + 3;
                        assert_eq!(cursor + behind, start + len);
                        let flipped: Vec<u8> = code[..len].iter().map(|byte| byte ^ flip).collect();
                        assert_eq!(&out[start..start + len], flipped);
                        assert_eq!(out[start + len], 0xaa);
                        assert_eq!(skip_short(&out[..row * 20 + 20], start, flip), start + len);
                    }
                }
            }
        }
    }
}
