//! Metadata of Parquet about columns and rows: correct in the output, or absent.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    Time64MicrosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;
use parquet::schema::types::SchemaDescriptor;

use crate::common::{Work, read_parquet};

/// Writes `columns` as Parquet with the schema `message`.
fn write(
    work: &Work,
    name: &str,
    message: &str,
    columns: Vec<(&str, ArrayRef, bool)>,
    metadata: &[(&str, &str)],
) {
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("columns");
    let parquet = SchemaDescriptor::new(Arc::new(parse_message_type(message).expect("a schema")));
    let pairs =
        metadata.iter().map(|(key, value)| KeyValue::new((*key).into(), (*value).to_owned()));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs.collect()));
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(parquet);
    let file = File::create(work.path(name)).expect("created");
    let mut writer =
        ArrowWriter::try_new_with_options(file, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

fn footer(work: &Work, name: &str) -> ParquetMetaData {
    let file = File::open(work.path(name)).expect("there");
    ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer")
}

/// Returns the schema of a file, without the name of its root.
fn schema_of(work: &Work, name: &str) -> String {
    let mut text = Vec::new();
    print_schema(&mut text, footer(work, name).file_metadata().schema());
    let text = String::from_utf8(text).expect("text");
    text.split_once('\n').expect("lines").1.to_owned()
}

/// Returns the value of `key` in the footer of a file.
fn said(work: &Work, name: &str, key: &str) -> Option<serde_json::Value> {
    let footer = footer(work, name);
    let mut pairs = footer.file_metadata().key_value_metadata().into_iter().flatten();
    let value = pairs.find(|pair| pair.key == key)?.value.clone()?;
    Some(serde_json::from_str(&value).expect("JSON"))
}

fn ids(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn binary(values: &[&str]) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(values.iter().map(|value| value.as_bytes())))
}

/// Returns a shredded VARIANT in Arrow's form.
fn variant() -> ArrayRef {
    let member = |name: &str, kind, nullable| Arc::new(Field::new(name, kind, nullable));
    let fields: Fields = vec![
        member("metadata", DataType::Binary, false),
        member("value", DataType::Binary, true),
        member("typed_value", DataType::Int64, true),
    ]
    .into();
    let parts = vec![binary(&["\x01\0\0", "\x01\0\0"]), binary(&["\0", "\0"]), ids(&[7, 8])];
    Arc::new(StructArray::new(fields, parts, None))
}

fn around(values: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new("inner", values.data_type().clone(), true));
    Arc::new(StructArray::new(vec![field].into(), vec![values], None))
}

fn lists(values: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new("element", values.data_type().clone(), true));
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1, 1]), values, None))
}

const VARIANT: &str = "group inner (VARIANT) { required binary metadata; optional binary value; \
                       optional int64 typed_value; }";

#[test]
fn annotations_that_arrow_has_no_type_for_stay() {
    let work = Work::new();
    let times = || Arc::new(Time64MicrosecondArray::from(vec![1, 2])) as ArrayRef;
    let variants = VARIANT.replace("inner", "v");
    let message = format!(
        "message m {{ required int64 id; optional int64 t (TIME(MICROS,true)); \
         optional int64 local (TIME(MICROS,false)); \
         optional group ts (LIST) {{ repeated group list {{ optional int64 element (TIME(MICROS,true)); }} }} \
         optional {variants} optional group s {{ optional {VARIANT} }} \
         optional group vs (LIST) {{ repeated group list {{ optional {} }} }} \
         optional binary e (ENUM); optional binary b (BSON); \
         optional binary g (GEOMETRY); optional binary plain; }}",
        VARIANT.replace("inner", "element")
    );
    let enums = Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef;
    let columns = vec![
        ("id", ids(&[2, 1]), false),
        ("t", times(), true),
        ("local", times(), true),
        ("ts", lists(times()), true),
        ("v", variant(), true),
        ("s", around(variant()), true),
        ("vs", lists(variant()), true),
        ("e", enums, true),
        ("b", binary(&["b", "c"]), true),
        ("g", binary(&["p", "q"]), true),
        ("plain", binary(&["r", "s"]), true),
    ];
    write(&work, "in/a.parquet", &message, columns, &[]);
    work.run("sort in/a.parquet --by id -o out/o.parquet").succeeds();
    let expected = schema_of(&work, "in/a.parquet").replace("VARIANT(None)", "VARIANT(Some(1))");
    for kind in ["TIME(MICROS,true)", "(VARIANT", "(ENUM)", "(BSON)", "(GEOMETRY"] {
        assert!(expected.contains(kind), "{expected}");
    }
    assert_eq!(schema_of(&work, "out/o.parquet"), expected);
    // Copied row groups, and Arrow files, keep the annotations as well.
    work.run("sort out/o.parquet --by id -o out/passed.parquet").succeeds();
    assert_eq!(schema_of(&work, "out/passed.parquet"), expected);
    work.run("sort out/o.parquet --by id -o out/o.arrow").succeeds();
    work.run("sort out/o.arrow --by id -o out/back.parquet").succeeds();
    assert_eq!(schema_of(&work, "out/back.parquet"), expected);
    let (there, back) =
        (read_parquet(&work.path("out/o.parquet")), read_parquet(&work.path("out/back.parquet")));
    assert_eq!(there.columns(), back.columns());
    work.run("sort in/a.parquet --by id --where e=y --select id,e -o out/e.csv").succeeds();
    assert_eq!(work.text("out/e.csv"), "id,e\n1,y\n");
}

#[test]
fn columns_of_two_meanings_are_not_one() {
    let work = Work::new();
    let column = |name: &str, kind: &str, values: ArrayRef| {
        let message = format!("message m {{ required int64 id; optional {kind} }}");
        let columns = vec![("id", ids(&[2, 1]), false), ("v", values, true)];
        write(&work, name, &message, columns, &[]);
    };
    let times = || Arc::new(Time64MicrosecondArray::from(vec![1, 2])) as ArrayRef;
    column("in/utc.parquet", "int64 v (TIME(MICROS,true));", times());
    column("in/local.parquet", "int64 v (TIME(MICROS,false));", times());
    column("in/variant.parquet", &VARIANT.replace("inner", "v"), variant());
    column("in/struct.parquet", &VARIANT.replace("inner (VARIANT)", "v"), variant());
    column("in/enum.parquet", "binary v (ENUM);", binary(&["a", "b"]));
    column("in/text.parquet", "binary v (STRING);", binary(&["a", "b"]));
    for by_name in ["", "--union-by-name"] {
        let sort = |one: &str, other: &str| {
            work.run(&format!(
                "sort in/{one}.parquet in/{other}.parquet --by id {by_name} -o out/o.parquet"
            ))
        };
        sort("utc", "local").says(3, &["column 'v' is plain Time64", "in UTC in"]);
        sort("struct", "variant").says(3, &["column 'v' is a VARIANT, but plain Struct"]);
        sort("utc", "utc").succeeds();
        assert!(schema_of(&work, "out/o.parquet").contains("TIME(MICROS,true)"));
        sort("variant", "variant").succeeds();
        assert!(schema_of(&work, "out/o.parquet").contains("VARIANT"));
        sort("enum", "text").succeeds();
        assert!(schema_of(&work, "out/o.parquet").contains("v (STRING)"));
    }
}

#[test]
fn metadata_of_one_input_is_not_said_of_all() {
    let work = Work::new();
    let geo = |bounds: &str, crs: &str| {
        format!(
            "{{\"version\":\"1.0.0\",\"primary_column\":\"g\",\"columns\":{{\"g\":\
             {{\"encoding\":\"WKB\",\"geometry_types\":[\"Point\"],\"bbox\":{bounds}{crs}}}}}}}"
        )
    };
    let put = |name: &str, id: i64, metadata: &[(&str, &str)]| {
        let message = "message m { required int64 id; optional binary g; }";
        let columns = vec![("id", ids(&[id]), false), ("g", binary(&["p"]), true)];
        write(&work, name, message, columns, metadata);
    };
    let (near, far) = (geo("[1,1,1,1]", ""), geo("[50,50,50,50]", ""));
    put("in/a.parquet", 2, &[("geo", &near), ("who", "\"a\""), ("of", "1")]);
    put("in/b.parquet", 1, &[("geo", &far), ("who", "\"b\""), ("of", "1")]);
    put("in/c.parquet", 3, &[("geo", &geo("[1,1,1,1]", ",\"crs\":null"))]);
    work.run("sort in/a.parquet --by id -o out/one.parquet").succeeds();
    assert_eq!(said(&work, "out/one.parquet", "geo"), serde_json::from_str(&near).ok());
    for verb in ["sort", "merge"] {
        work.run(&format!("{verb} in/b.parquet in/a.parquet --by id -o out/all.parquet"))
            .succeeds();
        let all = said(&work, "out/all.parquet", "geo").expect("geo");
        let column = serde_json::json!({"encoding": "WKB", "geometry_types": ["Point"]});
        assert_eq!(all["columns"]["g"], column);
        assert_eq!(all["primary_column"], "g");
        assert_eq!(said(&work, "out/all.parquet", "who"), None);
        assert_eq!(said(&work, "out/all.parquet", "of"), Some(1.into()));
    }
    // Files of the tool itself, whose row groups are copied.
    work.run("sort in/b.parquet --by id -o out/b.parquet").succeeds();
    work.run("sort out/b.parquet out/one.parquet --by id -o out/passed.parquet").succeeds();
    let all = said(&work, "out/passed.parquet", "geo").expect("geo");
    assert_eq!(all["columns"]["g"].get("bbox"), None);
    work.run("sort in/a.parquet in/c.parquet --by id -o out/x.parquet")
        .says(3, &["c.parquet", "'g'", "`crs`", "--select"]);
    work.run("sort in/a.parquet in/c.parquet --by id --select id -o out/id.parquet").succeeds();
    assert_eq!(said(&work, "out/id.parquet", "geo"), None);
    work.run("sort in/a.parquet --by id --select id -o out/id.parquet").succeeds();
    assert_eq!(said(&work, "out/id.parquet", "geo"), None);
    assert_eq!(said(&work, "out/id.parquet", "of"), Some(1.into()));
}
