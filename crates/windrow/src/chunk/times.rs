//! Times of rows.
//!
//! ```text
//! row   | key | ... | time | diffs |       the time precedes the tail; its codes sort like times
//! ```

use windrow_rows::engine::{MOST_TIME_BYTES, OrderedCode};
use windrow_rows::{Layout, Time};

/// The code of a time, padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimeCode([u8; MOST_TIME_BYTES]);

impl TimeCode {
    fn of(code: &[u8]) -> Self {
        let mut bytes = [0; MOST_TIME_BYTES];
        bytes[..code.len()].copy_from_slice(code);
        Self(bytes)
    }

    /// Decodes the time of a layout whose times are `T`.
    pub(crate) fn time<T: Time>(&self) -> T {
        T::decode(&self.0[..T::WIDTH])
    }
}

/// The least and the greatest time code of some rows.
pub(crate) type TimeCodes = [TimeCode; 2];

/// Returns the least and the greatest of `codes`, each of `width` bytes. `codes` is not empty.
pub(super) fn time_codes<'a>(width: usize, codes: impl Iterator<Item = &'a [u8]>) -> TimeCodes {
    if width > size_of::<u64>() {
        let (mut least, mut greatest): (Option<&[u8]>, &[u8]) = (None, &[]);
        for code in codes {
            least = Some(least.map_or(code, |least| least.min(code)));
            greatest = greatest.max(code);
        }
        return [least.unwrap_or_default(), greatest].map(TimeCode::of);
    }
    let (mut least, mut greatest) = (u64::MAX, 0);
    for code in codes {
        let code = number_of(code);
        (least, greatest) = (least.min(code), greatest.max(code));
    }
    [least, greatest].map(|code| TimeCode::of(&code.to_be_bytes()[size_of::<u64>() - width..]))
}

/// Returns the bytes of a row's time; 0 if rows have no time.
pub(crate) fn time_width(layout: &Layout) -> usize {
    let data_type = |column| layout.schema().field(column).data_type();
    layout
        .time()
        .and_then(|column| OrderedCode::of(data_type(column)))
        .map_or(0, OrderedCode::width)
}

/// Returns the bytes after the value of a row: its time and its diffs.
pub(crate) fn end_width(layout: &Layout) -> usize {
    time_width(layout) + layout.tail().len()
}

/// Returns a row without its last `tail` bytes.
#[inline(always)]
pub(crate) fn body_of(row: &[u8], tail: usize) -> &[u8] {
    &row[..row.len() - tail]
}

/// Returns the time of a row: `width` bytes before the last `tail` bytes.
#[inline(always)]
pub(crate) fn time_of(row: &[u8], width: usize, tail: usize) -> &[u8] {
    let end = row.len() - tail;
    &row[end - width..end]
}

/// Returns up to eight bytes as a number of the same order.
#[inline(always)]
fn number_of(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_be_bytes(bytes);
    }
    bytes.iter().fold(0, |code, &byte| code << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_and_the_greatest() {
        let codes = [[3u8; 12], [1; 12], [2; 12]];
        for width in [1, 4, 8, 9, 12] {
            let [least, greatest] = time_codes(width, codes.iter().map(|code| &code[..width]));
            assert_eq!(
                (&least.0[..width], &greatest.0[..width]),
                (&[1; 12][..width], &[3; 12][..width])
            );
            assert!(least.0[width..].iter().all(|&byte| byte == 0));
        }
    }
}
