//! Values kept whole, and refused values.

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, Int64Array};
use arrow_schema::TimeUnit;

use arrow_cast::{CastOptions, cast_with_options};

use super::*;

fn one(value: &str, kind: &DataType, numbers: bool) -> Result<ArrayRef, Fault> {
    let writing = if numbers { Writing::Json } else { Writing::Csv };
    read(value, kind, Reading::of(writing))
}

fn read(value: &str, kind: &DataType, reading: Reading) -> Result<ArrayRef, Fault> {
    values(&StringArray::from(vec![Some(value), None]), kind, reading)
}

#[test]
fn decimals_are_kept_whole_or_refused() {
    let kind = DataType::Decimal128(5, 2);
    for (text, unscaled) in [
        ("1.25", 125),
        ("-1.250", -125),
        ("+.5", 50),
        ("7.", 700),
        ("0.00", 0),
        ("-0", 0),
        ("00012", 1200),
        ("1.25e1", 1250),
        ("12500e-4", 125),
        ("999.99", 99_999),
        ("0e99999999", 0),
    ] {
        let parsed = one(text, &kind, false).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let parsed = parsed.as_primitive::<Decimal128Type>();
        assert_eq!((parsed.value(0), parsed.is_null(1)), (unscaled, true), "{text}");
    }
    for (text, why) in [
        ("1.255", "3 digits behind the point"),
        ("1e-3", "3 digits behind the point"),
        ("1000", "more digits than"),
        ("1e2147483647", "more digits than"),
        ("", "no value"),
        (".", "no value"),
        ("1.2.3", "no value"),
        ("1e", "no value"),
        ("--1", "no value"),
        ("1,5", "no value"),
    ] {
        let fault = one(text, &kind, false).unwrap_err();
        assert!(fault.contains(why) && fault.contains(text), "{text}: {fault}");
    }
    let wide = DataType::Decimal256(76, 0);
    let most = "9".repeat(76);
    let parsed = one(&most, &wide, false).unwrap();
    assert_eq!(parsed.as_primitive::<Decimal256Type>().value(0).to_string(), most);
    assert!(one(&"9".repeat(77), &wide, false).is_err());
}

#[test]
fn integers_are_floats_or_refused() {
    for (text, number) in [
        ("9007199254740992", 9_007_199_254_740_992.0),
        ("-9007199254740994", -9_007_199_254_740_994.0),
        ("000000000000000001", 1.0),
        ("00000000000000000000", 0.0),
        ("123456789012345680000", 123_456_789_012_345_680_000.0),
        ("1180591620717411303424", 2_f64.powi(70)),
        ("0.1234567890123456789", 0.123_456_789_012_345_68),
        ("12345678901234567890e0", 12_345_678_901_234_567_890_f64),
    ] {
        let parsed = one(text, &DataType::Float64, true);
        let parsed = parsed.unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(parsed.as_primitive::<Float64Type>().value(0), number, "{text}");
    }
    let single = one("16777216", &DataType::Float32, false).unwrap();
    assert_eq!(single.as_primitive::<Float32Type>().value(0), 16_777_216.0);
    for (text, kind) in [
        ("9007199254740993", DataType::Float64),
        ("-123456789012345678901234567890", DataType::Float64),
        ("99999999999999999999", DataType::Float64),
        ("16777217", DataType::Float32),
        ("2049", DataType::Float16),
    ] {
        let fault = one(text, &kind, false).unwrap_err();
        assert!(fault.contains("more digits than") && fault.contains(text), "{text}: {fault}");
    }
}

#[test]
fn times_are_kept_whole_or_refused() {
    let stamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    let us = stamp(TimeUnit::Microsecond, None);
    let utc = stamp(TimeUnit::Microsecond, Some("UTC"));
    let ns = stamp(TimeUnit::Nanosecond, None);
    let value = |text: &str, kind: &DataType| {
        let parsed = one(text, kind, false);
        parsed.map(|parsed| cast_with_options(&parsed, &DataType::Int64, &CastOptions::default()))
    };
    let hour = 3_600_000_000;
    for (text, kind, expected) in [
        ("1970-01-01T01:00:00", &us, hour),
        ("1970-01-01 00:00:00.000001000", &us, 1),
        ("1970-01-01T01:00:00+02:00", &utc, -hour),
        ("1970-01-01T00:00:00Z", &utc, 0),
        ("1970-01-01T00:00:00", &utc, 0),
        ("1970-01-01 00:00:00", &DataType::Date64, 0),
    ] {
        let parsed = value(text, kind).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let parsed = parsed.unwrap();
        assert_eq!(parsed.as_primitive::<Int64Type>().value(0), expected);
    }
    for (text, kind, why) in [
        ("1970-01-01T01:00:00+02:00", &us, "offset"),
        ("1970-01-01T01:00:00 Z", &us, "offset"),
        ("1970-01-01T01:00:00.0000001", &us, "7 digits"),
        ("1600-01-01T00:00:00", &ns, "out of the range of nanoseconds"),
        ("1970-01-01 10:00:00", &DataType::Date32, "time of day"),
        ("1970-13-01", &DataType::Date32, "no value"),
        ("10:00:00.5", &DataType::Time32(TimeUnit::Second), "1 digits"),
        ("17", &us, "no value"),
    ] {
        let fault = one(text, kind, false).unwrap_err();
        assert!(fault.contains(why) && fault.contains(text), "{text}: {fault}");
    }
    assert_eq!(
        one("17", &us, true).unwrap().as_primitive::<TimestampMicrosecondType>().value(0),
        17
    );
    let days = one("1970-01-02 00:00:00", &DataType::Date32, false).unwrap();
    assert_eq!(days.as_primitive::<Date32Type>().value(0), 1);
}

#[test]
fn one_value_is_not_rounded() {
    let second = DataType::Timestamp(TimeUnit::Second, None);
    for (text, kind) in [
        ("1.006", &DataType::Decimal128(10, 2)),
        ("-1.004", &DataType::Decimal64(10, 2)),
        ("1.5", &DataType::Int32),
        ("9007199254740993", &DataType::Float64),
        ("1970-01-01T00:00:00.5", &second),
        ("1970-01-02T05:00:00", &DataType::Date32),
    ] {
        assert!(one_value(text, kind).is_err(), "{text} as {kind}");
    }
    for (text, kind) in [
        ("1.00", &DataType::Decimal32(9, 2)),
        ("007", &DataType::Int8),
        ("1970-01-01T00:00:05", &second),
        ("1970-01-02", &DataType::Date32),
        ("x", &DataType::Utf8View),
    ] {
        let value = one_value(text, kind).expect(text);
        assert_eq!((value.data_type(), value.len(), value.null_count()), (kind, 1, 0));
    }
}

#[test]
fn values_are_widened_whole_or_refused() {
    let text = |text: &str| Arc::new(StringArray::from(vec![None, Some(text)])) as ArrayRef;
    let whole = |number: i64| Arc::new(Int64Array::from(vec![None, Some(number)])) as ArrayRef;
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    for (values, kind) in [
        (whole((1 << 53) + 1), &DataType::Float64),
        (text("007"), &DataType::Int64),
        (text("-00.5"), &DataType::Float64),
        (text("yes"), &DataType::Boolean),
        (text("9007199254740993"), &DataType::Float64),
        (text("x"), &list),
    ] {
        assert!(widened(&values, kind).is_err(), "{values:?} as {kind}");
    }
    for (values, kind) in [
        (whole(1 << 53), &DataType::Float64),
        (text("-7"), &DataType::Int64),
        (text("0.50"), &DataType::Float64),
        (text("true"), &DataType::Boolean),
    ] {
        let wide = widened(&values, kind).expect("a value of the type");
        assert_eq!((wide.data_type(), wide.null_count()), (kind, 1));
    }
}

#[test]
fn values_that_an_inferred_type_is_not_for() {
    let csv = Reading { guessed: true, ..Reading::of(Writing::Csv) };
    let json = Reading { guessed: true, ..Reading::of(Writing::Json) };
    let us = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let (whole, wide) = (DataType::Int64, DataType::Decimal128(38, 0));
    let fits = |reading, kind: &DataType, values: &[&str]| {
        for value in values {
            read(value, kind, reading).unwrap_or_else(|fault| panic!("{value} as {kind}: {fault}"));
        }
    };
    let is_strange = |reading: Reading, kind: &DataType, values: &[&str]| {
        for value in values {
            let fault = read(value, kind, reading).expect_err(value);
            assert!(fault.contains(&format!("{value:?}")), "{value} as {kind}: {fault}");
            // A type named by the user accepts the value.
            read(value, kind, Reading { guessed: false, ..reading })
                .unwrap_or_else(|fault| panic!("{value} as {kind}: {fault}"));
        }
    };
    fits(csv, &whole, &["0", "-0", "7", "-12", "9223372036854775807", "-9223372036854775808"]);
    is_strange(csv, &whole, &["02139", "-007", "00", "+5", " 12", "12 "]);
    is_strange(csv, &DataType::UInt64, &["02139", "+5", " 12"]);
    is_strange(csv, &wide, &["02139", "+5", "1.0", "1e3"]);
    is_strange(csv, &DataType::Decimal64(9, 2), &["02139", "+5", "00.5"]);
    fits(csv, &DataType::Decimal64(9, 2), &["1.50", ".5", "5e1"]);
    fits(
        csv,
        &DataType::Float64,
        &["0", "-0", "0.5", ".5", "5.", "1e3", "-1.10", "1E+3", "123456789012345680"],
    );
    fits(csv, &DataType::Float64, &["NaN", "nan", "inf", "-inf", "0.30000000000000004"]);
    // Digits of a float's exact value, any number of digits.
    fits(
        csv,
        &DataType::Float64,
        &["0.1000000000000000055511151231257827", "1.50000000000000000000"],
    );
    is_strange(
        csv,
        &DataType::Float64,
        &["0.12345678901234567890123", "12345678901234567.87", "1.2345678901234567891e5"],
    );
    is_strange(json, &DataType::Float64, &["12345678901234567.87"]);
    is_strange(
        csv,
        &DataType::Float64,
        &["007", "00.5", "-01e1", "+.5", " 1", "1 ", "Infinity", "NAN"],
    );
    is_strange(csv, &DataType::Float64, &["1180591620717411303424"]);
    fits(csv, &DataType::Date32, &["2026-01-31"]);
    is_strange(
        csv,
        &DataType::Date32,
        &["20260131", "2026-1-31", "+2026-01-31", "2026-01-31 00:00:00"],
    );
    fits(csv, &us(None), &["2026-01-31", "2026-01-31 12:00:00", "2026-01-31T12:00:00.123456"]);
    is_strange(
        csv,
        &us(None),
        &["2026-01-31t12:00:00", "2026-01-31 120000", "2026-01-31T12:00:00.1234560000"],
    );
    fits(csv, &us(Some("UTC")), &["2026-01-31T12:00:00Z", "2026-01-31 12:00:00.5+02:00"]);
    is_strange(csv, &us(Some("UTC")), &["2026-01-31T12:00:00", "2026-01-31"]);

    is_strange(csv, &DataType::Time32(TimeUnit::Second), &["5"]);

    fits(json, &whole, &["0", "7", "-12"]);
    is_strange(json, &whole, &["-0", "02139", "+5", " 12"]);
    is_strange(json, &wide, &["1.0", "1e3", "-0"]);
    fits(json, &DataType::Float64, &["-0", "0.5", "1e3", "1180591620717411303424"]);
    is_strange(json, &DataType::Float64, &["00.5", ".5", "5.", "NaN", "inf", "1.e5", "+1"]);
    is_strange(json, &us(None), &["17"]);
}

#[test]
fn what_parsers_pass_over_is_refused() {
    let us = DataType::Timestamp(TimeUnit::Microsecond, None);
    for (text, kind, why) in [
        ("1e400", DataType::Float64, "larger"),
        ("-1e39", DataType::Float32, "larger"),
        ("65520.5", DataType::Float16, "larger"),
        ("2026-01-2x", DataType::Date32, "no value"),
        ("2026-1-2--", DataType::Date32, "no value"),
        ("2026-01-2 ", DataType::Date64, "no value"),
        ("2016-12-31T23:59:60", us, "leap second"),
        ("23:59:60.5", DataType::Time64(TimeUnit::Microsecond), "leap second"),
        ("86400", DataType::Time32(TimeUnit::Second), "no time of a day"),
        ("-1", DataType::Time64(TimeUnit::Nanosecond), "no time of a day"),
    ] {
        let fault = one(text, &kind, false).expect_err(text);
        assert!(fault.contains(why) && fault.contains(text), "{text}: {fault}");
    }
    for (text, kind) in [
        ("inf", DataType::Float64),
        ("1e-400", DataType::Float64),
        ("20260131", DataType::Date32),
        ("-0044-03-15", DataType::Date32),
        ("23:59:59", DataType::Time32(TimeUnit::Second)),
        ("86399999", DataType::Time32(TimeUnit::Millisecond)),
    ] {
        one(text, &kind, false).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    }
    // In JSON a number may count days.
    for kind in [DataType::Date32, DataType::Date64] {
        assert!(one("20260131", &kind, true).unwrap_err().contains("may be a date"));
        assert!(one("20484", &kind, true).is_ok());
    }
}

#[test]
fn parts_of_nested_columns_are_parsed_too() {
    let number = |name: &str| Arc::new(Field::new(name, DataType::Int64, true));
    let entry: Fields =
        vec![Field::new("key", DataType::Utf8, false), number("value").as_ref().clone()].into();
    let entries = Arc::new(Field::new("entries", DataType::Struct(entry), false));
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let kinds = [
        ("[5, 6]", "[5, 1.5]", "'c'", DataType::FixedSizeList(number("item"), 2)),
        ("[5]", "[1.5]", "'c'", DataType::LargeList(number("item"))),
        ("[5]", "[1.5]", "'c'", DataType::ListView(number("item"))),
        ("5", "1.5", "'c'", DataType::Duration(TimeUnit::Second)),
        ("5", "1.5", "'c'", DataType::RunEndEncoded(ends, number("values"))),
        ("{\"k\": 5}", "{\"k\": 1.5}", "'c.value'", DataType::Map(entries, false)),
        ("{\"k\": 5}", "{\"k\": 1.5}", "'c.k'", DataType::Struct(vec![number("k")].into())),
    ];
    for (good, bad, path, kind) in kinds {
        let schema = Arc::new(Schema::new(vec![Field::new("c", kind, true)]));
        let exact = Exact::of_json(&schema, NamedTypes::default());
        let decode = |text: &str| {
            let decoder = arrow_json::ReaderBuilder::new(exact.text.clone());
            let mut decoder = decoder.with_coerce_primitive(true).build_decoder().unwrap();
            decoder.decode(format!("{{\"c\": {text}}}\n{{\"c\": null}}\n").as_bytes()).unwrap();
            exact.parse(decoder.flush().unwrap().unwrap())
        };
        assert_eq!(decode(good).unwrap().schema(), schema);
        let fault = decode(bad).unwrap_err().to_string();
        assert!(fault.contains(path) && fault.contains("1.5"), "{fault}");
    }
}
