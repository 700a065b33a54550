//! Adjacent numbers without nulls into rows, a few rows at a time.
//!
//! What is known of the columns beforehand, their codes as the registers of a kernel hold them, is made
//! once, so that a call costs little more than its rows:
//!
//! ```text
//! Plain   | codes of a, b, c, ...: up to twelve columns |     made once
//! put     a0 a1   b0 b1   c0 c1   ...   -->   | a0 | b0 | c0 | ... |   | a1 | b1 | c1 | ... |
//! ```

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::lane::{Code, Lane, Places};
use super::lanes::Lanes;
use super::{check_bounds, put};

/// Columns that are written at once, at the most.
pub(crate) const MOST: usize = 12;

/// How many of `left` adjacent columns of `width` bytes are best written at once.
pub(crate) fn at_once(left: usize, width: usize) -> usize {
    match (left, width) {
        (10 | 12, 8) => left,
        _ => left.min(8),
    }
}

/// Adjacent columns of one width, as many as are [`at_once`], without nulls and without codes that grow.
#[derive(Debug)]
pub(crate) struct Plain {
    codes: Vec<Code>,
    width: usize,
    /// The codes for the widest kernel, where the machine has what it needs.
    #[cfg(target_arch = "x86_64")]
    wide: Option<Box<[avx512::Codes]>>,
}

impl Plain {
    /// Columns of these codes, of `width` bytes: 4, 8 or 16.
    ///
    /// # Panics
    /// If there are too many columns or none, or one of them has a code for nulls.
    pub(crate) fn new(codes: Vec<Code>, width: usize) -> Self {
        assert!(matches!(width, 4 | 8 | 16), "numbers of 4, 8 or 16 bytes");
        assert!(codes.len() == at_once(codes.len(), width) && !codes.is_empty(), "some columns");
        assert!(codes.iter().all(|code| !code.escapes), "codes of one width");
        Self {
            #[cfg(target_arch = "x86_64")]
            wide: match width {
                8 => codes.chunks(8).map(avx512::Codes::of_columns).collect(),
                _ => None,
            },
            codes,
            width,
        }
    }

    /// Bytes that the columns take in a row.
    pub(crate) fn bytes(&self) -> usize {
        self.codes.len() * self.width
    }

    /// Writes `rows` of `columns`, which hold values as Arrow does; those of the first row begin at
    /// `places.place(0)`.
    ///
    /// # Panics
    /// If there is another number of columns, a place lies outside of `out`, or a row outside of a column.
    #[inline]
    pub(crate) fn put<P: Places>(
        &self,
        columns: &[&[u8]],
        rows: Range<usize>,
        places: P,
        out: &mut [u8],
    ) {
        assert_eq!(columns.len(), self.codes.len(), "a column for each code");
        let bytes = rows.end.checked_mul(self.width).expect("rows fit the address space");
        let holds = columns.iter().all(|column| column.len() >= bytes);
        assert!(rows.start <= rows.end && holds, "a value for each row");
        check_bounds(self.bytes(), rows.len(), places, out.len());
        #[cfg(target_arch = "x86_64")]
        if let Some(codes) = &self.wide {
            // SAFETY: the features were detected when the codes were made, for as many columns of eight bytes;
            // places and values were checked above.
            return unsafe { avx512::put_plain(columns, codes, rows, places, out) };
        }
        let lanes = columns.iter().zip(&self.codes);
        let lanes = lanes.map(|(&values, &code)| Lane { values, valid: None, code }).collect();
        // No code grows.
        let _escaped = put(&Lanes::new(lanes, self.width, rows.end), rows, places, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lane::{Scattered, Strided};
    use super::super::portable;
    use super::*;

    fn check<const W: usize>(count: usize, rows: Range<usize>) {
        let ones = u64::MAX >> (64 - 8 * W);
        let top = 1 << (8 * W - 1);
        let code = |at: usize| Code {
            flip: [0, top, ones, top ^ ones][at % 4],
            float: if at % 3 == 1 { ones ^ top } else { 0 },
            delta: 0,
            null: 0,
            big: at % 5 != 4,
            escapes: false,
        };
        let value =
            |at: usize| (at as u64 ^ 0x55).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let values: Vec<Vec<u8>> = (0..count)
            .map(|column| (0..rows.end * W).map(|at| value(at * 9 + column)[5]).collect())
            .collect();
        let columns: Vec<&[u8]> = values.iter().map(|values| &values[..]).collect();
        let codes: Vec<Code> = (0..count).map(code).collect();
        let plain = Plain::new(codes.clone(), W);
        let stride = plain.bytes() + 3;
        let strided = Strided { first: 1, stride };
        let cursors: Vec<usize> = (0..rows.len()).map(|row| row * stride).collect();
        let mut out = vec![0xaa; rows.len() * stride];
        let (mut scattered, mut twin) = (out.clone(), out.clone());
        plain.put(&columns, rows.clone(), strided, &mut out);
        let places = Scattered { cursors: &cursors, distance: 1 };
        if !rows.is_empty() {
            plain.put(&columns, rows.clone(), places, &mut scattered);
        }
        let lanes = columns.iter().zip(codes);
        let lanes: Vec<Lane<'_>> =
            lanes.map(|(values, code)| Lane { values, valid: None, code }).collect();
        portable::put::<W, _>(&lanes, rows, 0, strided, &mut twin);
        assert_eq!(out, twin, "{count} columns of {W} bytes");
        assert_eq!(scattered, twin, "{count} columns of {W} bytes");
    }

    #[test]
    fn any_number_of_columns_and_rows_is_as_the_portable_twin() {
        for count in 1..=MOST {
            for rows in [0..0, 0..1, 0..5, 3..11, 1..40] {
                if at_once(count, 8) == count {
                    check::<8>(count, rows.clone());
                }
                if at_once(count, 4) == count {
                    check::<4>(count, rows);
                }
            }
        }
    }
}
