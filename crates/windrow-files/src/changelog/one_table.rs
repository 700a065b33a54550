//! Rejects events of several tables in one log, unless the caller names the tables.
//!
//! Rows of two tables with equal keys would replace each other. The same [`Tables`] check raw logs
//! during conversion; this module checks Debezium events that are read unchanged.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema};

use crate::error::{Error, Result, failed};
use crate::raw::Tables;

/// The columns that name the table of an event, and its schema or database.
const TABLE: [&str; 4] = ["source.table", "source.collection", "__source_table", "__table"];
const WITHIN: [&str; 5] = ["source.schema", "source.db", "__source_schema", "__schema", "__db"];

/// The table of all events.
pub(super) struct OneTable {
    table: usize,
    within: Option<usize>,
    /// The table of the first event.
    tables: Tables,
}

impl OneTable {
    /// Returns `None` if no column of text names the table.
    pub(super) fn bind(schema: &Schema) -> Option<Self> {
        let text = |name: &&str| {
            let (place, field) = schema.fields().find(name)?;
            field.data_type().is_string().then_some(place)
        };
        let table = TABLE.iter().find_map(text)?;
        Some(Self { table, within: WITHIN.iter().find_map(text), tables: Tables::new(Vec::new()) })
    }

    /// Checks the events in `columns`; `first_row` is the ordinal of the first.
    ///
    /// # Errors
    /// `Usage`, with the names of both tables.
    pub(super) fn check(&self, columns: &[ArrayRef], first_row: u64) -> Result<()> {
        let text = |place: usize| cast(&columns[place], &DataType::Utf8).map_err(failed);
        let tables = text(self.table)?;
        let within = self.within.map(text).transpose()?;
        let (tables, within) = (tables.as_string::<i32>(), within.as_deref());
        let within = within.map(|within| within.as_string::<i32>());
        let mut last = None;
        for row in (0..tables.len()).filter(|&row| tables.is_valid(row)) {
            let within = within.filter(|within| within.is_valid(row)).map(|w| w.value(row));
            let event = (within, tables.value(row));
            if last == Some(event) {
                continue;
            }
            last = Some(event);
            self.tables.wants(within, Some(event.1)).map_err(|what| {
                Error::usage(format!("row {}: {what}", first_row + row as u64 + 1))
            })?;
        }
        Ok(())
    }
}
