//! Cells: values of fixed width after a marker byte, in rows of one length and in arrow-row; and
//! numbers of one or two bytes, with or without a marker.
//!
//! ```text
//! row      | 01 v v v v v v v v | 01 b | 00 0 0 0 0 |     adjacent, of any widths: read together
//! ```

use std::sync::Arc;

use arrow_array::BooleanArray;

use super::part::{Bits, Columns, Part};
use super::tile::{Tile, with_places};
use crate::error::Result;
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};
use crate::rows::lanes::{RAW, slot_code};
use crate::rows::row_ref::corrupt;
use windrow_kernel::rows::{Cell, Code, Held, take_cell};

/// Returns the content of a cell, if columns of this code are read together with their markers and
/// neighbours. Codes of one or two bytes need no marker. `bit` complements Booleans: our descending
/// rows swap 0 and 1, and arrow-row complements all bits of a descending Boolean.
pub(in crate::rows) fn held(code: OrderedCode, descending: bool, bit: u8) -> Option<Held> {
    let flip = if descending { 0xff } else { 0 };
    Some(match code {
        OrderedCode::Bool => Held::Bit(bit),
        OrderedCode::Fixed(1, Kind::Unsigned) | OrderedCode::FixedBinary(1) => Held::Byte(flip),
        OrderedCode::Fixed(1, Kind::Signed) => Held::Byte(flip ^ 0x80),
        OrderedCode::Fixed(width @ (2 | 4 | 8), Kind::Signed | Kind::Unsigned | Kind::Float) => {
            let slot = Slot { descending, ..Slot::of_number(0, code) };
            Held::Number(width, slot_code(&slot))
        }
        OrderedCode::FixedBinary(width @ (2 | 4 | 8)) => {
            let flip = u64::from_ne_bytes([flip; 8]) >> (64 - 8 * width);
            Held::Number(width, Code { flip, ..RAW })
        }
        _ => return None,
    })
}

/// Adjacent columns of up to eight bytes, with their markers if any.
pub(in crate::rows) struct Cells {
    cells: Vec<Cell>,
    columns: Vec<usize>,
    /// Bits of each column; empty unless the column is Boolean.
    bits: Vec<Bits>,
}

impl Cells {
    pub(in crate::rows) fn new(cells: Vec<(usize, Cell)>) -> Self {
        let (columns, cells): (Vec<usize>, Vec<Cell>) = cells.into_iter().unzip();
        let bits = cells.iter().map(|_| Bits::default()).collect();
        Self { cells, columns, bits }
    }

    /// Creates cells for the markers of a column alone.
    pub(in crate::rows) fn markers(column: usize, null: u8) -> Self {
        Self::new(vec![(column, Cell::new(Held::Nothing, Some(null), 0))])
    }

    /// Returns all cells, in their state after a tile was read.
    pub(in crate::rows) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter()
    }

    pub(in crate::rows) fn bytes(&self) -> usize {
        self.cells.iter().map(Cell::bytes).sum()
    }
}

impl Part for Cells {
    fn width(&self) -> Option<usize> {
        Some(self.bytes())
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        for ((cell, &column), bits) in self.cells.iter_mut().zip(&self.columns).zip(&mut self.bits)
        {
            let fits = with_places!(tile.next(0), places => take_cell(cell, rows, places, bytes));
            if !fits {
                return Err(corrupt("a marker that is neither null nor value, or no Boolean"));
            }
            tile.pass(cell.bytes());
            if cell.has_marker() {
                valid[column].add(rows, |valid| valid.extend_from_slice(&cell.valid));
            }
            if let Held::Bit(_) = cell.held() {
                bits.add(rows, |bits| bits.extend_from_slice(&cell.bits));
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        for ((column, bits), cell) in self.columns.into_iter().zip(self.bits).zip(self.cells) {
            match cell.held() {
                Held::Bit(_) => {
                    let nulls = columns.nulls(column);
                    columns.put(column, Arc::new(BooleanArray::new(bits.finish(), nulls)))?;
                }
                Held::Nothing => {}
                _ => columns.put_numbers(column, cell.into_values())?,
            }
        }
        Ok(())
    }
}
