//! The two-way merge of rows of varying length.
//!
//! ```text
//! word   the eight bytes in which the rows of this merge may differ first, of both heads
//! 1. the lesser word goes; it alone is loaded again
//! 2. equal words: the rest is compared; rows that are equal become one
//! ```
//!
//! A forward merge with a branch on every comparison: lengths must be known before the next row has a
//! place, so there is no merging from both ends. In no order that branch is guessed wrong every other
//! row, which costs less than packing, sorting and gathering do.

use std::cmp::Ordering;

use super::Wrapped;
use super::shape::common;
use super::two::Merged;
use crate::kernel::copy::copy_short;

/// Rows, and where they start; the last entry is the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) starts: &'a [u32],
    /// Bytes at the end of rows that are not compared.
    pub(crate) tail: usize,
}

impl<'a> Varying<'a> {
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline(always)]
    fn row(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    #[inline(always)]
    fn body(&self, index: usize) -> &'a [u8] {
        let row = self.row(index);
        &row[..row.len() - self.tail]
    }

    /// The eight compared bytes of a row from `at`, in their order; zeros behind its end.
    #[inline(always)]
    fn word(&self, index: usize, at: usize) -> u64 {
        let body = self.body(index);
        if let Some(bytes) = body.get(at..at + 8) {
            return u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        }
        let mut bytes = [0; 8];
        if let Some(end) = body.get(at..) {
            bytes[..end.len()].copy_from_slice(end);
        }
        u64::from_be_bytes(bytes)
    }

    /// The number of rows that are at or below `bound`.
    fn below(&self, bound: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.body(middle) <= bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Rows that are being written, and where they end.
pub(crate) struct Target<'a> {
    pub(crate) bytes: &'a mut [u8],
    /// Bytes that are written.
    pub(crate) used: usize,
    pub(crate) ends: &'a mut Vec<u32>,
    /// Bytes at the end of `bytes` to be left for each row.
    pub(crate) spare: usize,
}

impl Target<'_> {
    /// Appends a row; false if there is no room.
    #[inline(always)]
    fn push(&mut self, row: &[u8]) -> bool {
        let used = self.used + row.len();
        if used + self.ends.len() * self.spare > self.bytes.len() {
            return false;
        }
        copy_short(&mut self.bytes[self.used..], row);
        self.used = used;
        self.ends.push(used as u32);
        true
    }
}

/// Merges `a` and `b` into `out` until one of them is used up, or `out` has no room for the next row.
/// With `wrapped` equal rows become one, as in [`super::merge`]; without, `a`'s come first.
pub(crate) fn merge_varying(
    a: Varying<'_>,
    b: Varying<'_>,
    out: &mut Target<'_>,
    mut wrapped: Wrapped<'_>,
) -> Merged {
    let mut done = Merged::default();
    if a.len() == 0 || b.len() == 0 {
        return done;
    }
    let (a_last, b_last) = (a.body(a.len() - 1), b.body(b.len() - 1));
    let (a_rows, b_rows) = match a_last.cmp(b_last) {
        Ordering::Greater => (a.below(b_last), b.len()),
        _ => (a.len(), b.below(a_last)),
    };
    let at = common(a.body(0).min(b.body(0)), a_last.min(b_last));
    let before = out.ends.len();
    let mut words = (a.word(0, at), b.word(0, at));
    while done.a < a_rows && done.b < b_rows {
        let order = match words.0.cmp(&words.1) {
            Ordering::Equal => a.body(done.a).cmp(b.body(done.b)),
            order => order,
        };
        if order == Ordering::Equal
            && let Some(wrapped) = &mut wrapped
        {
            if !add(a.row(done.a), b.row(done.b), out, wrapped) {
                break;
            }
            (done.a, done.b) = (done.a + 1, done.b + 1);
            if done.a < a_rows && done.b < b_rows {
                words = (a.word(done.a, at), b.word(done.b, at));
            }
        } else if order == Ordering::Greater {
            if !out.push(b.row(done.b)) {
                break;
            }
            done.b += 1;
            if done.b < b_rows {
                words.1 = b.word(done.b, at);
            }
        } else {
            if !out.push(a.row(done.a)) {
                break;
            }
            done.a += 1;
            if done.a < a_rows {
                words.0 = a.word(done.a, at);
            }
        }
    }
    // What is left of one side has no equal on the other.
    while done.a < a_rows && done.b == b_rows && out.push(a.row(done.a)) {
        done.a += 1;
    }
    while done.b < b_rows && done.a == a_rows && out.push(b.row(done.b)) {
        done.b += 1;
    }
    done.out = out.ends.len() - before;
    done
}

/// Appends the sum of two equal rows, unless it is zero; false if there is no room.
fn add(a: &[u8], b: &[u8], out: &mut Target<'_>, wrapped: &mut dyn FnMut(&[u8], i64)) -> bool {
    let diff = |row: &[u8]| i64::from_le_bytes(row.last_chunk().copied().unwrap_or_default());
    let (sum, overflow) = diff(a).overflowing_add(diff(b));
    if sum != 0 {
        if !out.push(a) {
            return false;
        }
        let used = out.used;
        out.bytes[used - 8..used].copy_from_slice(&sum.to_le_bytes());
    }
    if overflow {
        wrapped(&a[..a.len() - 8], if diff(b) > 0 { 1 } else { -1 });
    }
    true
}
