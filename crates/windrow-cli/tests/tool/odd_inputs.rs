//! Uncommon inputs: each is read completely, or refused with a reason.

use std::fs::File;
use std::sync::Arc;

use crate::common::{Work, write_arrow, write_log};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampSecondArray,
};
use arrow_buffer::ScalarBuffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, UnionFields};
use parquet::basic::Encoding;
use parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

#[test]
fn intervals_that_would_lose_their_months_are_refused() {
    let work = Work::new();
    let schema = "message m { optional fixed_len_byte_array(12) v (INTERVAL); }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = File::create(work.path("in/a.parquet")).expect("a file");
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let mut column = group.next_column().expect("a column").expect("one");
    let value = FixedLenByteArray::from(vec![1; 12]);
    column.typed::<FixedLenByteArrayType>().write_batch(&[value], Some(&[1]), None).expect("one");
    column.close().expect("closed");
    group.close().expect("closed");
    writer.close().expect("closed");
    let ran = work.run("sort in/a.parquet --by v -o out/o.parquet");
    ran.says(3, &["a.parquet", "'v'", "INTERVAL", "months", "cast"]);
    work.holds_only(&[]);
}

#[test]
fn categories_are_pages_that_all_readers_take() {
    let work = Work::new();
    // More values than the sample accepts for a dictionary.
    let values = StringArray::from_iter_values((0..3000).map(|i| format!("category {i:05}")));
    let keys = Int32Array::from_iter_values((0..20_000).map(|i| i * 7 % 3000));
    let column = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values)).expect("a column");
    let ids = Int64Array::from_iter_values((0..20_000).rev());
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("c", Arc::new(column) as ArrayRef),
    ]);
    write_arrow(&work, "in/a.arrow", &batch.expect("a batch"));
    work.run("sort in/a.arrow --by id -o out/o.parquet").succeeds();
    let file = File::open(work.path("out/o.parquet")).expect("a file");
    let footer = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer");
    for group in footer.row_groups() {
        let used: Vec<Encoding> = group.column(1).encodings().collect();
        let known = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
        assert!(used.iter().all(|encoding| known.contains(encoding)), "{used:?}");
        assert!(used.contains(&Encoding::RLE_DICTIONARY), "{used:?}");
    }
}

#[test]
fn what_a_parquet_footer_says_beside_its_columns_is_kept() {
    let work = Work::new();
    let metadata = [("geo".to_owned(), "{\"version\":1}".to_owned())].into();
    let schema =
        Schema::new_with_metadata(vec![Field::new("id", DataType::Int64, false)], metadata);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
    write_arrow(&work, "in/a.arrow", &RecordBatch::try_new(Arc::new(schema), vec![ids]).unwrap());
    work.run("sort in/a.arrow --by id -o out/o.parquet").succeeds();
    let file = File::open(work.path("out/o.parquet")).expect("a file");
    let footer = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer");
    let pairs = footer.file_metadata().key_value_metadata().expect("pairs");
    let geo = pairs.iter().find(|pair| pair.key == "geo").expect("geo");
    assert_eq!(geo.value.as_deref(), Some("{\"version\":1}"));
}

#[test]
fn columns_that_parquet_has_no_name_for_are_refused() {
    let work = Work::new();
    let fields = UnionFields::try_new([0], [Field::new("i", DataType::Int64, true)]).unwrap();
    let child: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let types = ScalarBuffer::from(vec![0i8, 0]);
    let union = arrow_array::UnionArray::try_new(fields, types, None, vec![child]).unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("u", Arc::new(union) as ArrayRef)]);
    write_arrow(&work, "in/a.arrow", &batch.unwrap());
    for more in ["", " --explain"] {
        let ran = work.run(&format!("sort in/a.arrow --by id -o out/o.parquet{more}"));
        ran.says(2, &["\"u\"", "Union", "Arrow", "--select"]);
    }
    work.holds_only(&[]);
    work.run("sort in/a.arrow --by id -o out/o.parquet --select id").succeeds();
    work.run("sort in/a.arrow --by id -o out/o.arrow").succeeds();
}

#[test]
fn tabs_and_headers_stay_as_they_were() {
    let work = Work::new();
    work.put("out/a.tsv", "id\tv\n2\ta\n1\tb,c\n");
    for _ in 0..2 {
        work.run("sort out/a.tsv --by id -o out/a.tsv").succeeds();
        assert_eq!(work.read("out/a.tsv"), b"id\tv\n1\tb,c\n2\ta\n");
    }
    work.put("out/a.csv", "2;a\n1;b\n");
    for _ in 0..2 {
        let sort = "sort out/a.csv --by column_1 -o out/a.csv --csv-delimiter ; --csv-no-header";
        work.run(sort).succeeds();
        assert_eq!(work.read("out/a.csv"), b"1;b\n2;a\n");
    }
}

#[test]
fn a_quote_that_is_never_closed_is_not_a_field() {
    let work = Work::new();
    work.put("in/a.csv", "id,v\n1,\"x\"\"y\"\n2,\"abc\n3,b\n");
    let ran = work.run("sort in/a.csv --by id -o out/o.csv");
    ran.says(3, &["a.csv", "the quote that opens on line 3 is never closed"]);
    work.holds_only(&[]);
    // Quotes inside of a field, and closed quotes at the end.
    work.put("in/a.csv", "id,v\n1,5\" pipe\n2,\"a\"\"\"\"\"\n3,\"end\"");
    work.run("sort in/a.csv --by id -o out/o.csv").succeeds();
}

#[test]
fn tombstones_without_a_value_and_logs_that_begin_with_a_snapshot() {
    let work = Work::new();
    let row = |id: usize| format!("{{\"id\":{id},\"name\":\"a name that is long enough {id}\"}}");
    let mut log: String = (0..15_000)
        .map(|id| {
            let (row, lsn) = (row(id), id);
            format!(
                "{{\"before\":null,\"after\":{row},\"source\":{{\"lsn\":{lsn}}},\"op\":\"r\"}}\n"
            )
        })
        .collect();
    assert!(log.len() > 1 << 20, "longer than the sample");
    let last = row(7);
    log += &format!(
        "{{\"before\":{last},\"after\":null,\"source\":{{\"lsn\":99999}},\"op\":\"d\"}}\n"
    );
    log += "null\n";
    work.put("in/log.ndjson", &log);
    let compact = "--op-preset debezium --key id --order-by source.lsn";
    for line in
        ["cat in/log.ndjson | {} compact - --input-format ndjson", "{} compact in/log.ndjson"]
    {
        work.shell(&format!("{line} {compact} -o out/o.csv -q")).succeeds();
        let rows = String::from_utf8(work.read("out/o.csv")).expect("text");
        assert_eq!(rows.lines().count(), 15_000, "a header, and all but the deleted one");
        assert!(!rows.contains("\n7,"));
    }
}

#[test]
fn numbers_of_either_image_are_kept_whole() {
    let work = Work::new();
    let event = |id: &str, lsn: u32| {
        format!("{{\"op\":\"c\",\"before\":null,\"after\":{{\"id\":{id}}},\"lsn\":{lsn}}}\n")
    };
    let delete = |id: &str| {
        format!("{{\"op\":\"d\",\"before\":{{\"id\":{id}}},\"after\":null,\"lsn\":9}}\n")
    };
    let compact = "compact in/log.ndjson --op-preset debezium --key id --order-by lsn -o out/o.csv";
    for (live, dead, value) in
        [("9007199254740993", "0.5", "\"9007199254740993\""), ("7", "\"007\"", "\"007\"")]
    {
        work.put("in/log.ndjson", &(event(live, 1) + &event("8", 2) + &delete(dead)));
        work.run(compact).says(3, &[value, "id"]);
        work.holds_only(&[]);
    }
    work.put("in/log.ndjson", &(event("7", 1) + &event("8", 2) + &delete("8.0")));
    work.run(compact).succeeds();
    assert_eq!(work.read("out/o.csv").split(|&byte| byte == b'\n').count(), 3);
}

#[test]
fn figures_are_not_written_over_the_data() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let sort = "sort in/a.csv --by id -o out/o.csv --stats";
    work.run(&format!("{sort} in/a.csv")).says(2, &["--stats", "in/a.csv", "another file"]);
    work.run(&format!("{sort} out/o.csv")).says(2, &["--stats", "out/o.csv", "another file"]);
    work.run(&format!("{sort} out")).says(2, &["--stats", "directory"]);
    work.holds_only(&[]);
    work.run(&format!("{sort} out/stats.prom")).succeeds();
    let gauges = String::from_utf8(work.read("out/stats.prom")).expect("text");
    assert!(gauges.contains("windrow_rows_out 2\n") && gauges.contains("phase_seconds_read"));
}

#[test]
fn a_time_without_diffs_is_a_mistake() {
    let work = Work::new();
    work.put("in/a.csv", "id,lsn,ts\n1,1,1\n1,2,100\n");
    let compact = "compact in/a.csv --key id --order-by lsn --time ts --as-of 2 -o out/o.csv";
    work.run(compact).says(2, &["--time ts", "--diff"]);
}

#[test]
fn copies_of_a_row_take_no_memory_of_their_own() {
    let work = Work::new();
    work.put("in/a.csv", "a,ts,delta\nx,1,3000000\ny,1,2\n");
    let compact = "compact in/a.csv --time ts --diff delta -o out/o.parquet --threads 1 -q \
                   --memory-limit 64MiB --stats out/stats.json";
    work.run(compact).succeeds();
    let stats: serde_json::Value = serde_json::from_slice(&work.read("out/stats.json")).unwrap();
    assert_eq!(stats["rows_out"], 3_000_002);
    assert!(stats["peak_rss_bytes"].as_u64() <= Some(64 << 20), "{stats}");
}

fn dictionary(prefix: &str) -> RecordBatch {
    let values = StringArray::from_iter_values((0..100).map(|i| format!("{prefix}{i}")));
    let keys = Int8Array::from_iter_values(0..100);
    let column = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).expect("a column");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let other: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|i| i.to_string())));
    let columns = [("id", ids), ("other", other), ("category", Arc::new(column) as ArrayRef)];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

#[test]
fn dictionaries_with_too_many_values_are_named() {
    let work = Work::new();
    let (one, other) = (dictionary("a"), dictionary("b"));
    let file = File::create(work.path("in/a.arrows")).expect("created");
    let mut stream = StreamWriter::try_new(file, one.schema_ref()).expect("a writer");
    [&one, &other].into_iter().for_each(|batch| stream.write(batch).expect("written"));
    stream.finish().expect("finished");
    for output in ["o.parquet", "o.arrow", "o.arrows", "o.csv", "o.ndjson"] {
        let ran = work.run(&format!("sort in/a.arrows --by id -o out/{output}"));
        ran.says(3, &["in/a.arrows", "\"category\"", "Dictionary(Int8, Utf8)", "wider"]);
    }
    work.holds_only(&[]);
    work.run("sort in/a.arrows --by id --select id,other -o out/o.csv").succeeds();
}

#[test]
fn a_stream_that_is_copied_counts_as_temporary_space() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 600_000);
    let sort = "cat in/a.parquet | {} sort - --by lsn -o out/o.parquet -q --temp-dir temp";
    let ran = work.shell(&format!("{sort} --max-temp-size 100KiB"));
    ran.says(5, &["stdin", "temp", "--max-temp-size", "name a file"]);
    work.holds_only(&[]);
    work.shell(&format!("{sort} --max-temp-size 100MiB")).succeeds();
    // The copy reduces the temporary space for rows.
    let bytes = std::fs::metadata(work.path("in/a.parquet")).expect("there").len();
    let limit = "--memory-limit 64MiB --row-group-size 1MiB --threads 1";
    let tight = format!("{sort} {limit} --max-temp-size {}", bytes + 1000);
    work.shell(&tight).says(5, &["temporary"]);
    work.holds_only(&["o.parquet"]);
}

#[test]
fn nulls_where_none_can_be_are_told_with_their_row() {
    let work = Work::new();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
    let ones = Int64Array::from_iter((0..20_000).map(|i| (i != 12_345).then_some(1)));
    let columns = [("id", ids), ("n", Arc::new(ones) as ArrayRef)];
    write_arrow(&work, "in/a.arrow", &RecordBatch::try_from_iter(columns).expect("a batch"));
    for line in [
        "compact in/a.arrow --diff n -o out/o.csv",
        "merge in/a.arrow in/a.arrow --by id --consolidate --diff n -o out/o.csv",
        "compact in/a.arrow --diff id --time n --as-of 5 -o out/o.csv",
    ] {
        work.run(line).says(3, &["in/a.arrow", "row 12345", "\"n\"", "null"]);
    }
    work.holds_only(&[]);
}

#[test]
fn sequence_numbers_of_wal2json_are_numbers() {
    let work = Work::new();
    work.put(
        "in/a.ndjson",
        "{\"action\":\"U\",\"lsn\":\"0/10000000\",\"id\":1,\"v\":\"new\"}\n\
         {\"action\":\"I\",\"lsn\":\"0/FFFFFFF\",\"id\":1,\"v\":\"old\"}\n\
         {\"action\":\"I\",\"lsn\":\"16/B374D848\",\"id\":2,\"v\":\"x\"}\n",
    );
    let compact = "compact in/a.ndjson --op-preset wal2json --key id --order-by lsn -o out/o.csv";
    work.run(compact).succeeds();
    assert_eq!(work.read("out/o.csv"), b"lsn,id,v\n0/10000000,1,new\n16/B374D848,2,x\n");
    work.run(&format!("{compact} --as-of 0/FFFFFFF")).succeeds();
    assert_eq!(work.read("out/o.csv"), b"lsn,id,v\n0/FFFFFFF,1,old\n");
    let descending = compact.replace("lsn", "lsn:desc");
    work.run(&format!("{descending} --mode log")).succeeds();
    let log = "action,lsn,id,v\nI,0/FFFFFFF,1,old\nI,16/B374D848,2,x\n";
    assert_eq!(String::from_utf8_lossy(&work.read("out/o.csv")), log);
    work.run(&format!("{compact} --as-of 7")).says(2, &["--as-of", "log sequence number"]);
    work.put(
        "in/a.ndjson",
        "{\"action\":\"I\",\"lsn\":\"0/1\",\"id\":1}\n{\"action\":\"I\",\"lsn\":\"7\",\"id\":1}\n",
    );
    work.run(compact).says(3, &["a.ndjson", "row 1", "\"lsn\"", "\"7\""]);
    // A column of numbers stays unchanged.
    work.put(
        "in/a.ndjson",
        "{\"action\":\"I\",\"lsn\":9,\"id\":1}\n{\"action\":\"I\",\"lsn\":10,\"id\":1}\n",
    );
    work.run(compact).succeeds();
    assert_eq!(work.read("out/o.csv"), b"lsn,id\n10,1\n");
}

#[test]
fn long_lines_keep_the_limit() {
    let work = Work::new();
    let line = |i: usize| format!("{},{}\n", (i * 7919) % 1000, format!("{i:08x}").repeat(3000));
    work.put("in/a.csv", &("id,v\n".to_owned() + &(0..1500).map(line).collect::<String>()));
    for limit in [64, 96] {
        let sort = format!(
            "sort in/a.csv --by id -o out/o.parquet -q --memory-limit {limit}MiB \
             --stats out/stats.json --row-group-size 4MiB"
        );
        work.run(&sort).succeeds();
        let stats: serde_json::Value =
            serde_json::from_slice(&work.read("out/stats.json")).unwrap();
        assert_eq!(stats["rows_out"], 1500);
        let peak = stats["peak_rss_bytes"].as_u64().unwrap();
        assert!(peak <= limit << 20, "{limit} MiB: {} MiB", peak >> 20);
    }
}

#[test]
fn lines_that_become_long_behind_the_sample_keep_the_limit() {
    let work = Work::new();
    let short = (0..200_000).map(|i| format!("{},x\n", i % 1000)).collect::<String>();
    assert!(short.len() > 1 << 20, "longer than the sample");
    let long = |i: usize| format!("{i},\"{}\n\"\n", format!("{i:06x}").repeat(1500));
    let long: String = (0..6000).map(long).collect();
    work.put("in/a.csv", format!("id,v\n{short}{long}"));
    work.run("sort in/a.csv --by id -o in/a.ndjson").succeeds();
    for input in ["a.csv", "a.ndjson"] {
        let sort = format!(
            "sort in/{input} --by id -o out/o.csv -q --memory-limit 64MiB --stats out/stats.json"
        );
        work.run(&sort).succeeds();
        let stats: serde_json::Value =
            serde_json::from_slice(&work.read("out/stats.json")).unwrap();
        assert_eq!(stats["rows_out"], 206_000);
        let peak = stats["peak_rss_bytes"].as_u64().unwrap();
        assert!(peak <= 64 << 20, "{input}: {} MiB", peak >> 20);
    }
}

#[test]
fn times_that_have_no_text_are_refused() {
    let work = Work::new();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, i64::MAX / 1000 + 1]));
    let columns = [("id", ids), ("at", far)];
    write_arrow(&work, "in/a.arrow", &RecordBatch::try_from_iter(columns).expect("a batch"));
    for output in ["o.csv", "o.ndjson", "o.parquet"] {
        let ran = work.run(&format!("sort in/a.arrow --by id -o out/{output}"));
        ran.says(3, &["\"at\"", "9223372036854776", "Timestamp(s)", "--select"]);
    }
    work.holds_only(&[]);
    work.run("sort in/a.arrow --by id -o out/o.arrow").succeeds();
}

#[test]
fn sizes_too_small_to_be_meant() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let sort = "sort in/a.csv --by id -o out/o.parquet";
    for size in ["0", "1", "63KiB"] {
        let ran = work.run(&format!("{sort} --row-group-size {size}"));
        ran.says(2, &["--row-group-size", "64 KiB"]);
    }
    work.run(&format!("{sort} --page-size 1")).says(2, &["--page-size", "4096 B"]);
    work.run(&format!("{sort} --page-size 4KiB --row-group-size 64KiB")).succeeds();
}
