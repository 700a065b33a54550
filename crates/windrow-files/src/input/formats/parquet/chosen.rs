//! The columns of a Parquet file that are read.
//!
//! ```text
//!  schema    id     point: x, y     name          id and point are selected
//!  leaves    0      1  2            3             0, 1 and 2 are read
//! ```
//! Invariant: a column is read as a whole, with all of its leaves.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::facts;
use crate::input::row_groups::Footer;

/// The columns that a reader of a file returns.
#[derive(Clone)]
pub(super) struct Chosen {
    /// The leaves of these columns.
    pub(super) mask: ProjectionMask,
    /// The schema of the record batches.
    pub(super) schema: SchemaRef,
}

impl Chosen {
    /// Chooses the columns `places` of a file with this `footer`; `None` is all.
    pub(super) fn of(footer: &Footer, places: Option<Vec<usize>>) -> Self {
        let whole = footer.schema();
        let Some(places) = places else {
            return Self { mask: ProjectionMask::all(), schema: Arc::clone(whole) };
        };
        let leaves = footer.metadata().file_metadata().schema_descr();
        Self { schema: facts::chosen(whole, &places), mask: ProjectionMask::roots(leaves, places) }
    }

    /// Returns true if the reader decodes this leaf.
    pub(super) fn reads(&self, leaf: usize) -> bool {
        self.mask.leaf_included(leaf)
    }

    /// Returns the column chunks of a row group that the reader decodes.
    pub(super) fn chunks<'a>(
        &'a self,
        group: &'a RowGroupMetaData,
    ) -> impl Iterator<Item = &'a ColumnChunkMetaData> {
        group.columns().iter().enumerate().filter(|(leaf, _)| self.reads(*leaf)).map(|(_, c)| c)
    }
}
