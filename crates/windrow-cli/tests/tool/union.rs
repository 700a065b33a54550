//! Inputs with different columns: `--union-by-name` unites the columns; without the option, all
//! inputs must have the columns of the first.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, Float32Array, Int8Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType as D, Field, TimeUnit};

use crate::common::{Work, read_parquet, write_arrow, write_parquet};

fn numbers(values: &[i64], kind: &D) -> ArrayRef {
    cast(&Int64Array::from(values.to_vec()), kind).expect("a cast of small numbers")
}

/// Writes a file for each column: `in/0.parquet` ..., with a number in `k` and the column as `v`.
fn files(work: &Work, columns: &[ArrayRef]) -> String {
    let mut line = String::new();
    let mut first = 0;
    for (at, column) in columns.iter().enumerate() {
        let ids = Int64Array::from_iter_values(first..first + column.len() as i64);
        first += column.len() as i64;
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("k", Arc::new(ids) as ArrayRef, false),
            ("v", Arc::clone(column), true),
        ]);
        write_parquet(&work.path(&format!("in/{at}.parquet")), &batch.expect("columns"));
        line += &format!("in/{at}.parquet ");
    }
    line
}

fn ts(unit: TimeUnit, zone: Option<&str>) -> D {
    D::Timestamp(unit, zone.map(Into::into))
}

#[test]
fn types_that_hold_both_are_found() {
    use TimeUnit::{Microsecond as Us, Millisecond as Ms, Nanosecond as Ns, Second as S};
    let utc = Some("UTC");
    for (one, other, expected) in [
        (D::Int32, D::Int64, Some(D::Int64)),
        (D::Int8, D::Int16, Some(D::Int16)),
        (D::Int64, D::Int8, Some(D::Int64)),
        (D::UInt8, D::Int32, Some(D::Int32)),
        (D::UInt32, D::Int32, Some(D::Int64)),
        (D::UInt64, D::Int64, Some(D::Decimal128(20, 0))),
        (D::UInt8, D::UInt64, Some(D::UInt64)),
        (D::Float32, D::Float64, Some(D::Float64)),
        (D::Float64, D::Float32, Some(D::Float64)),
        (D::Int32, D::Float64, Some(D::Float64)),
        (D::Float32, D::Int16, Some(D::Float64)),
        (D::Int64, D::Float64, Some(D::Float64)),
        (D::Float64, D::Int64, Some(D::Float64)),
        (D::UInt64, D::Float32, Some(D::Float64)),
        (D::Date32, D::Date64, Some(D::Date32)),
        (D::Decimal128(10, 2), D::Decimal128(20, 2), Some(D::Decimal128(20, 2))),
        (D::Decimal128(10, 2), D::Decimal128(10, 4), Some(D::Decimal128(12, 4))),
        (D::Int32, D::Decimal128(10, 2), Some(D::Decimal128(12, 2))),
        (D::Decimal128(38, 0), D::Decimal128(10, 2), Some(D::Decimal256(40, 2))),
        (ts(Us, None), ts(Ns, None), Some(ts(Ns, None))),
        (ts(Ms, None), ts(Us, None), Some(ts(Us, None))),
        (ts(Us, utc), ts(Ms, utc), Some(ts(Us, utc))),
        (ts(Us, None), ts(Us, utc), None),
        (ts(Us, None), D::Int64, None),
        (D::Date32, ts(Us, None), None),
        (D::Boolean, D::Int8, None),
        (D::Utf8, D::Int64, None),
        (D::Utf8, D::LargeUtf8, Some(D::Utf8)),
        (D::Utf8View, D::Utf8, Some(D::Utf8View)),
        (D::Utf8, D::Binary, Some(D::Utf8)),
        (D::Binary, D::Utf8, Some(D::Utf8)),
        (D::Null, D::Int64, Some(D::Int64)),
        (D::Dictionary(Box::new(D::Int8), Box::new(D::Utf8)), D::Utf8, Some(D::Utf8)),
        (D::Time32(S), D::Time32(Ms), Some(D::Time32(Ms))),
    ] {
        let work = Work::new();
        let column = |values: &[i64], kind: &D| match kind {
            D::Date64 => {
                let days = cast(&numbers(values, &D::Int32), &D::Date32).expect("days");
                cast(&days, kind).expect("days")
            }
            D::Null => arrow_array::new_null_array(kind, values.len()),
            D::Dictionary(..) | D::Binary => {
                let text = cast(&numbers(values, &D::Int64), &D::Utf8).expect("text");
                cast(&text, kind).expect("a cast of text")
            }
            D::Date32 | D::Time32(S) => {
                cast(&numbers(values, &D::Int32), kind).expect("days or seconds")
            }
            D::Time32(_) => cast(&numbers(values, &D::Int32), kind).expect("a time"),
            kind => numbers(values, kind),
        };
        let inputs = files(&work, &[column(&[1, 0], &one), column(&[1], &other)]);
        let ran = work.run(&format!("sort {inputs} --by k --union-by-name -o out/o.parquet"));
        let Some(expected) = expected else {
            ran.says(3, &["in/1.parquet", "'v'"]);
            continue;
        };
        ran.succeeds();
        let found = read_parquet(&work.path("out/o.parquet"));
        assert_eq!(found.column(1).data_type(), &expected, "{one} {other}");
        assert_eq!(found.num_rows(), 3);
        if !one.is_null() {
            let values = found.column(1).slice(0, 1).to_data();
            let is_unit = matches!(one, D::Timestamp(..) | D::Time32(_));
            if !is_unit {
                assert_eq!(values, found.column(1).slice(2, 1).to_data(), "{one} {other}");
            }
        }
    }
}

/// Returns rows with a dictionary of 100 values, and with lists of the values.
fn dictionary(prefix: &str) -> RecordBatch {
    let values = StringArray::from_iter_values((0..100).map(|i| format!("{prefix}{i}")));
    let keys = Int8Array::from_iter_values(0..100);
    let column = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).expect("a column");
    let column: ArrayRef = Arc::new(column);
    let field = Arc::new(Field::new("item", column.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(1, 100));
    let list = ListArray::new(field, offsets, Arc::clone(&column), None);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let columns = [("id", ids), ("category", column), ("list", Arc::new(list) as ArrayRef)];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

#[test]
fn dictionaries_of_several_files_have_wide_keys() {
    let work = Work::new();
    write_arrow(&work, "in/a.arrow", &dictionary("a"));
    write_arrow(&work, "in/b.arrow", &dictionary("b"));
    for verb in ["sort", "merge"] {
        work.run(&format!("{verb} in/a.arrow in/b.arrow --by id -o out/o.parquet")).succeeds();
        let found = read_parquet(&work.path("out/o.parquet"));
        assert_eq!(found.column(1).data_type().to_string(), "Dictionary(Int32, Utf8)");
        assert_eq!(found.num_rows(), 200);
        let text = cast(found.column(1), &D::Utf8).expect("text");
        let text: Vec<_> = text.as_string::<i32>().iter().flatten().take(4).collect();
        assert_eq!(text, ["a0", "b0", "a1", "b1"]);
    }
}

#[test]
fn values_that_do_not_unite_are_told() {
    let work = Work::new();
    let many = numbers(&[1, (1 << 53) + 1], &D::Int64);
    let inputs = files(&work, &[numbers(&[1], &D::Float64), many]);
    work.run(&format!("sort {inputs} --by k --union-by-name -o out/o.parquet"))
        .says(3, &["in/1.parquet", "9007199254740993", "decimal"]);
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"a", b"\xff"]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let inputs = files(&work, &[text, bytes]);
    work.run(&format!("sort {inputs} --by k --union-by-name -o out/o.parquet"))
        .says(3, &["in/1.parquet"]);
    work.holds_only(&[]);
}

#[test]
fn columns_that_one_lacks_are_null_there() {
    let work = Work::new();
    work.put("in/a.csv", "id,v\n1,a\n3,c\n");
    work.put("in/b.csv", "w,id\nx,2\n");
    work.put("in/c.csv", "id\n4\n");
    work.put("in/none.csv", "");
    work.put("in/header.csv", "id,z\n");
    work.put("in/a.ndjson", "{\"id\":5,\"v\":\"e\",\"s\":{\"x\":1}}\n");
    work.put("in/b.ndjson", "{\"id\":6,\"s\":{\"y\":\"t\"},\"l\":[1]}\n");
    for (line, expected) in [
        ("sort in/a.csv in/b.csv", "id,v,w\n1,a,\n2,,x\n3,c,\n"),
        ("sort in/b.csv in/a.csv", "w,id,v\n,1,a\nx,2,\n,3,c\n"),
        ("sort in/a.csv in/c.csv", "id,v\n1,a\n3,c\n4,\n"),
        ("sort in/c.csv in/a.csv", "id,v\n1,a\n3,c\n4,\n"),
        ("sort in/a.csv in/none.csv", "id,v\n1,a\n3,c\n"),
        ("sort in/a.csv in/header.csv", "id,v,z\n1,a,\n3,c,\n"),
        ("sort in/header.csv in/a.csv", "id,z,v\n1,,a\n3,,c\n"),
        ("sort in/c.csv in/b.csv in/a.csv", "id,w,v\n1,,a\n2,x,\n3,,c\n4,,\n"),
        ("merge in/a.csv in/b.csv", "id,v,w\n1,a,\n2,,x\n3,c,\n"),
        ("sort in/a.csv in/b.csv --where w=x", "id,v,w\n2,,x\n"),
        ("sort in/a.csv in/b.csv --where 'w is null'", "id,v,w\n1,a,\n3,c,\n"),
        ("sort in/a.csv in/b.csv --select w,id", "w,id\n,1\nx,2\n,3\n"),
        ("sort in/a.csv in/b.csv --schema id:int64,w:utf8", "id,v,w\n1,a,\n2,,x\n3,c,\n"),
        ("sort in/a.csv in/a.ndjson --select id,v", "id,v\n1,a\n3,c\n5,e\n"),
        ("sort in/a.ndjson in/a.csv --select id,v", "id,v\n1,a\n3,c\n5,e\n"),
        ("sort in/a.ndjson in/b.ndjson --select id,s.x,s.y", "id,s.x,s.y\n5,1,\n6,,t\n"),
        ("sort in/b.ndjson in/a.ndjson --select id,s.x,s.y", "id,s.x,s.y\n5,1,\n6,,t\n"),
    ] {
        let line = format!("{line} --by id --union-by-name -o out/o.csv");
        match line.contains('\'') {
            true => work.shell(&format!("{{}} {line}")).succeeds(),
            false => work.run(&line).succeeds(),
        };
        assert_eq!(work.text("out/o.csv"), expected, "{line}");
    }
    work.run("sort in/a.csv in/b.csv --by id -o out/x.csv")
        .says(3, &["in/b.csv", "'v'", "--union-by-name"]);
    work.run("sort in/c.csv in/a.csv --by id -o out/x.csv")
        .says(3, &["in/a.csv", "'v'", "--union-by-name"]);
    work.run("sort in/a.csv in/b.csv --by id --union-by-name --schema nope:int64 -o out/x.csv")
        .says(2, &["nope"]);
    work.run("sort in/a.ndjson in/b.ndjson --by id --union-by-name -o out/o.ndjson").succeeds();
    assert_eq!(
        work.text("out/o.ndjson"),
        "{\"id\":5,\"v\":\"e\",\"s\":{\"x\":1,\"y\":null},\"l\":null}\n\
         {\"id\":6,\"v\":null,\"s\":{\"x\":null,\"y\":\"t\"},\"l\":[1]}\n"
    );
}

#[test]
fn changes_are_applied_to_what_they_are_of() {
    let work = Work::new();
    work.put("in/old.csv", "id,v,w\n1,a,1\n2,b,2\n3,c,3\n");
    work.put("in/new.csv", "id,v,w\n4,d,4\n1,a,1\n3,x,3\n");
    work.run("diff in/old.csv in/new.csv --key id -o in/changes.csv").succeeds();
    let apply = "compact in/old.csv in/changes.csv --union-by-name --key id --op-column op --op-map =insert";
    work.run(&format!("{apply} -o out/o.csv")).succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v,w\n1,a,1\n3,x,3\n4,d,4\n");
}

fn person(names: &[&str], ages: Option<&[i32]>) -> ArrayRef {
    let mut members = vec![(
        Arc::new(Field::new("name", D::Utf8, false)),
        Arc::new(StringArray::from(names.to_vec())) as ArrayRef,
    )];
    if let Some(ages) = ages {
        let ages: ArrayRef = Arc::new(Int32Array::from(ages.to_vec()));
        members.insert(0, (Arc::new(Field::new("age", D::Int32, false)), ages));
    }
    Arc::new(StructArray::from(members))
}

fn lists(of: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new("item", of.data_type().clone(), true));
    let lengths = OffsetBuffer::from_lengths([of.len()]);
    Arc::new(ListArray::new(item, lengths, of, None))
}

#[test]
fn structs_are_united_member_by_member() {
    let work = Work::new();
    let plain = || person(&["ann"], None);
    let aged = || person(&["bob"], Some(&[5]));
    for (columns, expected) in [
        (
            [plain(), aged()],
            "{\"k\":0,\"v\":{\"name\":\"ann\",\"age\":null}}\n{\"k\":1,\"v\":{\"name\":\"bob\",\"age\":5}}\n",
        ),
        (
            [aged(), plain()],
            "{\"k\":0,\"v\":{\"age\":5,\"name\":\"bob\"}}\n{\"k\":1,\"v\":{\"age\":null,\"name\":\"ann\"}}\n",
        ),
        (
            [lists(plain()), lists(aged())],
            "{\"k\":0,\"v\":[{\"name\":\"ann\",\"age\":null}]}\n{\"k\":1,\"v\":[{\"name\":\"bob\",\"age\":5}]}\n",
        ),
    ] {
        let inputs = files(&work, &columns);
        work.run(&format!("sort {inputs} --by k --union-by-name -o out/o.ndjson")).succeeds();
        assert_eq!(work.text("out/o.ndjson"), expected);
        work.run(&format!("sort {inputs} --by k -o out/x.ndjson")).says(3, &["--union-by-name"]);
    }
}

#[test]
fn a_value_that_a_finer_unit_does_not_reach_is_an_error() {
    let work = Work::new();
    let far: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX / 2]));
    let near: ArrayRef = numbers(&[5], &ts(TimeUnit::Nanosecond, None));
    let inputs = files(&work, &[near, far]);
    work.run(&format!("sort {inputs} --by k --union-by-name -o out/o.parquet"))
        .says(3, &["in/1.parquet"]);
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.1]));
    let inputs = files(&work, &[numbers(&[16_777_217], &D::Int32), floats]);
    work.run(&format!("sort {inputs} --by v --union-by-name --select v -o out/o.csv")).succeeds();
    assert_eq!(work.text("out/o.csv"), "v\n0.10000000149011612\n16777217.0\n");
    work.holds_only(&["o.csv"]);
}
