//! Rows compared byte for byte with arrow-row, for every type and option, in both directions.

use arrow_array::{Array, ArrayRef};
use arrow_row::RowConverter;
use arrow_schema::{DataType, SortOptions};
use proptest::prelude::*;

use super::super::tests::arrays::{self, Rng};
use super::super::tests::{model, tables};
use super::field::corrupt;
use super::{Converter, SortField};
use crate::error::{Error, Result};
use crate::order::code::Node as Tree;
use crate::rows::nested::Form;
use crate::rows::row_ref::Rest;
use crate::rows::value;

/// Draws fields for `columns`, and makes arrow-row's converter if it supports all types.
fn converters(rng: &mut Rng, columns: &[ArrayRef]) -> Option<(Converter, RowConverter)> {
    let fields: Vec<SortField> = columns
        .iter()
        .map(|column| {
            let options = SortOptions { descending: rng.flip(), nulls_first: rng.flip() };
            SortField::new_with_options(column.data_type().clone(), options)
        })
        .collect();
    let theirs = fields
        .iter()
        .map(|f| arrow_row::SortField::new_with_options(f.data_type.clone(), f.options))
        .collect();
    // arrow-row does not support some types inside others.
    let theirs = RowConverter::new(theirs).ok()?;
    Some((Converter::new(fields).unwrap(), theirs))
}

fn check(rng: &mut Rng, columns: &[ArrayRef]) {
    let Some((converter, theirs)) = converters(rng, columns) else { return };
    let theirs = theirs.convert_columns(columns).unwrap();
    let ours = converter.encode(columns).unwrap();
    assert_eq!(ours.len(), theirs.num_rows());
    for (row, expected) in theirs.iter().enumerate() {
        assert_eq!(ours.row(row), expected.data(), "row {row} of {columns:?}");
    }
    let back = converter.decode(&ours, 0..ours.len()).unwrap();
    same(columns, &back);
    damaged(rng, &converter, &ours.iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
}

fn same(columns: &[ArrayRef], found: &[ArrayRef]) {
    assert_eq!(columns.len(), found.len());
    for (column, found) in columns.iter().zip(found) {
        assert_eq!(found.data_type(), column.data_type());
        assert_eq!(found.len(), column.len());
        found.to_data().validate_full().unwrap();
        for row in 0..column.len() {
            let (got, expected) = (model::value(found, row), model::value(column, row));
            assert_eq!(got, expected, "row {row} of {column:?}");
        }
    }
}

/// Decodes `rows` value by value: slow, and plain to see.
fn one_by_one(converter: &Converter, rows: &[&[u8]]) -> Result<Vec<ArrayRef>> {
    let mut readers = Vec::new();
    for (field, _) in &converter.fields {
        readers.push((value::reader(&field.data_type)?, Tree::of(&field.data_type).unwrap()));
    }
    let mut bytes = Vec::new();
    for mut row in rows.iter().copied() {
        for ((field, node), (reader, tree)) in converter.fields.iter().zip(&mut readers) {
            bytes.clear();
            node.read(&mut row, field.options, &mut bytes)?;
            let code = &mut Rest { bytes: &bytes, cursors: &mut [0], ends: &[bytes.len()] };
            reader.read_codes(tree, Form::STORED, code)?;
        }
        if !row.is_empty() {
            return Err(corrupt("a row does not end where its columns do"));
        }
    }
    readers.iter_mut().map(|(reader, _)| reader.finish()).collect()
}

/// Checks many rows, ours and arrow-row's, in place, elsewhere, and in part; also with a damaged
/// row.
fn check_many(rng: &mut Rng, columns: &[ArrayRef]) {
    let Some((converter, theirs)) = converters(rng, columns) else { return };
    let theirs = theirs.convert_columns(columns).unwrap();
    let ours = converter.encode(columns).unwrap();
    let rows = ours.len();
    let anywhere = converter.decode_rows(theirs.iter().map(|row| row.data())).unwrap();
    same(columns, &anywhere);
    let start = rng.below(rows + 1);
    let end = start + rng.below(rows - start + 1);
    let cut: Vec<ArrayRef> = columns.iter().map(|c| c.slice(start, end - start)).collect();
    for (range, columns) in [(0..rows, columns), (start..end, &cut[..])] {
        same(columns, &converter.decode(&ours, range.clone()).unwrap());
        let pieces: Vec<Vec<u8>> = range.map(|row| ours.row(row).to_vec()).collect();
        same(columns, &converter.decode_rows(pieces.iter().map(|row| &row[..])).unwrap());
    }
    for _ in 0..8 {
        let mut rows: Vec<Vec<u8>> = ours.iter().map(<[u8]>::to_vec).collect();
        let at = rng.below(rows.len());
        damage(rng, &mut rows[at]);
        let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
        let (found, expected) =
            (converter.decode_rows(rows.iter().copied()), one_by_one(&converter, &rows));
        match (found, expected) {
            (Ok(found), Ok(expected)) => same(&expected, &found),
            (Err(Error::Corrupt { .. }), Err(Error::Corrupt { .. })) => {}
            // A null struct whose fields are not null.
            (Err(Error::Corrupt { .. }), Ok(_)) => {
                let types = converter.fields.iter().map(|(field, _)| field.data_type.to_string());
                assert!(types.into_iter().any(|name| name.contains("Struct")));
            }
            (found, expected) => panic!("{found:?} in place of {expected:?}"),
        }
    }
}

fn damage(rng: &mut Rng, row: &mut Vec<u8>) {
    match rng.below(3) {
        0 => row.truncate(rng.below(row.len() + 1)),
        1 => row.push(rng.next() as u8),
        _ if row.is_empty() => {}
        _ => {
            let at = rng.below(row.len());
            row[at] = [0, 1, 2, 0xff, rng.next() as u8][rng.below(5)];
        }
    }
}

/// Checks that damaged rows are errors, or other values.
fn damaged(rng: &mut Rng, converter: &Converter, rows: &[Vec<u8>]) {
    for row in rows.iter().take(10) {
        let mut row = row.clone();
        damage(rng, &mut row);
        match converter.decode_rows([&row[..]]) {
            Ok(columns) => columns.iter().for_each(|c| c.to_data().validate_full().unwrap()),
            Err(Error::Corrupt { .. } | Error::Arrow(_) | Error::Value { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Returns a column of `rows` rows, sliced from a longer array.
fn slice_of(rng: &mut Rng, data_type: &DataType, rows: usize) -> ArrayRef {
    let front = rng.below(9);
    arrays::array_of(rng, data_type, true, front + rows).slice(front, rows)
}

#[test]
fn every_plain_type() {
    let rng = &mut Rng::new(1);
    for data_type in tables::plain_types() {
        for _ in 0..20 {
            let column = tables::key_array(rng, &data_type, true, 60, 40).slice(rng.below(9), 50);
            check(rng, &[column]);
        }
    }
}

#[test]
fn tiles_of_every_plain_type() {
    let rng = &mut Rng::new(2);
    for data_type in tables::plain_types() {
        for _ in 0..3 {
            let rows = 1000 + rng.below(1500);
            let column = tables::key_array(rng, &data_type, true, rows + 9, rows);
            let column = column.slice(rng.below(9), rows);
            check_many(rng, &[column]);
        }
    }
}

#[test]
fn rows_of_no_columns_and_columns_of_no_rows() {
    let none = Converter::new(vec![]).unwrap();
    assert!(none.decode_rows([&[][..], &[]]).unwrap().is_empty());
    assert!(matches!(none.decode_rows([&[0][..]]), Err(Error::Corrupt { .. })));
    let types = [DataType::Int64, DataType::Utf8, DataType::Boolean, DataType::Null];
    let converter = Converter::new(types.clone().map(SortField::new).into()).unwrap();
    let columns = converter.decode_rows([]).unwrap();
    assert!(columns.iter().zip(&types).all(|(c, t)| c.is_empty() && c.data_type() == t));
}

#[test]
fn what_a_null_stands_in_front_of_is_not_looked_at() {
    let types = [DataType::Int64, DataType::Boolean, DataType::Int8, DataType::Decimal128(9, 2)];
    let converter = Converter::new(types.map(SortField::new).into()).unwrap();
    let row: Vec<u8> =
        [9, 2, 2, 17].iter().flat_map(|&len| [vec![0], vec![7; len - 1]].concat()).collect();
    let rows = vec![&row[..]; 300];
    for column in converter.decode_rows(rows).unwrap() {
        assert_eq!(column.null_count(), 300);
        assert!(column.to_data().buffers()[0].iter().all(|&byte| byte == 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn tiles_of_any_columns(seed: u64, columns in 1usize..9, rows in 200usize..1300, depth in 0usize..3) {
        let rng = &mut Rng::new(seed);
        let columns: Vec<ArrayRef> = (0..columns)
            .map(|_| {
                let data_type = match rng.below(4) {
                    0 => arrays::data_type(rng, depth),
                    _ => {
                        let plain: Vec<DataType> = tables::plain_types();
                        plain[rng.below(plain.len())].clone()
                    }
                };
                slice_of(rng, &data_type, rows)
            })
            .collect();
        check_many(rng, &columns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_columns(seed: u64, columns in 1usize..4, rows in 1usize..80, depth in 0usize..4) {
        let rng = &mut Rng::new(seed);
        let columns: Vec<ArrayRef> = (0..columns)
            .map(|_| {
                let data_type = arrays::data_type(rng, depth);
                slice_of(rng, &data_type, rows)
            })
            .collect();
        check(rng, &columns);
    }
}
