//! Unusable input: an exit code, a message that names the file, row and column, and no files left
//! behind. An existing output stays unchanged.

use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use crate::common::{self, Work, log_rows, write_log, write_parquet};
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};

/// Runs `verb` (with its inputs and options) into a new and into an existing Parquet file. Both
/// runs must end with `code` and a message that contains `parts`, and change nothing.
#[track_caller]
fn refuses(work: &Work, verb: &str, code: i32, parts: &[&str]) {
    for threads in [1, 2] {
        let rest = format!("--temp-dir temp --threads {threads}");
        work.run(&format!("{verb} -o out/new.parquet {rest}")).says(code, parts);
        work.holds_only(&[]);
        work.put("out/old.parquet", "old");
        work.run(&format!("{verb} -o out/old.parquet {rest}")).says(code, parts);
        work.holds_only(&["old.parquet"]);
        assert_eq!(work.read("out/old.parquet"), b"old");
        std::fs::remove_file(work.path("out/old.parquet")).expect("removed");
    }
}

#[test]
fn truncated_parquet() {
    let work = Work::new();
    write_log(&work.path("in/whole.parquet"), 20_000);
    let whole = work.read("in/whole.parquet");
    for length in [1, 4, 11, 1000, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        work.put("in/cut.parquet", &whole[..length]);
        for verb in ["sort in/cut.parquet --by id", "compact in/cut.parquet --key id"] {
            refuses(&work, verb, 3, &["in/cut.parquet"]);
        }
        work.run("check in/cut.parquet --by id").says(3, &["in/cut.parquet"]);
        work.run("inspect in/cut.parquet").says(3, &["in/cut.parquet"]);
    }
    // The footer is complete, the pages are not.
    let mut holed = whole.clone();
    holed.drain(1000..2000);
    work.put("in/cut.parquet", &holed);
    refuses(&work, "sort in/whole.parquet in/cut.parquet --by id", 3, &["in/cut.parquet"]);
    work.put("in/empty.parquet", "");
    refuses(&work, "sort in/empty.parquet --by id", 3, &["in/empty.parquet", "empty"]);
}

#[test]
fn row_groups_that_a_footer_lists_twice() {
    let work = Work::new();
    write_log(&work.path("in/whole.parquet"), 1_000);
    let whole = work.read("in/whole.parquet");
    let file = std::fs::File::open(work.path("in/whole.parquet")).expect("there");
    let footer = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer");
    let group = footer.row_group(0).clone();
    // The same row group again; and a row group in which the second column has the bytes of the
    // first.
    let shared = group.columns().iter().cloned().enumerate().map(|(place, chunk)| match place {
        1 => {
            let first = group.column(0);
            let chunk = chunk.into_builder().set_dictionary_page_offset(None);
            chunk.set_data_page_offset(first.byte_range().0 as i64 + 1).build().expect("a chunk")
        }
        _ => chunk,
    });
    let crossed = group.clone().into_builder().set_column_metadata(shared.collect());
    for (groups, part) in [
        (vec![group.clone(), group.clone()], "row groups 0 and 1"),
        (vec![crossed.build().expect("a row group")], "row group 0"),
    ] {
        let damaged = footer.clone().into_builder().set_row_groups(groups).build();
        let end = whole.len() - 8;
        let length = u32::from_le_bytes(whole[end..end + 4].try_into().expect("four bytes"));
        let mut bytes = whole[..end - length as usize].to_vec();
        ParquetMetaDataWriter::new(&mut bytes, &damaged).finish().expect("written");
        work.put("in/a.parquet", &bytes);
        for options in ["", "--where id>=0", "--where id<0"] {
            let sort = format!("sort in/a.parquet --by id {options}");
            refuses(&work, &sort, 3, &["in/a.parquet", part, "damaged"]);
        }
    }
}

#[test]
fn damaged_parquet_is_an_error_or_other_values_and_never_a_panic() {
    let work = Work::new();
    write_log(&work.path("in/whole.parquet"), 2_000);
    let whole = work.read("in/whole.parquet");
    for at in (4..whole.len()).step_by(whole.len() / 60) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        work.put("in/bad.parquet", &bytes);
        let ran = work.run("sort in/bad.parquet --by id -o out/o.parquet --temp-dir temp -q");
        if ran.code == Some(0) {
            std::fs::remove_file(work.path("out/o.parquet")).expect("removed");
        } else {
            ran.says(3, &["in/bad.parquet"]);
        }
        work.holds_only(&[]);
    }
}

#[test]
fn not_the_format_that_the_name_says() {
    let work = Work::new();
    work.put("in/a.parquet", "id,name\n1,x\n");
    refuses(&work, "sort in/a.parquet --by id", 3, &["in/a.parquet", "not a Parquet file"]);
    work.put("in/a.arrow", "id,name\n1,x\n");
    refuses(&work, "sort in/a.arrow --by id", 3, &["in/a.arrow", "not an Arrow"]);
    work.put("in/a.dat", "id,name\n1,x\n");
    refuses(&work, "sort in/a.dat --by id", 2, &["in/a.dat", "--input-format"]);
}

#[test]
fn ragged_csv() {
    let work = Work::new();
    let rows = |bad: &str| {
        let good: String = (0..20_000).map(|row| format!("{row},name {row}\n")).collect();
        format!("id,name\n{good}{bad}\n{good}")
    };
    for bad in ["1", "1,a,b"] {
        work.put("in/a.csv", rows(bad));
        refuses(&work, "sort in/a.csv --by id", 3, &["in/a.csv", "line 20002", "fields"]);
    }
    work.put("in/a.csv", rows("x,a"));
    let parts = ["in/a.csv", "line 20002", "'x'", "Int64", "'id'"];
    refuses(&work, "sort in/a.csv --by id --schema id:int64", 3, &parts);
}

#[test]
fn invalid_utf8() {
    let work = Work::new();
    work.put("in/a.csv", b"id,name\n1,a\n2,\xFF\n");
    refuses(&work, "sort in/a.csv --by id", 3, &["in/a.csv", "line 3", "'name'", "UTF-8"]);
    let typed = "sort in/a.csv --by id --schema id:int64,name:utf8";
    refuses(&work, typed, 3, &["in/a.csv", "line 3", "'name'", "UTF-8"]);
    work.put("in/a.ndjson", b"{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"\xFF\"}\n");
    refuses(&work, "sort in/a.ndjson --by id", 3, &["in/a.ndjson", "line 2"]);
    work.put("in/b.ndjson", "{\"id\":1}\n{\"id\":\n");
    refuses(&work, "sort in/b.ndjson --by id", 3, &["in/b.ndjson", "line"]);

    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "needle", "b"]));
    let batch = RecordBatch::try_from_iter([("s", text)]).expect("a column");
    write_parquet(&work.path("in/a.parquet"), &batch);
    let mut bytes = work.read("in/a.parquet");
    let place = bytes.windows(6).position(|window| window == b"needle").expect("there");
    bytes[place] = 0xFF;
    work.put("in/a.parquet", bytes);
    refuses(&work, "sort in/a.parquet --by s", 3, &["in/a.parquet"]);
}

#[test]
fn schemas_that_differ() {
    let work = Work::new();
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let put = |name: &str, columns: Vec<(&str, ArrayRef)>| {
        let batch = RecordBatch::try_from_iter(columns).expect("columns");
        write_parquet(&work.path(name), &batch);
    };
    put("in/a.parquet", vec![("id", one.clone()), ("n", one.clone())]);
    put("in/b.parquet", vec![("id", one.clone()), ("n", text)]);
    put("in/c.parquet", vec![("id", one.clone())]);
    put("in/d.parquet", vec![("id", one.clone()), ("n", one.clone()), ("more", one)]);
    for (file, column) in
        [("in/b.parquet", "'n'"), ("in/c.parquet", "'n'"), ("in/d.parquet", "'more'")]
    {
        for verb in ["sort", "merge"] {
            let verb = format!("{verb} in/a.parquet {file} --by id");
            refuses(&work, &verb, 3, &["in/a.parquet", file, column]);
        }
    }
}

#[test]
fn columns_that_are_not_there() {
    let work = Work::new();
    work.put("in/a.csv", "id,name\n1,x\n");
    for verb in [
        "sort in/a.csv --by nme",
        "sort in/a.csv --by id --select id,nme",
        "compact in/a.csv --key nme",
        "compact in/a.csv --key id --order-by nme",
        "compact in/a.csv --key id --op-column nme",
        "compact in/a.csv --diff nme",
        "compact in/a.csv --diff id --time nme",
        "merge in/a.csv --by nme",
    ] {
        refuses(&work, verb, 2, &["nme", "the columns are id, name"]);
    }
    work.run("check in/a.csv --by nme").says(2, &["nme", "the columns are id, name"]);
}

#[test]
fn files_that_cannot_be_opened() {
    let work = Work::new();
    work.put("in/a.csv", "id\n1\n");
    refuses(&work, "sort in/a.csv in/none.csv --by id", 3, &["in/none.csv", "no such file"]);
    refuses(&work, "sort in/*.parquet --by id", 3, &["in/*.parquet"]);
    refuses(&work, "sort temp --by id", 2, &["temp"]);
    // Root can read the file in spite of its mode.
    use std::os::unix::fs::PermissionsExt;
    let hidden = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(work.path("in/a.csv"), hidden).expect("changed");
    if std::fs::File::open(work.path("in/a.csv")).is_err() {
        refuses(&work, "sort in/a.csv --by id", 3, &["in/a.csv", "permission denied"]);
    }
}

#[test]
fn negative_counts_in_a_snapshot() {
    let work = Work::new();
    work.put("in/a.csv", "id,name,d\n1,a,1\n2,b,-1\n1,a,1\n3,c,-2\n3,c,1\n4,d,5\n");
    let parts = ["2 rows", "negative", "id=2", "name=\"b\"", "d=-1", "id=3"];
    refuses(&work, "compact in/a.csv --diff d", 3, &parts);
    refuses(&work, "compact in/a.csv --diff d --keep-bookkeeping", 3, &parts);
    work.run("compact in/a.csv --diff d --mode log -o out/log.csv").succeeds();
}

#[test]
fn operations_that_are_none() {
    let work = Work::new();
    let good = |id: i64| format!("{id},I\n");
    let rows: String =
        (0..10_000).map(good).chain(["7,X\n".into()]).chain((0..9).map(good)).collect();
    work.put("in/good.csv", "id,op\n1,I\n");
    work.put("in/bad.csv", format!("id,op\n{rows}"));
    let verb = "compact in/good.csv in/bad.csv --key id --op-column op";
    refuses(&work, verb, 3, &["in/bad.csv", "row 10000", "\"op\"", "\"X\""]);
    work.put("in/null.csv", "id,op\n1,I\n2,\n");
    let verb = "compact in/null.csv --key id --op-column op";
    refuses(&work, verb, 3, &["in/null.csv", "row 1", "\"op\""]);
}

#[test]
fn times_and_diffs_of_no_use() {
    let work = Work::new();
    work.put("in/a.csv", "id,t,d\n1,1,1\n2,2,\n");
    refuses(&work, "compact in/a.csv --diff d", 3, &["in/a.csv", "\"d\""]);
    work.put("in/b.csv", "id,t,d\n1,1,x\n");
    refuses(&work, "compact in/b.csv --diff d", 2, &["\"d\""]);
    work.put("in/c.csv", "id,t,d\n1,1,1\n");
    refuses(&work, "compact in/c.csv --diff d --time t --as-of noon", 2, &["\"noon\"", "\"t\""]);
    refuses(&work, "compact in/c.csv --diff d --as-of 1", 2, &["--time"]);
}

#[test]
fn merged_files_that_are_not_sorted() {
    let work = Work::new();
    let batch = log_rows(0, 30_000, 30_000, 100);
    let order = arrow_ord::sort::sort_to_indices(batch.column(1), None, None).expect("sorted");
    let sorted = arrow_select::take::take_record_batch(&batch, &order).expect("taken");
    write_parquet(&work.path("in/a.parquet"), &sorted);
    let mut order: Vec<u64> = order.values().iter().map(|&row| u64::from(row)).collect();
    order.swap(20_000, 20_001);
    let swapped = arrow_select::take::take_record_batch(&batch, &UInt64Array::from(order));
    write_parquet(&work.path("in/b.parquet"), &swapped.expect("taken"));
    let verb = "merge in/a.parquet in/b.parquet --by lsn";
    refuses(&work, verb, 3, &["in/b.parquet", "row 20001"]);
    work.run("check in/a.parquet --by lsn --unique").succeeds();
    work.run("check in/b.parquet --by lsn").says(1, &["in/b.parquet", "row 20001"]);
    work.run("check in/b.parquet --by lsn -q").says(1, &[]);
    let batch = arrow_select::concat::concat_batches(
        &sorted.schema(),
        [&sorted.slice(0, 5), &sorted.slice(4, 5)],
    );
    write_parquet(&work.path("in/c.parquet"), &batch.expect("one schema"));
    work.run("check in/c.parquet --by lsn").succeeds();
    work.run("check in/c.parquet --by lsn --unique")
        .says(1, &["in/c.parquet", "row 5", "same key"]);
}

#[test]
fn outputs_that_cannot_be() {
    let work = Work::new();
    work.put("in/a.ndjson", "{\"id\":1,\"tags\":[1,2]}\n");
    let sort = "sort in/a.ndjson --by id --temp-dir temp";
    work.run(&format!("{sort} -o out/none/o.parquet")).says(2, &["out/none", "create it first"]);
    work.run(&format!("{sort} -o out --output-format ndjson")).says(2, &["out", "directory"]);
    work.run(&format!("{sort} -o out/o.what")).says(2, &["out/o.what", "--output-format"]);
    work.run(&format!("{sort} -o out/o.csv")).says(2, &["\"tags\""]);
    work.run(&format!("{sort} -o out/o.arrow --compression snappy")).says(2, &["snappy"]);
    work.holds_only(&[]);
}

#[test]
fn numbers_too_large_to_sum() {
    let work = Work::new();
    let diffs: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX]));
    let ids: ArrayRef =
        Arc::new(arrow_array::PrimitiveArray::<Int64Type>::from_iter_values([7, 7]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("d", diffs)]).expect("columns");
    write_parquet(&work.path("in/a.parquet"), &batch);
    refuses(&work, "compact in/a.parquet --diff d", 3, &["overflow", "id=7"]);
}

#[test]
fn columns_nested_deeper_than_readers_go() {
    let work = Work::new();
    let nested = |depth| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("{{\"id\":1,\"v\":{open}1{close}}}\n")
    };
    for output in ["o.parquet", "o.arrow", "o.arrows"] {
        work.put("in/a.ndjson", nested(60));
        work.run(&format!("sort in/a.ndjson --by v -o out/{output}")).succeeds();
        work.run(&format!("sort out/{output} --by v -o out/o.ndjson")).succeeds();
        assert_eq!(work.text("out/o.ndjson"), nested(60));
        work.put("in/a.ndjson", nested(61));
        let ran = work.run(&format!("sort in/a.ndjson --by v -o out/{output}"));
        ran.says(2, &["\"v\"", "62 deep", "NDJSON"]);
    }
    work.put("in/a.ndjson", nested(126));
    work.run("sort in/a.ndjson --by v -o out/o.ndjson").succeeds();
    assert_eq!(work.text("out/o.ndjson"), nested(126));
    // A schema whose reader would recur a million times: a root with a leaf in as many groups.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc, 0xc2, 0x84, 0x3d, 0x48, 1, b'r', 0x15, 2, 0];
    footer.extend([0x35, 2, 0x18, 1, b'g', 0x15, 2, 0].repeat(1_000_000));
    footer.extend([0x15, 4, 0x25, 2, 0x18, 1, b'v', 0, 0x16, 0, 0x19, 0x0c, 0]);
    let length = u32::try_from(footer.len()).expect("of a few MB").to_le_bytes();
    work.put("in/a.parquet", [&b"PAR1"[..], &footer, &length, b"PAR1"].concat());
    for line in ["inspect in/a.parquet", "sort in/a.parquet --by g -o out/o.csv"] {
        work.run(line).says(3, &["a.parquet", "nested more than 256 deep"]);
    }
}

#[test]
fn arrow_one_behind_the_other() {
    let work = Work::new();
    work.put("in/a.csv", "id\n1\n2\n");
    work.put("in/none.csv", "id\n");
    for (extension, said) in [("arrow", "several files in a row"), ("arrows", "more bytes behind")]
    {
        for (first, second) in [("a", "a"), ("a", "none"), ("none", "a"), ("none", "none")] {
            let mut all = Vec::new();
            for name in [first, second] {
                let line = format!("sort in/{name}.csv --by id --schema id:int64 -q -o in/{name}");
                work.run(&format!("{line}.{extension}")).succeeds();
                all.extend(work.read(&format!("in/{name}.{extension}")));
            }
            work.put(&format!("in/all.{extension}"), all);
            let parts = ["each as an input of its own", said];
            refuses(&work, &format!("sort in/all.{extension} --by id"), 3, &parts);
            let format = if extension == "arrow" { "arrow" } else { "arrow-stream" };
            let sort = format!("sort - --by id --input-format {format} -o out/o.csv");
            work.shell(&format!("cat in/all.{extension} | {{}} {sort}")).says(3, &parts);
        }
    }
    // Some writers put no length before a schema without rows.
    let mut none = work.read("in/none.arrow");
    let frame = none.windows(4).position(|word| word == [0xFF; 4]).expect("a frame");
    none.drain(frame..frame + 8);
    work.put("in/none.arrow", none);
    work.run("sort in/none.arrow --by id -o out/o.csv").succeeds();
    assert_eq!(work.read("out/o.csv"), b"id\n");
}

#[test]
fn text_that_becomes_shorter() {
    let work = Work::new();
    assert!(work.shell("mkfifo in/fifo").code == Some(0));
    for (name, line) in [("a.csv", "1,some text\n"), ("a.ndjson", "{\"id\":1,\"s\":\"text\"}\n")] {
        let rows = line.repeat(200_000);
        let format = name.split_once('.').expect("a dot").1;
        let head = if format == "csv" { "id,s\n" } else { "" };
        work.put(&format!("in/{name}"), format!("{head}{rows}"));
        let sort = format!("sort in/{name} in/fifo --input-format {format} --by id -o out/o.csv");
        let child = work.command(&sort).spawn().expect("started");
        // The pipe opens when the job opens it, after the job's look at the file. Non-blocking,
        // because the job may never open it.
        let (mut fifo, at_once) = (None, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        common::wait_until("a reader of the pipe", || {
            let mut options = std::fs::File::options();
            fifo = options.write(true).custom_flags(at_once).open(work.path("in/fifo")).ok();
            fifo.is_some()
        });
        let mut fifo = fifo.expect("open");
        let file = std::fs::File::options().write(true).open(work.path(&format!("in/{name}")));
        let whole = head.len() + 100_000 * line.len();
        file.expect("open").set_len(whole as u64).expect("cut");
        std::io::Write::write_all(&mut fifo, format!("{head}{line}").as_bytes()).expect("written");
        drop(fifo);
        common::ran(child).says(3, &[name, "when the job began"]);
        work.holds_only(&[]);
    }
}
