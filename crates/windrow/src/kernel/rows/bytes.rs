//! Columns of one byte of each row: Booleans, markers, and the bytes of small numbers.
//!
//! ```text
//! of a column                        bytes of a row, of adjacent columns
//! bits      1 0 1 1 ...              | m0 | a0 | h0 | l0 |
//! values    a0 a1 a2 ...        -->  | m1 | a1 | h1 | l1 |
//! numbers   h0 l0 h1 l1 ...          | m2 | a2 | h2 | l2 |
//! ```
//!
//! Up to eight of them are made 64 rows at a time, or 512 if all are bits, become words of a row, and are written together.

use std::ops::Range;

use super::lane::{Bits, Places};

/// Columns that are written at once: the bytes of a word.
pub(super) const WORD: usize = 8;

/// Where the bytes of a column come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Same(u8),
    /// What stands for a bit that is not set, and one that is.
    Bits(Bits<'a>, [u8; 2]),
    /// Byte `at` of numbers of `width` bytes, one or two, complemented by `flip`, and if they are negative by
    /// `float` too.
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
pub(crate) struct ByteLane<'a> {
    pub(crate) source: Source<'a>,
    /// Nothing if all are valid.
    pub(crate) valid: Option<Bits<'a>>,
    /// What stands for one that is not valid.
    pub(crate) null: u8,
}

impl<'a> ByteLane<'a> {
    /// Bytes of which none is null.
    pub(crate) fn of(source: Source<'a>) -> Self {
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

    fn byte(&self, row: usize) -> u8 {
        match (self.valid, self.source) {
            (Some(valid), _) if !valid.get(row) => self.null,
            (_, Source::Same(byte)) => byte,
            (_, Source::Bits(bits, bytes)) => bytes[usize::from(bits.get(row))],
            (_, Source::Values { values, width, at, flip, float }) => {
                let value = &values[row * width..(row + 1) * width];
                let negative = value[width - 1] >= 0x80;
                value[at] ^ flip ^ if negative { float } else { 0 }
            }
        }
    }
}

/// Writes adjacent bytes for the rows `rows`; the first of those of the first row is at `places.place(0)`.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lanes.
pub(crate) fn put_bytes<P: Places>(
    lanes: &[ByteLane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) {
    super::check_bounds(lanes.len(), rows.len(), places, out.len());
    assert!(lanes.iter().all(|lane| lane.holds(rows.end)), "a byte for each row");
    for (word, lanes) in lanes.chunks(WORD).enumerate() {
        let places = places.shifted(word * WORD);
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            // SAFETY: the features were detected; places, bits and values were checked above.
            unsafe { super::avx512::put_bytes(lanes, rows.clone(), places, out) };
            continue;
        }
        put_rows(lanes, rows.clone(), 0, places, out);
    }
}

/// The portable twin, and the last few rows: those from the one at `from` on.
pub(super) fn put_rows<P: Places>(
    lanes: &[ByteLane<'_>],
    rows: Range<usize>,
    from: usize,
    places: P,
    out: &mut [u8],
) {
    for (index, lane) in lanes.iter().enumerate() {
        let places = places.shifted(index);
        for at in from..rows.len() {
            out[places.place(at)] = lane.byte(rows.start + at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lane::{Scattered, Strided};
    use super::*;

    /// A kind, what stands for bits, whether there are nulls, and where its data begin.
    fn lane(data: &[u8], (kind, bytes, nullable, at): (u8, [u8; 3], bool, usize)) -> ByteLane<'_> {
        let source = match kind {
            0 => Source::Same(bytes[0]),
            1 => Source::Bits(Bits { bytes: data, first: at }, [bytes[0], bytes[1]]),
            2 => Source::Values {
                values: &data[at..],
                width: 1,
                at: 0,
                flip: bytes[0],
                float: bytes[1],
            },
            _ => {
                let at_byte = usize::from(kind) % 2;
                Source::Values {
                    values: &data[at..],
                    width: 2,
                    at: at_byte,
                    flip: bytes[0],
                    float: bytes[1],
                }
            }
        };
        let valid = nullable.then_some(Bits { bytes: &data[at / 2..], first: at });
        ByteLane { source, valid, null: bytes[2] }
    }

    proptest! {
        #[test]
        fn bytes_of_rows_are_those_of_the_columns(
            data in prop::collection::vec(any::<u8>(), 2800),
            kinds in prop::collection::vec((0u8..5, any::<[u8; 3]>(), any::<bool>(), 0usize..20), 1..19),
            rows in prop_oneof![0usize..300, 500usize..1200],
            first in 0usize..70,
            gap in 0usize..3,
            scattered: bool,
            only_bits: bool,
        ) {
            let of = |(kind, bytes, nullable, at): (u8, [u8; 3], bool, usize)| {
                lane(&data, (if only_bits { kind.min(1) } else { kind }, bytes, nullable, at))
            };
            let lanes: Vec<ByteLane<'_>> = kinds.into_iter().map(of).collect();
            let rows = first..first + rows;
            let stride = lanes.len() + gap;
            let places = Strided { first: 2, stride };
            let cursors: Vec<usize> = (0..rows.len()).map(|row| row * stride).collect();
            let mut out = vec![0xaa; 2 + rows.len() * stride];
            let mut twin = out.clone();
            match scattered {
                true => {
                    let places = Scattered { cursors: &cursors, distance: 2 };
                    put_bytes(&lanes, rows.clone(), places, &mut out);
                }
                false => put_bytes(&lanes, rows.clone(), places, &mut out),
            }
            put_rows(&lanes, rows.clone(), 0, places, &mut twin);
            prop_assert_eq!(&out, &twin);
        }
    }
}
