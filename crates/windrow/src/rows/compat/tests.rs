//! Byte for byte against arrow-row itself, for every type and option; and back.

use arrow_array::{Array, ArrayRef};
use arrow_row::RowConverter;
use arrow_schema::SortOptions;
use proptest::prelude::*;

use super::super::tests::arrays::{self, Rng};
use super::super::tests::{model, tables};
use super::{Converter, SortField};
use crate::error::Error;

fn check(rng: &mut Rng, columns: &[ArrayRef]) {
    let fields: Vec<SortField> = columns
        .iter()
        .map(|column| SortField {
            data_type: column.data_type().clone(),
            options: SortOptions { descending: rng.flip(), nulls_first: rng.flip() },
        })
        .collect();
    let theirs = fields
        .iter()
        .map(|f| arrow_row::SortField::new_with_options(f.data_type.clone(), f.options))
        .collect();
    // Some types inside of others it has no rows for.
    let Ok(theirs) = RowConverter::new(theirs) else { return };
    let theirs = theirs.convert_columns(columns).unwrap();
    let converter = Converter::new(fields).unwrap();
    let ours = converter.encode(columns).unwrap();
    assert_eq!(ours.len(), theirs.num_rows());
    for (row, expected) in theirs.iter().enumerate() {
        assert_eq!(ours.row(row), expected.data(), "row {row} of {columns:?}");
    }
    let back = converter.decode(&ours, 0..ours.len()).unwrap();
    for (column, back) in columns.iter().zip(&back) {
        assert_eq!(back.data_type(), column.data_type());
        for row in 0..column.len() {
            let (got, expected) = (model::value(back, row), model::value(column, row));
            assert_eq!(got, expected, "row {row} of {column:?}");
        }
    }
    damaged(rng, &converter, &ours.iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
}

/// Rows that nobody wrote are errors, or other values.
fn damaged(rng: &mut Rng, converter: &Converter, rows: &[Vec<u8>]) {
    for row in rows.iter().take(10) {
        let mut row = row.clone();
        match rng.below(3) {
            0 => row.truncate(rng.below(row.len() + 1)),
            1 => row.push(rng.next() as u8),
            _ if row.is_empty() => {}
            _ => {
                let at = rng.below(row.len());
                row[at] = [0, 1, 2, 0xff, rng.next() as u8][rng.below(5)];
            }
        }
        match converter.decode_rows([&row[..]]) {
            Ok(columns) => columns.iter().for_each(|c| c.to_data().validate_full().unwrap()),
            Err(Error::Corrupt { .. } | Error::Arrow(_) | Error::Value { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_columns(seed: u64, columns in 1usize..4, rows in 1usize..80, depth in 0usize..4) {
        let rng = &mut Rng::new(seed);
        let columns: Vec<ArrayRef> = (0..columns)
            .map(|_| {
                let data_type = arrays::data_type(rng, depth);
                let front = rng.below(9);
                arrays::array_of(rng, &data_type, true, front + rows).slice(front, rows)
            })
            .collect();
        check(rng, &columns);
    }
}
