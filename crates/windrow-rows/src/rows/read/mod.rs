//! Decoding of rows into columns, part by part: a tile of rows is read part after part.
//!
//! ```text
//! parts    | numbers | marker | text      | Booleans | ...      from a layout and wanted columns,
//!                                                               or from the fields of `compat`
//! row      | a  b  c | 01     | t e x t 01| d  e     |
//! cursor   ^ and a distance            then the next cursor, and a distance
//! ```
//!
//! While all rows of a tile have parts of equal lengths, the cursors stay and the distance grows; a
//! part that varies moves the cursors. So a column uses the same kernels whatever precedes it.
//! Numbers with rare longer codes are read as if all codes were short; a tile with a longer code is
//! read again, row by row.
//!
//! Invariant: kernels read only positions within the bytes of all rows. Cursors only ascend: if
//! each row ends where its last part ends, all parts lie within the row.

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

/// Reads rows into columns.
pub(super) struct Reader<'a> {
    parts: Vec<Box<dyn Part + 'a>>,
    columns: Columns,
}

impl<'a> Reader<'a> {
    /// Creates a reader of rows with these parts, for columns of `fields`.
    pub(super) fn new(parts: Vec<Box<dyn Part + 'a>>, fields: Fields) -> Self {
        Self { parts, columns: Columns::new(fields, 0) }
    }

    /// Reads a tile of rows, after the rows read before.
    pub(super) fn read(&mut self, tile: &mut Tile<'_>) -> Result<()> {
        take_all(&mut self.parts, tile, &mut self.columns.valid)?;
        if !tile.is_read() {
            return Err(corrupt("a row does not end where its columns do"));
        }
        self.columns.rows += tile.len();
        Ok(())
    }

    /// Returns the number of rows read.
    pub(super) fn rows(&self) -> usize {
        self.columns.rows
    }

    /// Builds the columns, by their position among the fields.
    pub(super) fn finish(mut self) -> Result<Vec<Option<ArrayRef>>> {
        for part in self.parts {
            part.finish(&mut self.columns)?;
        }
        Ok(self.columns.ready)
    }
}
