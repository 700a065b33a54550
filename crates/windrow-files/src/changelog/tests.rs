//! Tests of each preset on documents in the format of its system.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int8Array, Int64Array, LargeStringArray,
    RecordBatch, StringArray, StringViewArray, UInt32Array,
};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema_from_seekable;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;

use super::{ChangeLog, Said};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::settings::Preset;

/// Reads NDJSON. Inferred schemas have their columns in order of names.
fn ndjson(text: &str) -> RecordBatch {
    let mut cursor = Cursor::new(text.trim());
    let (schema, _) = infer_json_schema_from_seekable(&mut cursor, None).unwrap();
    let schema = Arc::new(schema);
    let batches: Vec<_> = ReaderBuilder::new(schema.clone())
        .build(cursor)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    concat_batches(&schema, &batches).unwrap()
}

fn bind_to(
    schema: &SchemaRef,
    preset: Preset,
    op_column: Option<&str>,
) -> Result<ChangeLog, Error> {
    ChangeLog::bind(schema, &Said { preset, op_column, ..Said::default() })
}

fn bind(batch: &RecordBatch, preset: Preset) -> ChangeLog {
    bind_to(batch.schema_ref(), preset, None).unwrap()
}

fn apply(log: &ChangeLog, batch: &RecordBatch) -> (RecordBatch, Option<Vec<u32>>) {
    let (rows, ordinals) = log.apply(batch, 0).unwrap();
    assert_eq!(rows.schema_ref(), &log.schema);
    (rows, ordinals.map(|kept: UInt32Array| kept.values().to_vec()))
}

fn ints(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(name).unwrap();
    column.as_primitive::<Int64Type>().iter().collect()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap();
    let text = column.as_string::<i32>();
    text.iter().map(|text| text.map(str::to_owned)).collect()
}

fn deleted(log: &ChangeLog, batch: &RecordBatch) -> Vec<bool> {
    let column = batch.column_by_name(log.tombstone()).unwrap();
    assert_eq!(column.null_count(), 0);
    column.as_boolean().values().iter().collect()
}

fn class(log: &ChangeLog, batch: &RecordBatch) -> Vec<i8> {
    let column = batch.column_by_name(log.class().unwrap()).unwrap();
    assert_eq!(column.null_count(), 0);
    column.as_primitive::<Int8Type>().values().to_vec()
}

fn names(log: &ChangeLog) -> Vec<&str> {
    let fields = log.schema.fields();
    fields.iter().map(|field| field.name().as_str()).collect()
}

fn some<T: Into<U>, U>(values: impl IntoIterator<Item = T>) -> Vec<Option<U>> {
    values.into_iter().map(|value| Some(value.into())).collect()
}

fn with_op(op: ArrayRef) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..op.len() as i64));
    RecordBatch::try_from_iter_with_nullable([("id", id, false), ("op", op, true)]).unwrap()
}

fn generic(op: ArrayRef) -> Result<Vec<bool>, Error> {
    let batch = with_op(op);
    let log = bind_to(batch.schema_ref(), Preset::Generic, Some("op"))?;
    let (rows, _) = log.apply(&batch, 0)?;
    Ok(deleted(&log, &rows))
}

/// Events from the documentation of the PostgreSQL connector, without their schemas.
const DEBEZIUM: &str = r#"
{"before":null,"after":{"id":1,"first_name":"Anne","email":"annek@noanswer.org","score":7},"source":{"version":"2.7.0.Final","connector":"postgresql","name":"fulfillment","ts_ms":1559033904863,"snapshot":"first","db":"postgres","schema":"public","table":"customers","txId":555,"lsn":24023128,"xmin":null},"op":"r","ts_ms":1559033904900,"transaction":null}
{"before":null,"after":{"id":2,"first_name":"Bob","email":"bob@noanswer.org","score":1},"source":{"version":"2.7.0.Final","connector":"postgresql","name":"fulfillment","ts_ms":1559033904863,"snapshot":"false","db":"postgres","schema":"public","table":"customers","txId":556,"lsn":24023200,"xmin":null},"op":"c","ts_ms":1559033904901,"transaction":null}
{"before":{"id":1,"first_name":"Anne","email":"annek@noanswer.org","score":7},"after":{"id":1,"first_name":"Anne Marie","email":"annek@noanswer.org","score":7.5},"source":{"version":"2.7.0.Final","connector":"postgresql","name":"fulfillment","ts_ms":1559033904864,"snapshot":"false","db":"postgres","schema":"public","table":"customers","txId":557,"lsn":24023300,"xmin":null},"op":"u","ts_ms":1559033904902,"transaction":null}
{"before":null,"after":null,"source":{"version":"2.7.0.Final","connector":"postgresql","name":"fulfillment","ts_ms":1559033904865,"snapshot":"false","db":"postgres","schema":"","table":"","txId":558,"lsn":24023350,"xmin":null},"op":"m","ts_ms":1559033904903,"transaction":null}
{"before":{"id":2,"first_name":null,"email":null,"score":null},"after":null,"source":{"version":"2.7.0.Final","connector":"postgresql","name":"fulfillment","ts_ms":1559033904866,"snapshot":"false","db":"postgres","schema":"public","table":"customers","txId":559,"lsn":24023400,"xmin":null},"op":"d","ts_ms":1559033904904,"transaction":null}
{"before":null,"after":null,"source":null,"op":null,"ts_ms":null,"transaction":null}
"#;

#[test]
fn debezium_unwraps_the_row_and_opens_the_source() {
    let batch = ndjson(DEBEZIUM);
    let log = bind(&batch, Preset::Debezium).keyed_by(&["id".to_owned()]);
    let mut row = names(&log);
    assert_eq!(row.split_off(4), log.bookkeeping);
    assert_eq!(row, ["email", "first_name", "id", "score"]);
    for name in ["source.lsn", "source.schema", "op", "ts_ms", "transaction"] {
        assert!(log.bookkeeping.iter().any(|other| other == name), "{name}");
    }
    let (rows, kept) = apply(&log, &batch);
    assert_eq!(kept, Some(vec![0, 1, 2, 4]), "a message and a tombstone go");
    assert_eq!(ints(&rows, "id"), some([1, 2, 1, 2]));
    assert_eq!(
        texts(&rows, "first_name"),
        [Some("Anne"), Some("Bob"), Some("Anne Marie"), None].map(|name| name.map(str::to_owned))
    );
    assert_eq!(texts(&rows, "op"), some(["r", "c", "u", "d"]));
    assert_eq!(ints(&rows, "source.lsn"), some([24_023_128, 24_023_200, 24_023_300, 24_023_400]));
    assert_eq!(deleted(&log, &rows), [false, false, false, true]);
    assert_eq!(class(&log, &rows), [0, 1, 1, 1]);
}

#[test]
fn debezium_images_of_two_inferred_types_meet() {
    let batch = ndjson(DEBEZIUM);
    let log = bind(&batch, Preset::Debezium);
    // `before` has whole scores only, `after` also a fraction.
    let score = log.schema.field_with_name("score").unwrap();
    assert_eq!(score.data_type(), &DataType::Float64);
    let clash = ndjson(r#"{"before":{"id":1,"x":[1]},"after":{"id":1,"x":2},"op":"u"}"#);
    let error = bind_to(clash.schema_ref(), Preset::Debezium, None).err().unwrap();
    assert!(error.to_string().contains("\"x\" is Int64 in `after` and List"), "{error}");
}

#[test]
fn debezium_text_that_is_no_value_of_the_other_image_is_refused() {
    // Inference makes text of a column without values, so only the values can show a conflict.
    let clash = ndjson(
        r#"{"before":{"id":1,"x":"a"},"after":null,"op":"d"}
{"before":null,"after":{"id":1,"x":2},"op":"c"}"#,
    );
    let log = bind(&clash, Preset::Debezium);
    let error = log.apply(&clash, 0).err().unwrap();
    assert!(error.to_string().contains('a'), "{error}");
    let absent = ndjson(
        r#"{"before":{"id":1,"x":null,"y":"z"},"after":null,"op":"d"}
{"before":null,"after":{"id":1,"x":2},"op":"c"}"#,
    );
    let log = bind(&absent, Preset::Debezium);
    assert_eq!(ints(&log.apply(&absent, 0).unwrap().0, "x"), [None, Some(2)]);
}

#[test]
fn debezium_inside_kafka_connects_payload() {
    let batch = ndjson(
        r#"
{"schema":{"type":"struct","optional":false},"payload":{"before":null,"after":{"id":4,"op":"swap"},"source":{"connector":"mysql","file":"mysql-bin.000003","pos":484},"op":"c","ts_ms":1}}
{"schema":{"type":"struct","optional":false},"payload":{"before":{"id":4,"op":"swap"},"after":null,"source":{"connector":"mysql","file":"mysql-bin.000003","pos":805},"op":"d","ts_ms":2}}
{"schema":null,"payload":null}
"#,
    );
    let log = bind(&batch, Preset::Debezium);
    assert_eq!(
        names(&log),
        [
            "id",
            "op",
            "op_envelope",
            "source.connector",
            "source.file",
            "source.pos",
            "ts_ms",
            "__windrow_deleted",
            "__windrow_unknown",
            "__windrow_class"
        ]
    );
    let (rows, kept) = apply(&log, &batch);
    assert_eq!(kept, Some(vec![0, 1]));
    assert_eq!(texts(&rows, "op"), some(["swap", "swap"]), "the row's name wins");
    assert_eq!(texts(&rows, "op_envelope"), some(["c", "d"]));
    assert_eq!(ints(&rows, "source.pos"), some([484, 805]));
    assert_eq!(deleted(&log, &rows), [false, true]);
}

#[test]
fn debezium_reports_what_an_event_lacks() {
    let error = |text: &str| {
        let batch = ndjson(text);
        let log = bind(&batch, Preset::Debezium).keyed_by(&["id".to_owned()]);
        match log.apply(&batch, 100) {
            Err(error) if error.kind() == ErrorKind::Data => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let first = r#"{"before":{"id":1,"n":1},"after":{"id":1,"n":2},"op":"u"}"#;
    let with = |second: &str| error(&format!("{first}\n{second}"));
    let message = with(r#"{"before":null,"after":null,"op":"d"}"#);
    assert!(message.starts_with("row 101: the event lacks its old row in `before`"), "{message}");
    let message = with(r#"{"before":{"n":1},"after":null,"op":"d"}"#);
    assert_eq!(message, "row 101: the event lacks the key column \"id\" in `before`");
    let message = with(r#"{"before":{"id":1},"after":null,"op":"u"}"#);
    assert_eq!(message, "row 101: the event lacks its row in `after`");
    let message = with(r#"{"before":null,"after":{"id":1},"op":null}"#);
    assert_eq!(message, "row 101: the event lacks an operation");
    let message = with(r#"{"before":null,"after":null,"op":"t"}"#);
    assert!(message.contains("a truncate"), "{message}");
}

#[test]
fn debezium_with_only_deletes_takes_the_row_from_before() {
    let batch = ndjson(r#"{"before":{"id":9,"gone":null},"after":null,"op":"d"}"#);
    let log = bind(&batch, Preset::Debezium);
    let (rows, kept) = apply(&log, &batch);
    assert_eq!((ints(&rows, "id"), kept), (some([9]), None));
    assert_eq!(deleted(&log, &rows), [true]);
}

#[test]
fn debezium_needs_structs() {
    let schema = |fields| Arc::new(Schema::new(Vec::<Field>::from_iter(fields)));
    let op = Field::new("op", DataType::Utf8, true);
    let plain = schema([Field::new("id", DataType::Int64, false), op.clone()]);
    let text = schema([Field::new("after", DataType::Utf8, true), op]);
    for schema in [plain, text] {
        let bound = bind_to(&schema, Preset::Debezium, None);
        assert!(bound.is_err_and(|error| error.kind() == ErrorKind::Usage));
    }
}

/// The result of `table_changes('people', 0)`.
const DELTA_CDF: &str = r#"
{"id":1,"name":"Ada","_change_type":"insert","_commit_version":1,"_commit_timestamp":"2026-03-01T12:00:00Z"}
{"id":2,"name":"Ben","_change_type":"insert","_commit_version":1,"_commit_timestamp":"2026-03-01T12:00:00Z"}
{"id":1,"name":"Ada","_change_type":"update_preimage","_commit_version":2,"_commit_timestamp":"2026-03-02T12:00:00Z"}
{"id":1,"name":"Ada L.","_change_type":"update_postimage","_commit_version":2,"_commit_timestamp":"2026-03-02T12:00:00Z"}
{"id":2,"name":"Ben","_change_type":"delete","_commit_version":3,"_commit_timestamp":"2026-03-03T12:00:00Z"}
"#;

#[test]
fn delta_cdf_leaves_out_the_old_side_of_updates() {
    let batch = ndjson(DELTA_CDF);
    let log = bind(&batch, Preset::DeltaCdf);
    assert_eq!(
        log.bookkeeping,
        ["_change_type", "_commit_timestamp", "_commit_version", "__windrow_deleted"]
    );
    assert_eq!(log.class(), None);
    let (rows, kept) = apply(&log, &batch);
    assert_eq!(kept, Some(vec![0, 1, 3, 4]));
    assert_eq!(texts(&rows, "name"), some(["Ada", "Ben", "Ada L.", "Ben"]));
    assert_eq!(ints(&rows, "_commit_version"), some([1, 1, 2, 3]));
    assert_eq!(deleted(&log, &rows), [false, false, false, true]);
}

/// Format version 2 with its `columns` flattened, as most pipelines store it.
const WAL2JSON: &str = r#"
{"action":"B","xid":730,"lsn":"0/16B2D80","id":null,"qty":null}
{"action":"I","xid":730,"lsn":"0/16B2E10","id":1,"qty":5}
{"action":"U","xid":730,"lsn":"0/16B2E90","id":1,"qty":4}
{"action":"M","xid":730,"lsn":"0/16B2EC0","id":null,"qty":null}
{"action":"D","xid":730,"lsn":"0/16B2F00","id":1,"qty":null}
{"action":"C","xid":730,"lsn":"0/16B2F80","id":null,"qty":null}
"#;

#[test]
fn wal2json_leaves_out_begin_commit_and_messages() {
    let batch = ndjson(WAL2JSON);
    let log = bind(&batch, Preset::Wal2json);
    assert_eq!(log.bookkeeping, ["action", "__windrow_deleted"]);
    let (rows, kept) = apply(&log, &batch);
    assert_eq!(kept, Some(vec![1, 2, 4]));
    assert_eq!(texts(&rows, "action"), some(["I", "U", "D"]));
    assert_eq!(ints(&rows, "qty"), [Some(5), Some(4), None]);
    assert_eq!(deleted(&log, &rows), [false, false, true]);
}

#[test]
fn wal2json_refuses_truncates_and_nested_columns() {
    let batch = ndjson("{\"action\":\"I\",\"id\":1}\n{\"action\":\"T\",\"id\":null}");
    let error = bind(&batch, Preset::Wal2json).apply(&batch, 0).err().unwrap();
    assert!(error.kind() == ErrorKind::Data);
    let text = error.to_string();
    assert!(text.starts_with("row 1: column \"action\" holds \"T\", a truncate"), "{text}");

    let nested = ndjson(
        r#"{"action":"I","schema":"public","table":"t","columns":[{"name":"id","type":"integer","value":1}]}"#,
    );
    let error = bind_to(nested.schema_ref(), Preset::Wal2json, None).err().unwrap();
    assert!(error.to_string().contains("flatten"), "{error}");
}

/// An audit_log table has `rowkind`; connectors write `_ROW_KIND`.
const PAIMON: &str = r#"
{"rowkind":"+I","_SEQUENCE_NUMBER":0,"id":1,"name":"a"}
{"rowkind":"-U","_SEQUENCE_NUMBER":1,"id":1,"name":"a"}
{"rowkind":"+U","_SEQUENCE_NUMBER":2,"id":1,"name":"b"}
{"rowkind":"-D","_SEQUENCE_NUMBER":3,"id":1,"name":"b"}
"#;

#[test]
fn paimon_reads_row_kinds_as_text() {
    for name in ["rowkind", "_ROW_KIND"] {
        let batch = ndjson(&PAIMON.replace("rowkind", name));
        let log = bind(&batch, Preset::Paimon);
        assert!(log.bookkeeping.contains(&"_SEQUENCE_NUMBER".to_owned()));
        let (rows, kept) = apply(&log, &batch);
        assert_eq!(kept, Some(vec![0, 2, 3]));
        assert_eq!(texts(&rows, "name"), some(["a", "b", "b"]));
        assert_eq!(deleted(&log, &rows), [false, false, true]);
    }
}

#[test]
fn paimon_reads_row_kinds_of_data_files_as_numbers() {
    let ints = |values: [i64; 4]| Arc::new(Int64Array::from_iter_values(values)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([
        ("_KEY_id", ints([1, 1, 1, 2])),
        ("_SEQUENCE_NUMBER", ints([0, 1, 2, 3])),
        ("_VALUE_KIND", Arc::new(Int8Array::from(vec![0, 1, 2, 3])) as ArrayRef),
        ("id", ints([1, 1, 1, 2])),
    ])
    .unwrap();
    let log = bind(&batch, Preset::Paimon);
    assert_eq!(
        log.bookkeeping,
        ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "__windrow_deleted"]
    );
    let (rows, kept) = apply(&log, &batch);
    assert_eq!(kept, Some(vec![0, 2, 3]));
    assert_eq!(deleted(&log, &rows), [false, false, true]);

    let wrong = with_op(Arc::new(Int8Array::from(vec![0, 4])));
    let log = bind_to(wrong.schema_ref(), Preset::Paimon, Some("op")).unwrap();
    let error = log.apply(&wrong, 0).err().unwrap().to_string();
    assert!(error.starts_with("row 1: column \"op\" holds 4,"), "{error}");
}

#[test]
fn generic_reads_the_usual_spellings_in_any_case() {
    let (t, f) = (true, false);
    for (words, expected) in [
        ("I U D i u d", vec![f, f, t, f, f, t]),
        ("c r u d", vec![f, f, f, t]),
        ("INSERT Update delete upsert", vec![f, f, t, f]),
        ("+I -U +U -D", vec![f, f, t]),
        ("insert update_preimage update_postimage delete", vec![f, f, t]),
        ("false true", vec![f, t]),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(generic(Arc::new(StringArray::from(words))).unwrap(), expected);
    }
}

#[test]
fn generic_reads_every_type_of_text_and_flags() {
    let words = vec!["I", "D", "U"];
    let dictionary: DictionaryArray<Int32Type> = words.iter().copied().collect();
    let columns: [ArrayRef; 5] = [
        Arc::new(StringArray::from(words.clone())),
        Arc::new(LargeStringArray::from(words.clone())),
        Arc::new(StringViewArray::from(words)),
        Arc::new(dictionary),
        Arc::new(BooleanArray::from(vec![false, true, false])),
    ];
    for column in columns {
        let kind = column.data_type().clone();
        assert_eq!(generic(column).unwrap(), [false, true, false], "{kind}");
    }
}

#[test]
fn generic_keeps_the_input_as_it_is_and_adds_one_column() {
    let batch = with_op(Arc::new(StringArray::from(vec!["I", "D"])));
    let log = bind_to(batch.schema_ref(), Preset::Generic, Some("op")).unwrap();
    assert_eq!(names(&log), ["id", "op", "__windrow_deleted"]);
    assert_eq!(log.bookkeeping, ["op", "__windrow_deleted"]);
    let (rows, kept) = apply(&log, &batch);
    assert_eq!(kept, None);
    assert_eq!(rows.columns()[..2], batch.columns()[..]);
    let (none, kept) = apply(&log, &batch.slice(0, 0));
    assert_eq!((none.num_rows(), kept), (0, None));
}

#[test]
fn generic_names_the_row_that_it_cannot_read() {
    let data = |op: StringArray| match generic(Arc::new(op)) {
        Err(error) if error.kind() == ErrorKind::Data => error.to_string(),
        other => panic!("{other:?}"),
    };
    let unknown = data(StringArray::from(vec!["I", "X"]));
    assert!(unknown.starts_with("row 1: column \"op\" holds \"X\", which is no"), "{unknown}");
    let null = data(StringArray::from(vec![Some("I"), None]));
    assert_eq!(null, "row 1: the operation in column \"op\" is null");
}

#[test]
fn what_cannot_be_bound_is_a_matter_of_usage() {
    let numbers = with_op(Arc::new(Int64Array::from(vec![0, 1])));
    let texts = with_op(Arc::new(StringArray::from(vec!["I"])));
    let usage = |batch: &RecordBatch, preset, op| match bind_to(batch.schema_ref(), preset, op) {
        Err(error) if error.kind() == ErrorKind::Usage => error.to_string(),
        other => panic!("{:?}", other.map(|log| log.schema.clone())),
    };
    assert!(usage(&numbers, Preset::Generic, Some("op")).contains("numbers have no one meaning"));
    assert!(usage(&texts, Preset::Generic, None).contains("`op_column`"));
    assert!(usage(&texts, Preset::Generic, Some("kind")).contains("the columns are id, op"));
    assert!(usage(&texts, Preset::DeltaCdf, None).contains("_change_type"));
    let id = texts.column(0).clone();
    let taken = RecordBatch::try_from_iter([("__windrow_deleted", id)]).unwrap();
    assert!(usage(&taken, Preset::Generic, Some("op")).contains("keeps for itself"));
}
