//! Rows back to columns, part by part: a tile of rows goes through all parts of a row before the next one does.
//!
//! ```text
//! parts    | numbers | marker | text      | Booleans | ...        from a layout and what is wanted of it, or from the
//!                                                                 fields of `compat`
//! row      | a  b  c | 01     | t e x t 01| d  e     |
//! cursor   ^ and a distance            then the next cursor, and a distance
//! ```
//!
//! As long as every row has the same bytes, the cursors of a tile stay and the distance grows, for a part that varies
//! they move. So a column goes through the same kernels whatever stands in front of it. A number whose code is rarely
//! longer is read as one that is not; the tile in which that was wrong is read again, one row after the other.
//!
//! Invariant: kernels see places that were checked to lie within the bytes of all rows; cursors only ascend, so that
//! rows of which each ends where its last part does have had all parts within their own bytes.

mod anywhere;
mod built;
pub(super) mod cells;
pub(super) mod each;
mod numbers;
mod part;
mod plan;
pub(super) mod texts;
mod tile;
pub(super) mod whole;

use arrow_array::ArrayRef;
use arrow_schema::Fields;

use super::row_ref::corrupt;
use crate::error::Result;

pub(super) use anywhere::TILE;
pub(super) use part::{Bits, Columns, Part, Room, take_all};
pub(super) use plan::plan;
pub(super) use tile::{Next, Tile};

/// Rows that are read to columns.
pub(super) struct Reader<'a> {
    parts: Vec<Box<dyn Part + 'a>>,
    columns: Columns,
}

impl<'a> Reader<'a> {
    /// A reader of rows that have these parts, to columns of `fields`.
    pub(super) fn new(parts: Vec<Box<dyn Part + 'a>>, fields: Fields) -> Self {
        Self { parts, columns: Columns::new(fields, 0) }
    }

    /// Reads a tile of rows, behind those that were read already.
    pub(super) fn read(&mut self, tile: &mut Tile<'_>) -> Result<()> {
        take_all(&mut self.parts, tile, &mut self.columns.valid)?;
        if !tile.is_read() {
            return Err(corrupt("a row does not end where its columns do"));
        }
        self.columns.rows += tile.len();
        Ok(())
    }

    /// How many rows were read.
    pub(super) fn rows(&self) -> usize {
        self.columns.rows
    }

    /// The columns, by their position among the fields.
    pub(super) fn finish(mut self) -> Result<Vec<Option<ArrayRef>>> {
        for part in self.parts {
            part.finish(&mut self.columns)?;
        }
        Ok(self.columns.ready)
    }
}
