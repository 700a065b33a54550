//! Bytes of rows that say yes or no, as bits: Booleans and markers.
//!
//! ```text
//! bytes of a row, of adjacent columns        bits
//! | a0 | b0 | c0 |                           a  1 0 1 1 ...
//! | a1 | b1 | c1 |                     -->   b  0 0 1 0 ...
//! | a2 | b2 | c2 |                           c  1 1 0 0 ...
//! ```

use super::lane::Places;

/// Columns that are read at once: the bytes of a word.
const WORD: usize = 4;

/// A byte of each row to be read as a bit.
#[derive(Debug)]
pub(crate) struct BitOut<'a> {
    /// The bits, appended, 64 rows a word.
    pub(crate) bits: &'a mut Vec<u64>,
    /// The byte of a bit that is not set; any other sets it.
    pub(crate) zero: u8,
    /// Turns the bits around.
    pub(crate) flip: bool,
}

/// Reads adjacent bytes of the first `rows` rows. Bits behind those of the last row are zeros.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub(crate) fn take_bits<P: Places>(lanes: &mut [BitOut<'_>], rows: usize, places: P, bytes: &[u8]) {
    super::check_bounds(lanes.len(), rows, places, bytes.len());
    for (word, lanes) in lanes.chunks_mut(WORD).enumerate() {
        let places = places.shifted(word * WORD);
        for lane in &mut *lanes {
            lane.bits.reserve(rows.div_ceil(64));
        }
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            // SAFETY: the features were detected; places were checked above.
            unsafe { super::avx512::take_bits(lanes, rows, places, bytes) };
            continue;
        }
        take_rows(lanes, 0, rows, places, bytes);
    }
}

/// The portable twin, and the last rows: those from `from` on, a multiple of 64.
pub(super) fn take_rows<P: Places>(
    lanes: &mut [BitOut<'_>],
    from: usize,
    rows: usize,
    places: P,
    bytes: &[u8],
) {
    for (index, lane) in lanes.iter_mut().enumerate() {
        for first in (from..rows).step_by(64) {
            let mut word = 0;
            for row in first..rows.min(first + 64) {
                let is_set = (bytes[places.place(row) + index] != lane.zero) != lane.flip;
                word |= u64::from(is_set) << (row - first);
            }
            lane.bits.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lane::Strided;
    use super::*;

    proptest! {
        #[test]
        fn bytes_become_bits(
            bytes in prop::collection::vec(0u8..3, 4000),
            zeros in prop::collection::vec(0u8..3, 1..12),
            rows in 0usize..300,
            gap in 0usize..3,
            flip: bool,
        ) {
            let places = Strided { first: 2, stride: zeros.len() + gap };
            let bytes = &bytes[..2 + rows * places.stride];
            let (mut read, mut twin) = (vec![vec![]; zeros.len()], vec![vec![]; zeros.len()]);
            let outs = |read: &mut [Vec<u64>], take: &dyn Fn(&mut [BitOut<'_>])| {
                let outs = read.iter_mut().zip(&zeros);
                take(&mut outs.map(|(bits, &zero)| BitOut { bits, zero, flip }).collect::<Vec<_>>());
            };
            outs(&mut read, &|outs| take_bits(outs, rows, places, bytes));
            outs(&mut twin, &|outs| take_rows(outs, 0, rows, places, bytes));
            prop_assert_eq!(&read, &twin);
            for (column, (read, zero)) in read.iter().zip(&zeros).enumerate() {
                for row in 0..rows {
                    let byte = bytes[places.place(row) + column];
                    let bit = read[row / 64] >> (row % 64) & 1 == 1;
                    prop_assert_eq!(bit, (byte != *zero) != flip);
                }
            }
        }
    }
}
