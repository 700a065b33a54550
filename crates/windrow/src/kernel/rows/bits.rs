//! Booleans in rows: bits to bytes, and back.
//!
//! ```text
//! bits                  bytes of a row, of adjacent columns
//! a  1 0 1 1 ...        | a0 | b0 | c0 |     a byte for the set bit, one for the other, and one for null
//! b  0 0 1 0 ...   -->  | a1 | b1 | c1 |
//! c  1 1 0 0 ...        | a2 | b2 | c2 |
//! ```
//!
//! A marker in front of a Boolean is such a byte too: that of its validity.

use std::ops::Range;

use super::lane::{Bits, Places};

/// Columns that are written at once: the bytes of a word.
const WORD: usize = 4;

/// One byte of each row, told by a bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitLane<'a> {
    pub(crate) bits: Bits<'a>,
    /// Nothing if all bits are valid.
    pub(crate) valid: Option<Bits<'a>>,
    /// What stands for a bit that is not set, and one that is.
    pub(crate) bytes: [u8; 2],
    /// What stands for one that is not valid.
    pub(crate) null: u8,
}

impl BitLane<'_> {
    #[inline(always)]
    fn byte(&self, row: usize) -> u8 {
        match self.valid {
            Some(valid) if !valid.get(row) => self.null,
            _ => self.bytes[usize::from(self.bits.get(row))],
        }
    }
}

/// Writes adjacent bytes for the rows `rows`; the first of those of the first row is at `places.place(0)`.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lanes.
pub(crate) fn put_bits<P: Places>(
    lanes: &[BitLane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) {
    super::check_bounds(lanes.len(), rows.len(), places, out.len());
    for lane in lanes {
        let holds = lane.bits.holds(rows.end) && lane.valid.is_none_or(|bits| bits.holds(rows.end));
        assert!(holds, "a bit for each row");
    }
    for (word, lanes) in lanes.chunks(WORD).enumerate() {
        let places = places.shifted(word * WORD);
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            // SAFETY: the features were detected; places and bits were checked above.
            unsafe { super::avx512::put_bits(lanes, rows.clone(), places, out) };
            continue;
        }
        put_rows(lanes, rows.clone(), 0, places, out);
    }
}

/// The portable twin, and the last few rows: those from the one at `from` on.
pub(super) fn put_rows<P: Places>(
    lanes: &[BitLane<'_>],
    rows: Range<usize>,
    from: usize,
    places: P,
    out: &mut [u8],
) {
    for at in from..rows.len() {
        let place = places.place(at);
        let target = &mut out[place..place + lanes.len()];
        for (target, lane) in target.iter_mut().zip(lanes) {
            *target = lane.byte(rows.start + at);
        }
    }
}

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

    use super::super::lane::{Scattered, Strided};
    use super::*;

    proptest! {
        #[test]
        fn bits_become_bytes_and_bits_again(
            bits in prop::collection::vec(any::<u8>(), 60),
            kinds in prop::collection::vec((any::<bool>(), any::<bool>(), any::<[u8; 3]>(), 0usize..20), 1..12),
            rows in 0usize..300,
            first in 0usize..70,
            gap in 0usize..3,
            scattered: bool,
        ) {
            let lanes: Vec<BitLane<'_>> = kinds.iter().map(|&(nullable, same, bytes, at)| {
                let valid = nullable.then_some(Bits { bytes: &bits[at / 2..], first: at });
                let [zero, one, null] = bytes;
                let one = if same || one == zero { zero ^ 1 } else { one };
                BitLane { bits: Bits { bytes: &bits, first: at }, valid, bytes: [zero, one], null }
            }).collect();
            let rows = first..first + rows;
            let stride = lanes.len() + gap;
            let places = Strided { first: 2, stride };
            let cursors: Vec<usize> = (0..rows.len()).map(|row| row * stride).collect();
            let mut out = vec![0xaa; 2 + rows.len() * stride];
            let mut twin = out.clone();
            match scattered {
                true => {
                    let places = Scattered { cursors: &cursors, distance: 2 };
                    put_bits(&lanes, rows.clone(), places, &mut out);
                }
                false => put_bits(&lanes, rows.clone(), places, &mut out),
            }
            put_rows(&lanes, rows.clone(), 0, places, &mut twin);
            prop_assert_eq!(&out, &twin);
            let (mut read, mut read_twin) = (vec![vec![]; lanes.len()], vec![vec![]; lanes.len()]);
            fn outs<'a>(read: &'a mut [Vec<u64>], lanes: &[BitLane<'_>], flip: bool) -> Vec<BitOut<'a>> {
                let outs = read.iter_mut().zip(lanes);
                outs.map(|(bits, lane)| BitOut { bits, zero: lane.bytes[0], flip }).collect()
            }
            take_bits(&mut outs(&mut read, &lanes, gap == 1), rows.len(), places, &out);
            take_rows(&mut outs(&mut read_twin, &lanes, gap == 1), 0, rows.len(), places, &out);
            prop_assert_eq!(&read, &read_twin);
            for (lane, read) in lanes.iter().zip(&read) {
                for (at, row) in rows.clone().enumerate() {
                    if lane.valid.is_none_or(|valid| valid.get(row)) {
                        let bit = read[at / 64] >> (at % 64) & 1 == 1;
                        prop_assert_eq!(bit, lane.bits.get(row) != (gap == 1));
                    }
                }
            }
        }
    }
}
