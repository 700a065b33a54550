//! Updates that do not carry all columns of their row: what they leave out is as it was, and unknown here.
//!
//! | format | what an update leaves out |
//! |---|---|
//! | Debezium | large values that did not change are `__debezium_unavailable_value`, in columns of bytes its base64 |
//! | wal2json | they are not among its columns |
//! | Maxwell, Canal | with binlog images that are not full, columns that did not change |

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};

use super::op::Change;
use super::{Said, misfit};
use crate::error::{Error, Result};
use crate::preset::{Preset, Unchanged};
use crate::raw::CARRIED;
use crate::setting::Setting;

/// Which updates are refused.
pub(super) struct Partial {
    /// The row's columns, by name.
    names: Vec<String>,
    /// Whether values may be placeholders.
    placeholders: bool,
    /// Where it stands how many columns an update has, and how many all are.
    carried: Option<(usize, usize)>,
}

impl Partial {
    /// Of `fields` the first `width` are the row's, apart from the column of how many an update has.
    pub(super) fn bind(said: &Said<'_>, fields: &[Arc<Field>], width: usize) -> Self {
        let refused = said.unchanged == Unchanged::Error;
        let names = fields.iter().filter(|field| field.name() != CARRIED).take(width);
        let carried = fields.iter().position(|field| field.name() == CARRIED);
        Self {
            names: names.map(|field| field.name().clone()).collect(),
            placeholders: refused && said.preset == Preset::Debezium,
            carried: carried.filter(|_| refused).map(|at| (at, width)),
        }
    }

    /// Refuses updates without all columns of their row. `columns` are those that it was bound to.
    pub(super) fn refuse(
        &self,
        columns: &[ArrayRef],
        changes: &[Change],
        first_row: u64,
    ) -> Result<()> {
        let is_row = |row: &usize| matches!(changes[*row], Change::Upsert | Change::Snapshot);
        let refused = |rows: &[usize], what: String| {
            let row = first_row + rows[0] as u64;
            Error::data(format!(
                "row {row}: {what}, and what the row holds is not known ({} such rows among the {} that \
                 were read together); {} keep takes them as they are",
                rows.len(),
                changes.len(),
                Setting::Unchanged
            ))
            .at_row(row)
        };
        if let Some((at, whole)) = self.carried {
            let carried = cast(&columns[at], &DataType::Int64).map_err(misfit)?;
            let carried = carried.as_primitive::<Int64Type>();
            let is_partial = |row: &usize| {
                let count = carried.value(*row);
                is_row(row) && carried.is_valid(*row) && count >= 0 && count < whole as i64
            };
            let rows: Vec<usize> = (0..changes.len()).filter(is_partial).collect();
            if let Some(first) = rows.first() {
                let has = carried.value(*first);
                let what = format!("the update has {has} of the {whole} columns");
                return Err(refused(&rows, what));
            }
        }
        if !self.placeholders {
            return Ok(());
        }
        for (name, column) in self.names.iter().zip(columns) {
            let rows: Vec<usize> = unavailable(column).into_iter().filter(is_row).collect();
            if !rows.is_empty() {
                let what = format!("column {name:?} holds {UNAVAILABLE}, as it did not change");
                return Err(refused(&rows, what).in_column(name));
            }
        }
        Ok(())
    }
}

/// What Debezium writes in place of a value.
const UNAVAILABLE: &str = "__debezium_unavailable_value";

/// The same in a column of bytes, as JSON has them.
const UNAVAILABLE_BYTES: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";

/// The rows of `column` that have it.
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
        // Columns of other types have no such value.
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

/// Lists of it alone.
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

    use arrow::array::{BinaryArray, DictionaryArray, Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int32Type;

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
