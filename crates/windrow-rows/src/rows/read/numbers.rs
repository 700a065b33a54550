//! Adjacent columns of numbers of 4, 8 and 16 bytes, which kernels read in one go.

use super::each::{Coding, take_longer};
use super::part::{Bits, Columns, Part};
use super::tile::{Tile, with_places};
use crate::error::Result;
use crate::rows::fixed;
use crate::rows::row_ref::corrupt;
use windrow_kernel::rows::{Code, LaneOut, Word, take};
use windrow_kernel::values::Values;

/// A column of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) column: usize,
    pub(super) code: Code,
    /// Encoding of single values, if some take an extra byte.
    pub(super) longer: Option<Coding>,
    /// False for an unwanted column, which is read only because its codes determine the start of
    /// the next.
    pub(super) is_wanted: bool,
}

/// Adjacent columns of numbers of 4, 8 or 16 bytes.
pub(super) struct Numbers<T> {
    numbers: Vec<Number>,
    values: Vec<Values<T>>,
    /// Validity of the rows of a tile.
    valid: Vec<Vec<u64>>,
}

impl<T: Word + fixed::Word> Numbers<T> {
    pub(super) fn new(numbers: Vec<Number>, rows: usize) -> Self {
        let values = numbers.iter().map(|_| Values::with_capacity(rows)).collect();
        Self { valid: vec![Vec::new(); numbers.len()], values, numbers }
    }

    fn bytes(&self) -> usize {
        self.numbers.len() * size_of::<T>()
    }
}

impl<T: Word + fixed::Word> Part for Numbers<T> {
    fn width(&self) -> Option<usize> {
        Some(self.bytes())
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let before = self.values.first().map_or(0, Values::len);
        let lanes = self.values.iter_mut().zip(&mut self.valid).zip(&self.numbers);
        let mut lanes: Vec<LaneOut<'_, T>> = lanes
            .map(|((values, valid), number)| LaneOut { values, valid, code: number.code })
            .collect();
        let fits = with_places!(tile.next(0), places => take(&mut lanes, rows, places, bytes));
        if fits {
            for (number, words) in self.numbers.iter().zip(&self.valid) {
                if number.code.escapes {
                    valid[number.column].add(rows, |valid| valid.extend_from_slice(words));
                }
            }
            tile.pass(self.bytes());
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
            // After a longer number, the position may be anywhere.
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
