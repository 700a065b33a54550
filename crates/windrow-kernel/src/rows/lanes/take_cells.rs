//! Reads cells out of rows: values of fixed width, each after a marker byte if it may be null.
//!
//! ```text
//! row       | 01 v v v v v v v v | 01 b | 00 0 0 0 0 | ...       a number, a Boolean, a null
//! markers   01 01 00 ...  of 64 rows, compared: bits             values, zero if null
//! ```
//!
//! An invalid marker and an invalid Boolean are reported. The bytes after the marker of a null are
//! ignored.

use arrow_buffer::Buffer;

use super::super::block;
use super::cells::VALUE;
use super::lane::{Code, Word};
use super::places::{Places, check_bounds};
use crate::values::Values;

/// Rows read together: bits of a word.
const ROWS: usize = 64;

/// The bytes after the marker of a column, or without a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// No bytes that are read together with the marker.
    Nothing,
    /// 0 or 1, XORed with this byte.
    Bit(u8),
    /// A byte, XORed with this byte.
    Byte(u8),
    /// A number of 2, 4 or 8 bytes.
    Number(usize, Code),
}

impl Held {
    fn width(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bit(_) | Self::Byte(_) => 1,
            Self::Number(width, _) => width,
        }
    }
}

/// Values of a column.
#[derive(Debug)]
enum Column {
    None,
    Bytes(Values<u8>),
    Shorts(Values<u16>),
    Ints(Values<u32>),
    Longs(Values<u64>),
}

/// A column to be read.
#[derive(Debug)]
pub struct Cell {
    held: Held,
    /// The marker of a null; `None` if there are no markers.
    null: Option<u8>,
    values: Column,
    /// Validity bits of the rows of the last call, 64 a word; empty if there are no markers.
    pub valid: Vec<u64>,
    /// Booleans of the rows of the last call, 64 a word.
    pub bits: Vec<u64>,
}

impl Cell {
    /// Creates a column of about `rows` rows, whose nulls are marked by `null`, or without markers.
    ///
    /// # Panics
    /// If a number has another width than 2, 4 or 8.
    pub fn new(held: Held, null: Option<u8>, rows: usize) -> Self {
        let values = match held {
            Held::Nothing | Held::Bit(_) => Column::None,
            Held::Byte(_) => Column::Bytes(Values::with_capacity(rows)),
            Held::Number(2, _) => Column::Shorts(Values::with_capacity(rows)),
            Held::Number(4, _) => Column::Ints(Values::with_capacity(rows)),
            Held::Number(8, _) => Column::Longs(Values::with_capacity(rows)),
            Held::Number(width, _) => panic!("numbers of {width} bytes"),
        };
        Self { held, null, values, valid: Vec::new(), bits: Vec::new() }
    }

    pub fn held(&self) -> Held {
        self.held
    }

    pub fn has_marker(&self) -> bool {
        self.null.is_some()
    }

    /// Returns the bytes that a cell takes in a row.
    pub fn bytes(&self) -> usize {
        usize::from(self.has_marker()) + self.held.width()
    }

    /// Returns all values read; empty for Booleans.
    pub fn into_values(self) -> Buffer {
        match self.values {
            Column::None => Buffer::default(),
            Column::Bytes(values) => values.into(),
            Column::Shorts(values) => values.into(),
            Column::Ints(values) => values.into(),
            Column::Longs(values) => values.into(),
        }
    }
}

/// Appends the values of a column of the first `rows` rows, and replaces the validity bits of the
/// last call. Returns false if a row is not a valid cell; the appended values are then useless.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub fn take_cell<P: Places>(cell: &mut Cell, rows: usize, places: P, bytes: &[u8]) -> bool {
    check_bounds(cell.bytes(), rows, places, bytes.len());
    let Cell { held, null, values, valid, bits } = cell;
    valid.clear();
    bits.clear();
    let mut wrong = 0;
    // SAFETY: `check_bounds` checked the places of whole cells.
    unsafe {
        if let Some(null) = *null {
            for first in (0..rows).step_by(ROWS) {
                let markers = Together::of(first, rows, places, bytes);
                let is_value = markers.equal(VALUE);
                wrong |= markers.all & !(is_value | markers.equal(null));
                valid.push(is_value);
            }
        }
        let (places, valid) = (places.shifted(null.is_some().into()), &valid[..]);
        match (values, *held) {
            (Column::Bytes(values), Held::Byte(flip)) => {
                let code = Code { flip: flip.into(), ..Code::RAW };
                take_numbers(&code, valid, rows, places, bytes, values);
            }
            (Column::Shorts(values), Held::Number(_, code)) => {
                take_numbers(&code, valid, rows, places, bytes, values);
            }
            (Column::Ints(values), Held::Number(_, code)) => {
                take_numbers(&code, valid, rows, places, bytes, values);
            }
            (Column::Longs(values), Held::Number(_, code)) => {
                take_numbers(&code, valid, rows, places, bytes, values);
            }
            (_, Held::Bit(flip)) => {
                for first in (0..rows).step_by(ROWS) {
                    let found = Together::of(first, rows, places, bytes);
                    let looked = valid.get(first / ROWS).map_or(found.all, |valid| *valid);
                    let is_set = found.equal(1 ^ flip);
                    wrong |= looked & !(is_set | found.equal(flip));
                    bits.push(is_set & looked);
                }
            }
            _ => {}
        }
    }
    wrong == 0
}

/// A byte of each of up to 64 rows.
struct Together {
    bytes: [u8; ROWS],
    /// A bit for each existing row.
    all: u64,
}

impl Together {
    /// # Safety
    /// The bytes of all rows up to `rows` are readable at their places.
    #[inline(always)]
    unsafe fn of<P: Places>(first: usize, rows: usize, places: P, bytes: &[u8]) -> Self {
        let count = ROWS.min(rows - first);
        let mut together = [0; ROWS];
        for (row, byte) in together.iter_mut().enumerate().take(count) {
            // SAFETY: the caller promises a readable byte at each place.
            *byte = unsafe { *bytes.get_unchecked(places.place(first + row)) };
        }
        Self { bytes: together, all: u64::MAX >> (ROWS - count) }
    }

    /// Returns the rows with this byte.
    #[inline(always)]
    fn equal(&self, byte: u8) -> u64 {
        let blocks = self.bytes.as_chunks::<{ block::BLOCK }>().0.iter().rev();
        let bits = blocks.fold(0, |bits, of_block| {
            bits << block::BLOCK | u64::from(block::equal(*of_block, byte))
        });
        bits & self.all
    }
}

/// Appends the numbers of the first `rows` rows; zeros at the nulls of `valid`, if not empty.
///
/// # Safety
/// The number of each row lies within `bytes` at its place.
#[inline(always)]
unsafe fn take_numbers<T: Word, P: Places>(
    code: &Code,
    valid: &[u64],
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut Values<T>,
) {
    let (flip, float, target) = (T::of(code.flip), T::of(code.float), values.room(rows));
    for first in (0..rows).step_by(ROWS) {
        let count = ROWS.min(rows - first);
        // SAFETY: the caller promises a readable number at each place, and `target` has space for a
        // value of each row.
        unsafe {
            let read = |row| bytes.as_ptr().add(places.place(row)).cast::<T>().read_unaligned();
            let rows = first..first + count;
            // A loop without signs takes half the time.
            match code.float {
                0 => rows.for_each(|row| {
                    target.add(row).write(read(row).turned(code.big, flip, T::of(0)))
                }),
                _ => rows
                    .for_each(|row| target.add(row).write(read(row).turned(code.big, flip, float))),
            }
            // Which rows are null is unpredictable; how many is not.
            let valid = valid.get(first / ROWS).map_or(u64::MAX, |valid| *valid);
            let mut null = !valid & (u64::MAX >> (ROWS - count));
            while null != 0 {
                target.add(first + null.trailing_zeros() as usize).write(T::of(0));
                null &= null - 1;
            }
        }
    }
    // SAFETY: a value of each row was written.
    unsafe { values.grow(rows) };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::places::{Scattered, Strided};
    use super::*;

    /// Any column, and the marker of its nulls, if any.
    fn column() -> impl Strategy<Value = (Held, Option<u8>)> {
        let code = |width: usize, flip: u64, float: bool, big: bool| {
            let ones = u64::MAX >> (64 - 8 * width);
            let float = if float { ones >> 1 } else { 0 };
            Code { flip: flip & ones, float, big, ..Code::RAW }
        };
        let width = prop::sample::select(vec![2usize, 4, 8, 8]);
        let number = (width, any::<u64>(), any::<bool>(), any::<bool>());
        let flip = prop::sample::select(vec![0u8, 0xff]);
        let held = prop_oneof![
            1 => Just(Held::Nothing),
            1 => flip.clone().prop_map(Held::Bit),
            1 => flip.clone().prop_map(Held::Byte),
            3 => number.prop_map(move |(width, flip, float, big)| {
                Held::Number(width, code(width, flip, float, big))
            }),
        ];
        (held, prop::option::weighted(0.7, flip))
    }

    /// Returns the bytes of the value of `cell`, after its marker, and its validity; `None` for an
    /// invalid cell.
    fn expected(held: Held, null: Option<u8>, cell: &[u8]) -> Option<(Vec<u8>, bool)> {
        let (marker, own) = cell.split_at(null.is_some().into());
        let valid = marker.first().is_none_or(|&marker| marker == VALUE);
        if !valid && marker.first().copied() != null {
            return None;
        }
        let value = match held {
            Held::Bit(flip) if valid && own[0] ^ flip > 1 => return None,
            Held::Bit(flip) | Held::Byte(flip) => vec![own[0] ^ flip],
            Held::Nothing => vec![],
            Held::Number(width, code) => {
                let mut number = own.to_vec();
                if code.big {
                    number.reverse();
                }
                let mut word = [0; 8];
                word[..width].copy_from_slice(&number);
                let value = u64::from_le_bytes(word) ^ code.flip;
                let negative = value >> (8 * width - 1) == 1;
                let value = if negative { value ^ code.float } else { value };
                value.to_le_bytes()[..width].to_vec()
            }
        };
        Some((if valid { value } else { vec![0; held.width()] }, valid))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn cells_are_read_as_what_they_say(
            (held, null) in column(),
            bytes in prop::collection::vec(any::<u8>(), 60..400),
            rows in 0usize..300,
            gap in 0usize..70,
            broken in prop::option::of((any::<u16>(), any::<u8>())),
            turned: bool,
        ) {
            let cell = || Cell::new(held, null, 3);
            let stride = cell().bytes() + gap;
            let mut at = 0;
            let mut next = || {
                at += 1;
                bytes[at * 7 % bytes.len()] ^ (at / bytes.len()) as u8
            };
            let mut out = vec![0x55; 2 + rows * stride];
            for row in 0..rows {
                let mut to = 2 + row * stride;
                let is_null = null.is_some() && next() % 3 == 0;
                if let Some(null) = null {
                    out[to] = if is_null { null } else { VALUE };
                    to += 1;
                }
                for byte in &mut out[to..to + held.width()] {
                    *byte = match held {
                        // The bytes after the marker of a null are arbitrary.
                        Held::Bit(flip) if !is_null => (next() % 2) ^ flip,
                        _ => next(),
                    };
                }
            }
            if let Some((at, byte)) = broken {
                let at = usize::from(at) % out.len();
                out[at] = byte;
            }
            let out = &out[..out.len() - gap.min(out.len() - 2)];
            let strided = Strided { first: 2, stride };
            let mut cursors: Vec<usize> = (0..rows).map(|row| strided.place(row)).collect();
            let (mut one, mut other) = (cell(), cell());
            if turned {
                cursors.reverse();
            }
            let places = Scattered { cursors: &cursors, distance: 0 };
            let fits = take_cell(&mut one, rows, places, out);
            let fits_strided = take_cell(&mut other, rows, strided, out);
            let cells = cursors.iter().map(|&at| expected(held, null, &out[at..at + cell().bytes()]));
            let cells: Option<Vec<(Vec<u8>, bool)>> = cells.collect();
            prop_assert_eq!((fits, fits_strided), (cells.is_some(), cells.is_some()));
            let Some(cells) = cells else { return Ok(()) };
            let words = if null.is_some() { rows.div_ceil(ROWS) } else { 0 };
            prop_assert_eq!(one.valid.len(), words);
            for (row, (value, valid)) in cells.iter().enumerate() {
                let bit = |words: &[u64]| words[row / ROWS] >> (row % ROWS) & 1 == 1;
                prop_assert!(words == 0 || bit(&one.valid) == *valid);
                prop_assert!(!matches!(held, Held::Bit(_)) || bit(&one.bits) == (value[0] == 1));
            }
            let values: Vec<u8> = match held {
                Held::Bit(_) => vec![],
                _ => cells.iter().flat_map(|(value, _)| value.clone()).collect(),
            };
            if !turned {
                prop_assert_eq!((&one.valid, &one.bits), (&other.valid, &other.bits));
                let found = other.into_values();
                prop_assert_eq!(found.as_slice(), &values[..]);
            }
            let found = one.into_values();
            prop_assert_eq!(found.as_slice(), &values[..]);
        }
    }
}
