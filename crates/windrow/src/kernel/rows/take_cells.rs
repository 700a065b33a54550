//! Cells out of rows: values of fixed width, each behind the byte that says whether there is one, if it may be null.
//!
//! ```text
//! row       | 01 v v v v v v v v | 01 b | 00 0 0 0 0 | ...       a number, a Boolean, a null: a block of columns
//! registers   value of 8 bytes    value of 4    ...    tags       a word each, and all that is one byte in the last
//! columns     8 rows of a value, 8 of the next ...                transposed; zeros where a marker says null
//! tags        01 01 00 .. | 01 01 01 .. | b b b ..                8 rows each: compared, a mask of bits
//! ```
//!
//! Where no value is of more than two bytes, each byte of a row becomes a register of 64 rows instead.
//!
//! A marker that is neither that of a value nor that of a null, and a Boolean that is neither, are told of. What stands
//! behind the marker of a null is not looked at: the value is zero.

use arrow_buffer::Buffer;

#[cfg(target_arch = "x86_64")]
use super::avx512::{ByteOrder, CellOrder};
use super::cells::VALUE;
use super::each::{self, Read, take_some};
use super::lane::{Code, Places, Word};
use super::{check_bounds, portable};
use crate::kernel::values::Values;

/// What stands behind the marker of a column, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing that is read together with the marker.
    Nothing,
    /// 0 or 1, its bits turned around by this.
    Bit(u8),
    /// A byte, its bits turned around by this.
    Byte(u8),
    /// A number of 2, 4 or 8 bytes.
    Number(usize, Code),
}

impl Held {
    pub(super) fn width(self) -> usize {
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

/// A column that is read.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(super) held: Held,
    /// The marker of a null; nothing if there are no markers.
    pub(super) null: Option<u8>,
    values: Column,
    /// Which are not null, of the rows of the last call, 64 a word; nothing if there are no markers.
    pub(crate) valid: Vec<u64>,
    /// Booleans of the rows of the last call, 64 a word.
    pub(crate) bits: Vec<u64>,
}

impl Cell {
    /// A column of about `rows` rows, whose nulls are marked by `null`, or that has no markers.
    ///
    /// # Panics
    /// If a number is of another width than 2, 4 or 8.
    pub(crate) fn new(held: Held, null: Option<u8>, rows: usize) -> Self {
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

    pub(crate) fn held(&self) -> Held {
        self.held
    }

    pub(crate) fn has_marker(&self) -> bool {
        self.null.is_some()
    }

    /// Bytes that it takes in a row.
    pub(crate) fn bytes(&self) -> usize {
        usize::from(self.has_marker()) + self.held.width()
    }

    /// All values that were read; of Booleans there are none.
    pub(crate) fn into_values(self) -> Buffer {
        match self.values {
            Column::None => Buffer::default(),
            Column::Bytes(values) => values.into(),
            Column::Shorts(values) => values.into(),
            Column::Ints(values) => values.into(),
            Column::Longs(values) => values.into(),
        }
    }

    /// Where `count` more values go.
    pub(super) fn room(&mut self, count: usize) -> *mut u8 {
        match &mut self.values {
            Column::None => std::ptr::null_mut(),
            Column::Bytes(values) => values.room(count),
            Column::Shorts(values) => values.room(count).cast(),
            Column::Ints(values) => values.room(count).cast(),
            Column::Longs(values) => values.room(count).cast(),
        }
    }

    /// Says that `count` more values are there.
    ///
    /// # Safety
    /// They were written to [`Cell::room`], which was asked for as many.
    pub(super) unsafe fn grow(&mut self, count: usize) {
        // SAFETY: as this function's.
        unsafe {
            match &mut self.values {
                Column::None => {}
                Column::Bytes(values) => values.grow(count),
                Column::Shorts(values) => values.grow(count),
                Column::Ints(values) => values.grow(count),
                Column::Longs(values) => values.grow(count),
            }
        }
    }
}

/// Adjacent columns that are read together.
#[derive(Debug)]
pub(crate) struct CellBlock {
    cells: Vec<Cell>,
    bytes: usize,
    order: Order,
}

/// How they are read.
#[derive(Debug)]
enum Order {
    Each,
    #[cfg(target_arch = "x86_64")]
    Cells(Box<CellOrder>),
    #[cfg(target_arch = "x86_64")]
    Bytes(ByteOrder),
}

impl Order {
    /// That of the first few of `cells`, and how many these are.
    fn of_first(cells: &[Cell]) -> (usize, Self) {
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            let (narrow, bytes) = ByteOrder::of_first(cells);
            let (count, order) = CellOrder::of_first(cells);
            return match order {
                _ if narrow >= count => (narrow, Self::Bytes(bytes)),
                Some(order) => (count, Self::Cells(Box::new(order))),
                None => (count, Self::Each),
            };
        }
        let _ = cells;
        (1, Self::Each)
    }
}

impl CellBlock {
    /// Cuts adjacent columns into blocks.
    pub(crate) fn cut(cells: Vec<Cell>) -> Vec<Self> {
        let mut blocks = Vec::new();
        let mut left = cells;
        while !left.is_empty() {
            let (count, order) = Order::of_first(&left);
            // In a vector of its own length: the one that is left has room for all columns.
            let cells: Vec<Cell> = left.drain(..count).collect();
            blocks.push(Self { bytes: cells.iter().map(Cell::bytes).sum(), cells, order });
        }
        blocks
    }

    /// Bytes that they take in a row.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub(crate) fn into_cells(self) -> Vec<Cell> {
        self.cells
    }
}

/// Appends the values of a block of columns of the first `rows` rows, and says which are not null in place of those of
/// the last call. False if a row is not one of cells; what was appended is then of no use.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub(crate) fn take_cells<P: Places>(
    block: &mut CellBlock,
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    check_bounds(block.bytes, rows, places, bytes.len());
    for cell in &mut block.cells {
        cell.valid.clear();
        cell.bits.clear();
    }
    let cells = &mut block.cells[..];
    let (done, fits) = match &block.order {
        _ if rows == 0 => (0, true),
        Order::Each => (0, true),
        // SAFETY: the features were detected when the order was made, for these columns; places were checked above.
        #[cfg(target_arch = "x86_64")]
        Order::Cells(order) => unsafe {
            super::avx512::take_cells(order, cells, rows, places, bytes)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Order::Bytes(order) => unsafe {
            super::avx512::take_bytes(order, cells, rows, places, bytes)
        },
    };
    take_each(cells, rows - done, places.behind(done), bytes) && fits
}

/// The portable twin, and the last few rows.
fn take_each<P: Places>(cells: &mut [Cell], rows: usize, places: P, bytes: &[u8]) -> bool {
    let (mut fits, mut at) = (true, 0);
    for cell in cells {
        let places = places.shifted(at);
        at += cell.bytes();
        fits &= take_column(cell, rows, places, bytes);
    }
    fits
}

fn take_column<P: Places>(cell: &mut Cell, rows: usize, places: P, bytes: &[u8]) -> bool {
    let Cell { held, null, values, valid, bits } = cell;
    let Some(null) = *null else { return take_plain(*held, values, bits, rows, places, bytes) };
    match (values, *held) {
        (Column::Bytes(values), Held::Byte(flip)) => {
            take_some(2, rows, places, bytes, values, valid, |cell| {
                read(cell[0], null, || cell[1] ^ flip)
            })
        }
        (Column::Shorts(values), Held::Number(_, code)) => {
            take_some(3, rows, places, bytes, values, valid, |cell| {
                read(cell[0], null, || number::<u16>(code, &cell[1..]))
            })
        }
        (Column::Ints(values), Held::Number(_, code)) => {
            take_some(5, rows, places, bytes, values, valid, |cell| {
                read(cell[0], null, || number::<u32>(code, &cell[1..]))
            })
        }
        (Column::Longs(values), Held::Number(_, code)) => {
            take_some(9, rows, places, bytes, values, valid, |cell| {
                read(cell[0], null, || number::<u64>(code, &cell[1..]))
            })
        }
        (_, held) => {
            let mut fits = true;
            for first in (0..rows).step_by(64) {
                let (mut some, mut set) = (0, 0);
                for row in first..rows.min(first + 64) {
                    let place = places.place(row);
                    let cell = read(bytes[place], null, || match held {
                        Held::Bit(flip) => bytes[place + 1] ^ flip,
                        _ => 0,
                    });
                    fits &= cell.fits & (cell.value < 2);
                    some |= u64::from(cell.valid) << (row - first);
                    set |= u64::from(cell.value == 1) << (row - first);
                }
                valid.push(some);
                if let Held::Bit(_) = held {
                    bits.push(set);
                }
            }
            fits
        }
    }
}

/// A column without markers.
fn take_plain<P: Places>(
    held: Held,
    values: &mut Column,
    bits: &mut Vec<u64>,
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    match (values, held) {
        (Column::Bytes(values), Held::Byte(flip)) => {
            each::take_each(1, rows, places, bytes, values, |cell| cell[0] ^ flip);
        }
        (Column::Shorts(values), Held::Number(_, code)) => {
            each::take_each(2, rows, places, bytes, values, |cell| number(code, cell));
        }
        (Column::Ints(values), Held::Number(_, code)) => {
            each::take_each(4, rows, places, bytes, values, |cell| number(code, cell));
        }
        (Column::Longs(values), Held::Number(_, code)) => {
            each::take_each(8, rows, places, bytes, values, |cell| number(code, cell));
        }
        (_, Held::Bit(flip)) => {
            let mut wrong = false;
            for first in (0..rows).step_by(64) {
                let mut set = 0;
                for row in first..rows.min(first + 64) {
                    let bit = bytes[places.place(row)] ^ flip;
                    wrong |= bit > 1;
                    set |= u64::from(bit == 1) << (row - first);
                }
                bits.push(set);
            }
            return !wrong;
        }
        _ => {}
    }
    true
}

/// A cell with this marker.
#[inline(always)]
fn read<T: Default>(marker: u8, null: u8, value: impl FnOnce() -> T) -> Read<T> {
    let valid = marker == VALUE;
    let value = if valid { value() } else { T::default() };
    Read { value, valid, fits: valid | (marker == null) }
}

/// The number whose code is `bytes`.
#[inline(always)]
fn number<T: Word>(code: Code, bytes: &[u8]) -> T {
    let width = size_of::<T>();
    T::of(portable::number(width, &code, portable::read(width, bytes, 0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lane::{Scattered, Strided};
    use super::*;

    /// Any column, and the marker of its nulls, if it has any.
    fn column() -> impl Strategy<Value = (Held, Option<u8>)> {
        let code = |width: usize, flip: u64, float: bool, big: bool| {
            let ones = u64::MAX >> (64 - 8 * width);
            let float = if float { ones >> 1 } else { 0 };
            Code { flip: flip & ones, float, delta: 0, null: 0, big, escapes: false }
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

    /// Any columns, or narrow ones.
    fn columns() -> impl Strategy<Value = Vec<(Held, Option<u8>)>> {
        let narrow = column().prop_filter("at most two bytes", |(held, _)| held.width() <= 2);
        let any = prop::collection::vec(column(), 1..14);
        prop_oneof![any, prop::collection::vec(narrow, 1..20)]
    }

    /// What was read: values, which of them there are, and Booleans.
    type Found = Vec<(Buffer, Vec<u64>, Vec<u64>)>;

    fn found(cells: Vec<Cell>) -> Found {
        let columns = cells.into_iter().map(|mut cell| {
            let (valid, bits) = (std::mem::take(&mut cell.valid), std::mem::take(&mut cell.bits));
            (cell.into_values(), valid, bits)
        });
        columns.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn both_read_the_same(
            columns in columns(),
            bytes in prop::collection::vec(any::<u8>(), 60..400),
            rows in 0usize..300,
            gap in 0usize..70,
            nulls: bool,
            broken in prop::option::of((any::<u16>(), any::<u8>())),
            turned: bool,
        ) {
            let cells = || columns.iter().map(|&(held, null)| Cell::new(held, null, 3));
            let width: usize = cells().map(|cell| cell.bytes()).sum();
            let (stride, mut at) = (width + gap, 0);
            let mut next = || {
                at += 1;
                bytes[at * 7 % bytes.len()] ^ (at / bytes.len()) as u8
            };
            let mut out = vec![0x55; 2 + rows * stride];
            for row in 0..rows {
                let mut to = 2 + row * stride;
                for &(held, null) in &columns {
                    let is_valid = null.is_none() || !nulls || next() % 3 > 0;
                    if let Some(null) = null {
                        out[to] = if is_valid { VALUE } else { null };
                        to += 1;
                    }
                    for byte in &mut out[to..to + held.width()] {
                        *byte = match held {
                            Held::Bit(flip) if is_valid => (next() % 2) ^ flip,
                            _ => next(),
                        };
                    }
                    to += held.width();
                }
            }
            if let Some((at, byte)) = broken {
                let at = usize::from(at) % out.len();
                out[at] = byte;
            }
            let out = &out[..out.len() - gap.min(out.len() - 2)];
            let strided = Strided { first: 2, stride };
            let cursors: Vec<usize> = (0..rows).map(|row| strided.place(row)).collect();
            let cursors: Vec<usize> =
                if turned { cursors.into_iter().rev().collect() } else { cursors };
            let places = Scattered { cursors: &cursors, distance: 0 };
            let mut twin: Vec<Cell> = cells().collect();
            let fits_twin = take_each(&mut twin, rows, places, out);
            let mut blocks = CellBlock::cut(cells().collect());
            prop_assert_eq!(blocks.iter().map(CellBlock::bytes).sum::<usize>(), width);
            let (mut at, mut fits, mut fits_strided) = (0, true, true);
            let mut strided_blocks = CellBlock::cut(cells().collect());
            for (block, other) in blocks.iter_mut().zip(&mut strided_blocks) {
                fits &= take_cells(block, rows, places.shifted(at), out);
                fits_strided &= take_cells(other, rows, strided.shifted(at), out);
                at += block.bytes();
            }
            prop_assert_eq!((fits, fits_strided), (fits_twin, fits_twin));
            if broken.is_none() {
                prop_assert!(fits);
            }
            if fits {
                let twin = found(twin);
                let cells_of = |blocks: Vec<CellBlock>| {
                    found(blocks.into_iter().flat_map(CellBlock::into_cells).collect())
                };
                prop_assert_eq!(&cells_of(blocks), &twin);
                if !turned {
                    prop_assert_eq!(&cells_of(strided_blocks), &twin);
                }
            }
        }
    }
}
