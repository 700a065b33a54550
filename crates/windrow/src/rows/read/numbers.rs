//! Adjacent columns that the kernels read in one go: numbers of 4, 8 and 16 bytes, and Booleans.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;

use super::each::{Coding, take_longer, take_unless_longer};
use super::tile::{Tile, with_places};
use super::{Bits, Columns, Extent, Part};
use crate::error::Result;
use crate::kernel::prefetch::prefetch_all;
use crate::kernel::rows::{
    BitOut, Code, LaneOut, Places, Word, take, take_bits, take_wide, take_wide_some,
};
use crate::kernel::values::Values;
use crate::order::code::plain_type;
use crate::rows::decode::corrupt;
use crate::rows::fixed;
use crate::rows::recode::recode;

/// Bytes of a row from which on a few columns of many rows are no stream that a CPU recognizes. Fetching the
/// rows of a tile first is 25 % faster for 50 columns, and 5 % slower for 10.
const LONG_STRIDE: usize = 128;

/// A column of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) column: usize,
    pub(super) code: Code,
    /// The same for one value, if some may take a byte more.
    pub(super) longer: Option<Coding>,
    /// One that nobody wants may be among them: only its codes say where the next column begins.
    pub(super) is_wanted: bool,
}

/// Adjacent columns of numbers of 4 or 8 bytes.
pub(super) struct Numbers<T> {
    numbers: Vec<Number>,
    values: Vec<Values<T>>,
    /// Validity of the rows of a tile.
    valid: Vec<Vec<u64>>,
}

impl<T: Word + fixed::Word<Native = T>> Numbers<T> {
    pub(super) fn new(numbers: Vec<Number>, rows: usize) -> Self {
        let values = numbers.iter().map(|_| Values::with_capacity(rows)).collect();
        Self { valid: vec![Vec::new(); numbers.len()], values, numbers }
    }

    fn width(&self) -> usize {
        self.numbers.len() * size_of::<T>()
    }
}

impl<T: Word + fixed::Word<Native = T>> Part for Numbers<T> {
    fn extent(&self) -> Extent {
        Extent::Fixed(self.width())
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let before = self.values.first().map_or(0, Values::len);
        let lanes = self.values.iter_mut().zip(&mut self.valid).zip(&self.numbers);
        let mut lanes: Vec<LaneOut<'_, T>> = lanes
            .map(|((values, valid), number)| LaneOut { values, valid, code: number.code })
            .collect();
        let fits = with_places!(tile.next(0), places => {
            if places.stride().is_some_and(|stride| stride >= LONG_STRIDE) && rows > 0 {
                prefetch_all(&bytes[places.place(0)..places.furthest(rows)]);
            }
            take(&mut lanes, rows, places, bytes)
        });
        if fits {
            for (number, words) in self.numbers.iter().zip(&self.valid) {
                if number.code.escapes {
                    let words = &words[..rows.div_ceil(64)];
                    valid[number.column].add(rows, |valid| valid.extend_from_slice(words));
                }
            }
            tile.pass(self.width());
            return Ok(());
        }
        if tile.is_strided() {
            return Err(corrupt("a number is cut off"));
        }
        let lanes = self.values.iter_mut().zip(&mut self.valid).zip(&self.numbers);
        for ((values, words), number) in lanes {
            values.truncate(before);
            if let Some(coding) = number.longer {
                take_longer::<T>(coding, tile, values, &mut valid[number.column])?;
                continue;
            }
            // Behind one that is longer it may lie anywhere.
            tile.require(size_of::<T>())?;
            let mut lane = [LaneOut { values, valid: words, code: number.code }];
            with_places!(tile.next(0), places => take(&mut lane, rows, places, bytes));
            tile.pass(size_of::<T>());
        }
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        for (number, values) in self.numbers.iter().zip(self.values) {
            if number.is_wanted {
                columns.put_numbers(number.column, values.into())?;
            }
        }
        Ok(())
    }
}

/// Adjacent columns of numbers of 16 bytes, of which none is longer.
pub(super) struct Wides {
    codes: Vec<Code>,
    columns: Vec<usize>,
    values: Vec<Values<u128>>,
}

impl Wides {
    pub(super) fn new(numbers: Vec<Number>, rows: usize) -> Self {
        Self {
            codes: numbers.iter().map(|number| number.code).collect(),
            columns: numbers.iter().map(|number| number.column).collect(),
            values: numbers.iter().map(|_| Values::with_capacity(rows)).collect(),
        }
    }

    fn width(&self) -> usize {
        self.codes.len() * size_of::<u128>()
    }
}

impl Part for Wides {
    fn extent(&self) -> Extent {
        Extent::Fixed(self.width())
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let values = &mut self.values;
        with_places!(tile.next(0), places => take_wide(&self.codes, rows, places, bytes, values));
        tile.pass(self.width());
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        for (column, values) in self.columns.into_iter().zip(self.values) {
            columns.put_numbers(column, values.into())?;
        }
        Ok(())
    }
}

/// A column of numbers of 16 bytes, whose codes say which of them are null.
pub(super) struct WideSome {
    column: usize,
    code: Code,
    coding: Coding,
    values: Values<u128>,
}

impl WideSome {
    pub(super) fn new(column: usize, code: Code, coding: Coding, rows: usize) -> Self {
        Self { column, code, coding, values: Values::with_capacity(rows) }
    }
}

impl Part for WideSome {
    fn extent(&self) -> Extent {
        Extent::Fixed(size_of::<u128>())
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let Self { column, code, coding, values } = self;
        let valid = &mut valid[*column];
        take_unless_longer::<u128>(*coding, tile, values, valid, |tile, values, valid| {
            with_places!(tile.next(0), places => {
                take_wide_some(code, rows, places, bytes, values, valid)
            })
        })
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_numbers(self.column, self.values.into())
    }
}

/// Adjacent Booleans.
pub(super) struct Booleans {
    columns: Vec<usize>,
    /// Whether the bits are turned around, of each column.
    flips: Vec<bool>,
    bits: Vec<Bits>,
}

impl Booleans {
    /// Columns and whether they descend.
    pub(super) fn new(columns: Vec<(usize, bool)>, rows: usize) -> Self {
        let bits = columns.iter().map(|_| Bits::with_capacity(rows)).collect();
        let (columns, flips) = columns.into_iter().unzip();
        Self { columns, flips, bits }
    }
}

impl Part for Booleans {
    fn extent(&self) -> Extent {
        Extent::Fixed(self.columns.len())
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let mut read = vec![Vec::with_capacity(rows.div_ceil(64)); self.columns.len()];
        let lanes = read.iter_mut().zip(&self.flips);
        let mut lanes: Vec<BitOut<'_>> =
            lanes.map(|(bits, &flip)| BitOut { bits, zero: 0, flip }).collect();
        with_places!(tile.next(0), places => take_bits(&mut lanes, rows, places, bytes));
        for (bits, read) in self.bits.iter_mut().zip(read) {
            bits.add(rows, |words| words.extend_from_slice(&read));
        }
        tile.pass(self.columns.len());
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        for (column, bits) in self.columns.into_iter().zip(self.bits) {
            let nulls = columns.nulls(column);
            columns.put(column, Arc::new(BooleanArray::new(bits.finish(), nulls)))?;
        }
        Ok(())
    }
}

impl Columns {
    /// `values` of fixed width are those of `column`.
    pub(in crate::rows) fn put_numbers(&mut self, column: usize, values: Buffer) -> Result<()> {
        let nulls = self.nulls(column);
        let plain = plain_type(self.data_type(column)).clone();
        let data = ArrayData::builder(plain).len(self.rows).add_buffer(values).nulls(nulls);
        self.put(column, make_array(data.build()?))
    }

    /// `array` holds the values of `column`, which has dictionaries or run ends of them if that is its type.
    pub(in crate::rows) fn put(&mut self, column: usize, array: ArrayRef) -> Result<()> {
        let data_type = self.data_type(column);
        let is_plain = array.data_type() == data_type;
        self.ready[column] = Some(if is_plain { array } else { recode(&array, data_type)? });
        Ok(())
    }
}
