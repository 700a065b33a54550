//! Filters against the selected rows, and against statistics.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields};

use crate::error::ErrorKind;
use crate::input::Inputs;
use crate::input::options::ReadOptions;
use crate::input::options::filter::Filter;
use crate::input::source::expand::Source;
use crate::watch::Watch;

/// Returns ten rows: the row number `n`, and a column of each kind.
fn rows() -> RecordBatch {
    let nan = f64::NAN;
    let numbers = [Some(-1.5), Some(-0.0), Some(0.0), None, Some(nan), Some(-nan), Some(2.0)];
    let floats = numbers.into_iter().chain([Some(1e300), Some(f64::INFINITY), Some(-9.0)]);
    let words = ["a", "b", "O'Hara", "x y", "", "é", "and", "B", "null", "(z)"];
    let text = words.iter().enumerate().map(|(n, word)| (n != 8).then_some(*word));
    let codes: DictionaryArray<Int8Type> =
        ["nl", "de", "nl", "fr", "de", "nl", "be", "nl", "de", "be"].into_iter().collect();
    let days = Date32Array::from_iter_values((0..10).map(|n| 20_454 + n));
    let times = TimestampMicrosecondArray::from_iter_values((0..10).map(|n| n * 1_000_000));
    let money = Decimal128Array::from_iter_values((0..10).map(|n| n * 125));
    let money = money.with_precision_and_scale(10, 2).unwrap();
    let ids = Int64Array::from_iter((0..10).map(|n| (n % 3 != 0).then_some(n * 10)));
    let id = Field::new("id", DataType::Int64, true);
    let user = StructArray::new(Fields::from(vec![id]), vec![Arc::new(ids)], None);
    let flags = BooleanArray::from_iter((0..10).map(|n| (n != 5).then_some(n % 2 == 0)));
    let columns: [(&str, ArrayRef); 10] = [
        ("n", Arc::new(Int64Array::from_iter_values(0..10))),
        ("f", Arc::new(Float64Array::from_iter(floats))),
        ("text", Arc::new(StringArray::from_iter(text))),
        ("code", Arc::new(codes)),
        ("the day", Arc::new(days)),
        ("t", Arc::new(times)),
        ("money", Arc::new(money)),
        ("user", Arc::new(user)),
        ("flag", Arc::new(flags)),
        ("small", Arc::new(Int32Array::from_iter_values((0..10).map(|n| n - 5)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn kept(filter: &str) -> Vec<usize> {
    let rows = rows();
    let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{filter}: {error}"));
    let bound = filter.bind(rows.schema_ref()).unwrap_or_else(|error| panic!("{error}"));
    match bound.mask(&rows).unwrap() {
        Some(mask) => mask.set_indices().collect(),
        None => (0..rows.num_rows()).collect(),
    }
}

#[test]
fn rows_are_kept_as_in_sql() {
    let cases: [(&str, &[usize]); 64] = [
        ("n = 3", &[3]),
        ("n==3", &[3]),
        ("n != 3", &[0, 1, 2, 4, 5, 6, 7, 8, 9]),
        ("n <> 3 and n < 5", &[0, 1, 2, 4]),
        ("n >= 8", &[8, 9]),
        ("n>7 AND n<=8", &[8]),
        ("n < 0", &[]),
        ("n >= 0", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("small = -5", &[0]),
        ("small < -3 and small > -5", &[1]),
        ("n in (1, 2,99)", &[1, 2]),
        ("n in(7)", &[7]),
        ("n not in (0,1,2,3,4,5,6,7)", &[8, 9]),
        ("f = 0", &[1, 2]),
        ("f = -0.0", &[1, 2]),
        ("f < 0", &[0, 9]),
        ("f > 2", &[4, 5, 7, 8]),
        ("f = NaN", &[4, 5]),
        ("f != NaN and f > 1", &[6, 7, 8]),
        ("f > inf", &[4, 5]),
        ("f is null", &[3]),
        ("f is not null and n < 5", &[0, 1, 2, 4]),
        ("f in (0, 2)", &[1, 2, 6]),
        ("f not in (0, 2) and n < 5", &[0, 4]),
        ("text = a", &[0]),
        ("text = 'a'", &[0]),
        ("text = 'O''Hara'", &[2]),
        ("text = 'x y'", &[3]),
        ("text = ''", &[4]),
        ("text = é", &[5]),
        ("text = and", &[6]),
        ("text = 'and' and n = 6", &[6]),
        ("text = '(z)'", &[9]),
        ("text is null", &[8]),
        ("text > 'x'", &[3, 5]),
        ("code = nl", &[0, 2, 5, 7]),
        ("code > de and code < nl", &[3]),
        ("code in (be, fr)", &[3, 6, 9]),
        ("code not in (nl, de)", &[3, 6, 9]),
        ("\"the day\" = 2026-01-01", &[0]),
        ("t >= 1970-01-01T00:00:08", &[8, 9]),
        ("t = '1970-01-01 00:00:03'", &[3]),
        ("money = 1.25", &[1]),
        ("money < 2.505", &[0, 1, 2]),
        ("money <= 2.505", &[0, 1, 2]),
        ("money > 2.495", &[2, 3, 4, 5, 6, 7, 8, 9]),
        ("money >= 2.505", &[3, 4, 5, 6, 7, 8, 9]),
        ("money = 1.255", &[]),
        ("money != 1.255 and n < 2", &[0, 1]),
        ("money in (1.255, 2.5)", &[2]),
        ("money not in (1.255, 2.5) and n < 4", &[0, 1, 3]),
        ("money > -0.001", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("money < -0.001", &[]),
        ("money < 99999999999999999999999", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("money > 99999999999999999999999.5", &[]),
        ("n < 2.5", &[0, 1, 2]),
        ("n = 2.5", &[]),
        ("n > .5 and n < 3", &[1, 2]),
        ("small < -3.5", &[0, 1]),
        ("small > -4.5 and small < -2.5", &[1, 2]),
        ("small > -9999999999", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("small >= 9999999999", &[]),
        ("user.id > 40", &[5, 7, 8]),
        ("flag = true and user.id is null", &[0, 6]),
    ];
    for (filter, expected) in cases {
        assert_eq!(kept(filter), expected, "{filter}");
    }
}

#[test]
fn conditions_are_joined_as_in_sql() {
    let cases: [(&str, &[usize]); 22] = [
        ("n = 1 or n = 3", &[1, 3]),
        ("n = 1 or n = 3 and n = 4", &[1]),
        ("(n = 1 or n = 3) and n > 2", &[3]),
        ("n in (1, 2, 3) and not (n = 1 or n = 3)", &[2]),
        ("not n < 8", &[8, 9]),
        ("NOT NOT n >= 8", &[8, 9]),
        ("not (n > 1 and n < 8)", &[0, 1, 8, 9]),
        ("n between 2 and 4", &[2, 3, 4]),
        ("n between 2 and 4 and n != 3 or n = 9", &[2, 4, 9]),
        ("n not between 2 and 8.5", &[0, 1, 9]),
        ("not n not between 2 and 4", &[2, 3, 4]),
        ("money between 1.255 and 3.755", &[2, 3]),
        // A comparison with a null is neither true nor false.
        ("not text = 'a' and n > 6", &[7, 9]),
        ("not (flag = true)", &[1, 3, 7, 9]),
        ("not f > 0 and n < 5", &[0, 1, 2]),
        ("not f is null and n < 5", &[0, 1, 2, 4]),
        ("not n not in (1, 2)", &[1, 2]),
        ("text like 'a%'", &[0, 6]),
        ("text like '_'", &[0, 1, 5, 7]),
        ("text not like '%a%' and n < 6", &[1, 3, 4, 5]),
        ("not text like '%' or text is null", &[8]),
        ("code like 'n_' or code like '\\%%'", &[0, 2, 5, 7]),
    ];
    for (filter, expected) in cases {
        assert_eq!(kept(filter), expected, "{filter}");
    }
}

#[test]
fn what_is_no_filter_is_told() {
    for (filter, part) in [
        ("", "a condition is missing"),
        ("n", "nothing behind n"),
        ("n =", "a value is missing"),
        ("n = 1 n = 2", "`and` or `or` is expected"),
        ("n = 1 or", "a condition is missing"),
        ("n between 1 or 2", "goes on with A and B"),
        ("n not = 1", "none of"),
        ("n not is null", "none of"),
        ("(n = 1", "without its end"),
        ("(n = 1 n = 2)", "without its end, `)`"),
        ("n = 1)", "`or` is expected"),
        ("n ! 1", "write !="),
        ("n is 1", "null or not null"),
        ("n is not 1", "null or not null"),
        ("n in 1", "values in brackets"),
        ("n in (1", "values in brackets"),
        ("n in ()", "where a value is expected"),
        ("n = 'a", "without its end"),
        ("\"n = 1", "without its end"),
        ("= 1", "where a column is expected"),
        ("n = \"1\"", "single quotes"),
        ("the day = 1", "double quotes"),
        ("n = 1 and", "a condition is missing"),
    ] {
        let error = filter.parse::<Filter>().expect_err(filter);
        assert_eq!(error.kind(), ErrorKind::Usage, "{filter}");
        assert!(error.to_string().contains(part), "{filter}: {error}");
    }
    for (filter, part) in [
        ("nope = 1", "no column named"),
        ("user.nope = 1", "no column named"),
        ("n = x", "no value of column"),
        ("n = 1.5.5", "no value of column"),
        ("n < .", "no value of column"),
        ("n = ''", "no value of column"),
        ("money = 1.25x", "no value of column"),
        ("\"the day\" = yesterday", "no value of column"),
        ("user = 1", "no value of column"),
        ("flag = maybe", "no value of column"),
        ("n like '1%'", "`like` takes text"),
        (&format!("text like '{}'", "%_".repeat(50_000)), "is too long"),
    ] {
        let bound = filter.parse::<Filter>().unwrap().bind(rows().schema_ref());
        let error = bound.err().unwrap_or_else(|| panic!("{filter}"));
        assert_eq!(error.kind(), ErrorKind::Usage, "{filter}");
        assert!(error.to_string().contains(part), "{filter}: {error}");
    }
}

/// Returns the number of row groups read from [`rows`], in groups of two, and the selected rows.
fn read(filter: &str) -> (usize, Vec<i64>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows().schema(), Some(properties)).unwrap();
    writer.write(&rows()).unwrap();
    writer.close().unwrap();
    let options = ReadOptions::default().filter(filter.parse().unwrap());
    let inputs = Inputs::open(&[Source::File(path)], &options).unwrap();
    let mut found = Vec::new();
    for unit in &inputs.units {
        for batch in unit.read(&Watch::default()).unwrap() {
            let (batch, _) = inputs.selected(batch.unwrap()).unwrap();
            found.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        }
    }
    (inputs.units.len(), found)
}

#[test]
fn row_groups_without_such_rows_are_not_read() {
    for (filter, groups) in [
        ("n = 3", 1),
        ("n < 4", 2),
        ("n <= 4", 3),
        ("n > 9", 0),
        ("n >= 9", 1),
        ("n in (0, 9)", 2),
        ("n != 3", 5),
        ("n not in (1)", 5),
        ("n is null", 0),
        ("n is not null", 5),
        ("n > 1 and n < 6", 2),
        // Bounds exclude NaN, the greatest value, so any group may have one.
        ("f > 1e301", 5),
        // A group with only NaN has no bounds.
        ("f < -1", 3),
        ("f = 0", 4),
        ("f is null", 1),
        ("text = x", 2),
        ("text is null", 1),
        ("code = fr", 4),
        ("code < c", 2),
        ("\"the day\" > 2026-01-08", 1),
        ("t < 1970-01-01T00:00:01", 1),
        ("money = 1.25", 1),
        // Members of structs are not pruned.
        ("user.id = 10", 5),
        ("flag = true", 5),
        ("n = 0 or n = 9", 2),
        ("n = 0 or user.id = 10", 5),
        ("n < 2 and (n = 0 or user.id = 10)", 1),
        ("not (n < 2 or n > 3)", 1),
        ("n between 3 and 4", 2),
        ("code is null or n = 9", 1),
    ] {
        let (read, rows) = read(filter);
        let expected: Vec<i64> = kept(filter).into_iter().map(|row| row as i64).collect();
        assert_eq!(rows, expected, "{filter}");
        assert!(read <= groups, "{filter}: {read} row groups");
        assert!(read > 0 || expected.is_empty(), "{filter}");
        if !filter.starts_with("text") {
            assert_eq!(read, groups, "{filter}");
        }
    }
}

#[test]
fn brackets_are_bounded_and_long_filters_are_not() {
    let deep = |count| format!("{}n = 3{}", "(".repeat(count), ")".repeat(count));
    assert_eq!(kept(&deep(100)), [3]);
    assert!(deep(101).parse::<Filter>().is_err_and(|error| error.to_string().contains("brackets")));
    assert!("not ".repeat(100_000).parse::<Filter>().is_err());
    let many: Vec<String> = (0..20_000).map(|n| format!("n = {}", n % 2)).collect();
    assert_eq!(kept(&many.join(" or ")), [0, 1]);
}
