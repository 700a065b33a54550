//! Partial updates: updates without all columns of their row. A missing column did not change, and
//! its value is unknown here.
//!
//! | format | missing columns |
//! |---|---|
//! | Debezium | unchanged large values: `__debezium_unavailable_value`, base64 in binary columns |
//! | wal2json | unchanged large values are absent |
//! | Maxwell, Canal | unchanged columns are absent unless binlog images are full |

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, OffsetSizeTrait};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};

use super::op::Change;
use super::said::{Said, misfit};
use crate::error::{Error, Result};
use crate::raw::CARRIED;
use crate::settings::{Preset, Setting, Unchanged};

/// Detects partial updates and applies the caller's setting to them.
pub(super) struct Partial {
    what: Unchanged,
    /// The row's columns: positions and names.
    columns: Vec<(usize, String)>,
    /// Whether values may be placeholders.
    placeholders: bool,
    /// Position of the column that lists the columns of an update.
    carried: Option<usize>,
}

impl Partial {
    /// Binds to `fields`; the first `width` belong to the row, not counting the `CARRIED` column.
    pub(super) fn bind(said: &Said<'_>, fields: &[Arc<Field>], width: usize) -> Self {
        let of_row = fields.iter().enumerate().filter(|(_, field)| field.name() != CARRIED);
        Self {
            what: said.unchanged,
            columns: of_row.take(width).map(|(at, field)| (at, field.name().clone())).collect(),
            placeholders: said.preset == Preset::Debezium,
            carried: fields.iter().position(|field| field.name() == CARRIED),
        }
    }

    /// Returns true if rows have marks of their missing columns.
    pub(super) fn marks(&self) -> bool {
        self.what == Unchanged::Last && (self.placeholders || self.carried.is_some())
    }

    /// Returns the marks of all rows: a bit for each missing column, null for a row with all
    /// columns; `None` without marks. `columns` must be the bound columns.
    pub(super) fn unknown(
        &self,
        columns: &[ArrayRef],
        changes: &[Change],
    ) -> Result<Option<ArrayRef>> {
        if !self.marks() {
            return Ok(None);
        }
        let length = columns.len().div_ceil(8);
        let mut marks: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut mark = |row: usize, column: usize| {
            marks.entry(row).or_insert_with(|| vec![0; length])[column / 8] |= 1 << (column % 8);
        };
        for (row, said) in self.partial_rows(columns, changes)? {
            let nulls: HashSet<&str> = said.split('\0').skip(1).collect();
            let is_missing = |(column, name): &&(usize, String)| {
                columns[*column].is_null(row) && !nulls.contains(name.as_str())
            };
            self.columns.iter().filter(is_missing).for_each(|(column, _)| mark(row, *column));
        }
        for (row, column, _) in self.placeholder_rows(columns, changes) {
            mark(row, column);
        }
        let marks = (0..changes.len()).map(|row| marks.get(&row).map(Vec::as_slice));
        Ok(Some(Arc::new(marks.collect::<BinaryArray>())))
    }

    /// Returns the updates with fewer columns than the row, and their lists of columns.
    fn partial_rows(
        &self,
        columns: &[ArrayRef],
        changes: &[Change],
    ) -> Result<Vec<(usize, String)>> {
        let Some(at) = self.carried else { return Ok(Vec::new()) };
        let carried = cast(&columns[at], &DataType::Utf8).map_err(misfit)?;
        let carried = carried.as_string::<i32>();
        let rows = (0..changes.len()).filter_map(|row| {
            let said = carried.is_valid(row).then(|| carried.value(row))?;
            let is_partial = is_row(changes[row]) && count(said)? < self.columns.len();
            is_partial.then(|| (row, said.to_owned()))
        });
        Ok(rows.collect())
    }

    /// Returns the placeholders: row, position of the column, and name of the column.
    fn placeholder_rows<'a>(
        &'a self,
        columns: &'a [ArrayRef],
        changes: &'a [Change],
    ) -> impl Iterator<Item = (usize, usize, &'a str)> {
        let of_row = self.columns.iter().filter(|_| self.placeholders);
        of_row.flat_map(move |(column, name)| {
            let rows = unavailable(&columns[*column]).into_iter();
            rows.filter(|row| is_row(changes[*row])).map(move |row| (row, *column, name.as_str()))
        })
    }

    /// Returns an error for a partial update if the caller forbids partial updates. `columns` must
    /// be the bound columns.
    pub(super) fn refuse(
        &self,
        columns: &[ArrayRef],
        changes: &[Change],
        first_row: u64,
    ) -> Result<()> {
        if self.what != Unchanged::Error {
            return Ok(());
        }
        let refused = |rows: usize, row: usize, what: String| {
            let row = first_row + row as u64;
            Error::data(format!(
                "row {row}: {what}, and what the row holds is not known ({rows} such rows among the {} that \
                 were read together); {} last fills in what was known last, and keep takes them as they are",
                changes.len(),
                Setting::Unchanged
            ))
            .at_row(row)
        };
        let rows = self.partial_rows(columns, changes)?;
        if let Some((first, said)) = rows.first() {
            let has = count(said).unwrap_or_default();
            let what = format!("the update has {has} of the {} columns", self.columns.len());
            return Err(refused(rows.len(), *first, what));
        }
        let mut rows = self.placeholder_rows(columns, changes);
        if let Some((first, column, name)) = rows.next() {
            let more = rows.filter(|(_, other, _)| *other == column).count();
            let what = format!("column {name:?} holds {UNAVAILABLE}, as it did not change");
            return Err(refused(1 + more, first, what).in_column(name));
        }
        Ok(())
    }
}

fn is_row(change: Change) -> bool {
    matches!(change, Change::Upsert | Change::Snapshot)
}

/// Returns the number of columns of an update; `None` for all columns.
fn count(said: &str) -> Option<usize> {
    said.split('\0').next()?.parse().ok()
}

/// Debezium's placeholder for a missing value.
const UNAVAILABLE: &str = "__debezium_unavailable_value";

/// The placeholder in a binary column, as written in JSON.
const UNAVAILABLE_BYTES: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";

/// Returns the rows of `column` with a placeholder.
fn unavailable(column: &ArrayRef) -> Vec<usize> {
    match column.data_type() {
        DataType::Utf8 => texts(column.as_string::<i32>().iter()),
        DataType::LargeUtf8 => texts(column.as_string::<i64>().iter()),
        DataType::Utf8View => texts(column.as_string_view().iter()),
        DataType::Binary => bytes(column.as_binary::<i32>().iter()),
        DataType::LargeBinary => bytes(column.as_binary::<i64>().iter()),
        DataType::BinaryView => bytes(column.as_binary_view().iter()),
        DataType::List(_) => lists::<i32>(column),
        DataType::LargeList(_) => lists::<i64>(column),
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let values = unavailable(dictionary.values());
            if values.is_empty() {
                return values;
            }
            let keys = dictionary.normalized_keys();
            let has = |row: &usize| column.is_valid(*row) && values.contains(&keys[*row]);
            (0..column.len()).filter(has).collect()
        }
        // Columns of other types have no placeholder.
        _ => Vec::new(),
    }
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Vec<usize> {
    bytes(values.map(|value| value.map(str::as_bytes)))
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<usize> {
    let is =
        |value: &[u8]| value == UNAVAILABLE.as_bytes() || value == UNAVAILABLE_BYTES.as_bytes();
    let found = values.enumerate().filter(|(_, value)| value.is_some_and(is));
    found.map(|(row, _)| row).collect()
}

/// Returns the rows whose list consists of one placeholder.
fn lists<O: OffsetSizeTrait>(column: &ArrayRef) -> Vec<usize> {
    let list = column.as_list::<O>();
    let values = unavailable(list.values());
    if values.is_empty() {
        return values;
    }
    let offsets = list.value_offsets();
    let has = |row: &usize| {
        let (start, end) = (offsets[*row].as_usize(), offsets[*row + 1].as_usize());
        list.is_valid(*row) && end == start + 1 && values.binary_search(&start).is_ok()
    };
    (0..list.len()).filter(has).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int64Array, ListArray, StringArray};

    use super::*;

    #[test]
    fn placeholders_are_found_in_columns_of_any_type() {
        let words =
            [Some("a"), Some(UNAVAILABLE), None, Some(UNAVAILABLE_BYTES), Some("__debezium")];
        let text: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
        let categories: DictionaryArray<Int32Type> = words.iter().copied().collect();
        let bytes: Vec<_> = words.iter().map(|word| word.map(str::as_bytes)).collect();
        for column in [text, Arc::new(categories), Arc::new(BinaryArray::from(bytes))] {
            assert_eq!(unavailable(&column), [1, 3], "{}", column.data_type());
        }
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
        assert!(unavailable(&(Arc::new(lists) as ArrayRef)).is_empty());
        assert!(unavailable(&(Arc::new(Int64Array::from(vec![1])) as ArrayRef)).is_empty());
    }
}
