//! Programs written for arrow-row, with the import changed: the unchanged examples of its
//! documentation, and random columns compared with arrow-row itself.

use std::collections::HashSet;
use std::sync::Arc;

use crate::common::arrays::{Rng, array_of, data_type};
use crate::common::engine::cases;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, SortOptions};
use proptest::prelude::*;
use windrow::compat::{OwnedRow, Row, RowConverter, SortField};

#[test]
fn basic_example() {
    let a1 = Arc::new(Int32Array::from_iter_values([-1, -1, 0, 3, 3])) as ArrayRef;
    let a2 = Arc::new(StringArray::from_iter_values(["a", "b", "c", "d", "d"])) as ArrayRef;
    let arrays = vec![a1, a2];

    // Convert arrays to rows
    let converter =
        RowConverter::new(vec![SortField::new(DataType::Int32), SortField::new(DataType::Utf8)])
            .unwrap();
    let rows = converter.convert_columns(&arrays).unwrap();

    // Compare rows
    for i in 0..4 {
        assert!(rows.row(i) <= rows.row(i + 1));
    }
    assert_eq!(rows.row(3), rows.row(4));

    // Convert rows back to arrays
    let converted = converter.convert_rows(&rows).unwrap();
    assert_eq!(arrays, converted);

    // Compare rows from different arrays
    let a1 = Arc::new(Int32Array::from_iter_values([3, 4])) as ArrayRef;
    let a2 = Arc::new(StringArray::from_iter_values(["e", "f"])) as ArrayRef;
    let arrays = vec![a1, a2];
    let rows2 = converter.convert_columns(&arrays).unwrap();

    assert!(rows.row(4) < rows2.row(0));
    assert!(rows.row(4) < rows2.row(1));

    // Convert selection of rows back to arrays
    let selection = [rows.row(0), rows2.row(1), rows.row(2), rows2.row(0)];
    let converted = converter.convert_rows(selection).unwrap();
    let c1 = converted[0].as_primitive::<Int32Type>();
    assert_eq!(c1.values(), &[-1, 4, 0, 3]);

    let c2 = converted[1].as_string::<i32>();
    let c2_values: Vec<_> = c2.iter().flatten().collect();
    assert_eq!(&c2_values, &["a", "f", "c", "e"]);
}

#[expect(clippy::unnecessary_sort_by, reason = "as arrow-row's documentation has it")]
fn lexsort_to_indices(arrays: &[ArrayRef]) -> UInt32Array {
    let fields = arrays.iter().map(|a| SortField::new(a.data_type().clone())).collect();
    let converter = RowConverter::new(fields).unwrap();
    let rows = converter.convert_columns(arrays).unwrap();
    let mut sort: Vec<_> = rows.iter().enumerate().collect();
    sort.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
    UInt32Array::from_iter_values(sort.iter().map(|(i, _)| *i as u32))
}

#[test]
fn lexicographic_sort() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), None, Some(1), Some(2)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["b", "c", "d", "a"]));
    assert_eq!(lexsort_to_indices(&[numbers, texts]).values(), &[1, 2, 3, 0]);
}

#[test]
fn flattening_dictionaries() {
    // Input is a Dictionary array
    let dict: DictionaryArray<Int8Type> = ["a", "b", "c", "a", "b"].into_iter().collect();
    let sort_fields = vec![SortField::new(dict.data_type().clone())];
    let arrays = vec![Arc::new(dict) as ArrayRef];
    let converter = RowConverter::new(sort_fields).unwrap();
    // Convert to rows
    let rows = converter.convert_columns(&arrays).unwrap();
    let converted = converter.convert_rows(&rows).unwrap();
    // result was a Utf8 array, not a Dictionary array
    assert_eq!(converted[0].data_type(), &DataType::Utf8);
}

#[test]
fn append() {
    let converter = RowConverter::new(vec![SortField::new(DataType::Utf8)]).unwrap();
    let a1 = StringArray::from(vec!["hello", "world"]);
    let a2 = StringArray::from(vec!["a", "a", "hello"]);

    let mut rows = converter.empty_rows(5, 128);
    converter.append(&mut rows, &[Arc::new(a1)]).unwrap();
    converter.append(&mut rows, &[Arc::new(a2)]).unwrap();

    let back = converter.convert_rows(&rows).unwrap();
    let values: Vec<_> = back[0].as_string::<i32>().iter().map(Option::unwrap).collect();
    assert_eq!(&values, &["hello", "world", "a", "a", "hello"]);
}

#[test]
fn deduplicate() {
    let converter = RowConverter::new(vec![SortField::new(DataType::Utf8)]).unwrap();
    let array = StringArray::from(vec!["hello", "world", "a", "a", "hello"]);

    // Convert to row format and deduplicate
    let converted = converter.convert_columns(&[Arc::new(array)]).unwrap();
    let mut distinct_rows = converter.empty_rows(3, 100);
    let mut dedup: HashSet<Row> = HashSet::with_capacity(3);
    converted.iter().filter(|row| dedup.insert(*row)).for_each(|row| distinct_rows.push(row));

    // Note: we could skip buffering and feed the filtered iterator directly
    // into convert_rows, this is done for demonstration purposes only
    let distinct = converter.convert_rows(&distinct_rows).unwrap();
    let values: Vec<_> = distinct[0].as_string::<i32>().iter().map(Option::unwrap).collect();
    assert_eq!(&values, &["hello", "world", "a"]);
}

#[test]
fn binary_arrays() {
    let converter = RowConverter::new(vec![SortField::new(DataType::Utf8)]).unwrap();
    let array = StringArray::from(vec!["hello", "world", "a", "a", "hello"]);
    let rows = converter.convert_columns(&[Arc::new(array)]).unwrap();

    // We can convert rows into binary format and back in batch.
    let values: Vec<OwnedRow> = rows.iter().map(|r| r.owned()).collect();
    let binary = rows.try_into_binary().expect("known-small array");
    let converted = converter.from_binary(binary.clone());
    assert!(converted.iter().eq(values.iter().map(|r| r.row())));

    let parser = converter.parser();
    let parsed: Vec<OwnedRow> = binary.iter().flatten().map(|b| parser.parse(b).owned()).collect();
    assert_eq!(values, parsed);
}

#[test]
fn mistakes_are_the_errors_of_arrow() {
    let converter = RowConverter::new(vec![SortField::new(DataType::Utf8)]).unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let error = converter.convert_columns(&[numbers]).unwrap_err();
    assert!(matches!(error, ArrowError::InvalidArgumentError(_)), "{error}");
    let parser = converter.parser();
    let error = converter.convert_rows([parser.parse(&[9, 9])]).unwrap_err();
    assert!(matches!(error, ArrowError::ParseError(_)), "{error}");
}

#[test]
#[should_panic(expected = "rows were not produced by this RowConverter")]
fn rows_of_another_converter_are_refused() {
    let of = || RowConverter::new(vec![SortField::new(DataType::Int32)]).unwrap();
    let rows = of().convert_columns(&[Arc::new(Int32Array::from(vec![1])) as ArrayRef]).unwrap();
    let _columns = of().convert_rows(&rows);
}

/// The converters of both crates, for the same columns.
struct Both {
    ours: RowConverter,
    theirs: arrow_row::RowConverter,
}

impl Both {
    /// Creates both converters, or `None` if arrow-row does not support a type.
    fn of(columns: &[ArrayRef], options: &[SortOptions]) -> Option<Self> {
        let types = || columns.iter().map(|column| column.data_type().clone()).zip(options);
        let theirs = types().map(|(t, o)| arrow_row::SortField::new_with_options(t, *o));
        let theirs = arrow_row::RowConverter::new(theirs.collect()).ok()?;
        let ours: Vec<_> = types().map(|(t, o)| SortField::new_with_options(t, *o)).collect();
        assert!(RowConverter::supports_fields(&ours));
        Some(Self { ours: RowConverter::new(ours).unwrap(), theirs })
    }
}

/// Returns whether arrow-row preserves a type: it reads only unions numbered from 0 on, and renames
/// the fields of runs.
fn is_read_back(data_type: &DataType) -> bool {
    let text = data_type.to_string();
    !text.contains("Union") && !text.contains("RunEndEncoded")
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_columns_in_pieces(seed: u64, columns in 1usize..4, rows in 1usize..90, depth in 0usize..3) {
        let rng = &mut Rng::new(seed);
        let options: Vec<SortOptions> = (0..columns)
            .map(|_| SortOptions { descending: rng.flip(), nulls_first: rng.flip() })
            .collect();
        let columns: Vec<ArrayRef> = (0..columns)
            .map(|_| {
                let data_type = data_type(rng, depth);
                array_of(rng, &data_type, true, rows)
            })
            .collect();
        let Some(Both { ours, theirs }) = Both::of(&columns, &options) else { return Ok(()) };
        let expected = theirs.convert_columns(&columns).unwrap();
        let cut = rng.below(rows + 1);
        let mut found = ours.empty_rows(rows, 0);
        for (start, len) in [(0, cut), (cut, rows - cut)] {
            let piece: Vec<ArrayRef> = columns.iter().map(|c| c.slice(start, len)).collect();
            ours.append(&mut found, &piece).unwrap();
        }
        prop_assert_eq!(found.num_rows(), expected.num_rows());
        prop_assert!(found.lengths().eq(expected.lengths()));
        for (row, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(row.data(), expected.data());
        }
        let mut pushed = ours.empty_rows(0, 0);
        found.iter().rev().for_each(|row| pushed.push(row));
        prop_assert!(pushed.iter().rev().eq(found.iter()));
        let binary = pushed.try_into_binary().unwrap();
        let back = ours.from_binary(binary.slice(cut, rows - cut));
        prop_assert!(back.iter().rev().eq(found.iter().take(rows - cut)));

        // The columns have the types that arrow-row returns, and the same rows.
        if !columns.iter().all(|column| is_read_back(column.data_type())) {
            return Ok(());
        }
        let (got, expected) =
            (ours.convert_rows(&found).unwrap(), theirs.convert_rows(&expected).unwrap());
        for (got, expected) in got.iter().zip(&expected) {
            prop_assert_eq!(got.data_type(), expected.data_type());
        }
        let again = Both::of(&got, &options).unwrap();
        let (got, expected) = (
            again.ours.convert_columns(&got).unwrap(),
            again.theirs.convert_columns(&expected).unwrap(),
        );
        prop_assert!(got.iter().map(|row| row.data()).eq(expected.iter().map(|row| row.data())));
    }
}
