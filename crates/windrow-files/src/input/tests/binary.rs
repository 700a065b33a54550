//! Tests of Parquet and both Arrow formats, and of several files as one input.

use super::*;

#[test]
fn parquet_is_read_by_row_group() {
    let dir = tempfile::tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &rows(0, 1000), 300);
    write_parquet(&dir.path().join("b.parquet"), &rows(1000, 1100), 300);
    let inputs = open(&dir, &["a.parquet", "b.parquet"], &options(128)).unwrap();
    let places: Vec<_> =
        inputs.units.iter().map(|unit| (unit.file, unit.first_row, unit.rows)).collect();
    let expected = [
        (0, 0, Some(300)),
        (0, 300, Some(300)),
        (0, 600, Some(300)),
        (0, 900, Some(100)),
        (1, 0, Some(100)),
    ];
    assert_eq!(places, expected);
    assert_eq!(inputs.rows(), Some(1100));
    assert!(inputs.bytes().unwrap() > 1000);
    assert!((1 << 16..16 << 20).contains(&inputs.needs.reader_bytes));
    assert_eq!(read(&inputs, 128).unwrap().columns(), rows(0, 1100).columns());
}

#[test]
fn units_are_read_in_any_order_and_again_on_any_thread() {
    let dir = tempfile::tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &rows(0, 5000), 100);
    let inputs = open(&dir, &["a.parquet"], &options(64)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let units = &inputs.units;
            scope.spawn(move || {
                for unit in units.iter().rev().skip(thread) {
                    let mut row = unit.first_row as i64;
                    for batch in unit.read(&Watch::default()).unwrap() {
                        let batch = batch.unwrap();
                        let ids = batch.column(0).as_primitive::<Int64Type>();
                        assert_eq!(ids.value(0), row);
                        row += batch.num_rows() as i64;
                    }
                }
            });
        }
    });
}

#[test]
fn many_files_are_not_held_open() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..200).map(|i| format!("{i:03}.parquet")).collect();
    for (i, name) in names.iter().enumerate() {
        write_parquet(&dir.path().join(name), &rows(i as i64, i as i64 + 2), 1);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let inputs = open(&dir, &names, &options(64)).unwrap();
    assert_eq!(inputs.units.len(), 400);
    #[cfg(target_os = "linux")]
    {
        let held = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let held = held.filter_map(|fd| fs::read_link(fd.path()).ok());
        assert_eq!(held.filter(|file| file.starts_with(dir.path())).count(), 0);
    }
    assert_eq!(read(&inputs, 64).unwrap().num_rows(), 400);
}

#[test]
fn arrow_files_are_read_by_ranges_of_batches() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let batches: Vec<_> = (0..4).map(|i| rows(i * 500, i * 500 + 500)).collect();
        write_arrow(&dir.path().join("a.arrow"), &batches, codec);
        let inputs = open(&dir, &["a.arrow"], &options(64)).unwrap();
        assert_eq!(inputs.rows(), Some(2000));
        assert_eq!(inputs.units.len(), 1, "dictionaries are read once");
        let read = read(&inputs, 64).unwrap();
        assert_eq!(read.columns(), rows(0, 2000).columns());
    }
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1 << 20));
    let large = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let batches = [large.clone(), large.clone(), large.clone()];
    write_arrow(&dir.path().join("b.arrow"), &batches, None);
    let inputs = open(&dir, &["b.arrow"], &options(8192)).unwrap();
    let first_rows: Vec<_> = inputs.units.iter().map(|unit| unit.first_row).collect();
    assert_eq!(first_rows, [0, 2 << 20]);
    assert!(inputs.needs.reader_bytes >= 8 << 20);
    assert_eq!(read(&inputs, 8192).unwrap().num_rows(), 3 << 20);
}

#[test]
fn arrow_streams_are_read_from_files_and_from_stdin() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [None, Some(CompressionType::ZSTD)] {
        let bytes = stream_bytes(&[rows(0, 300), rows(300, 600)], codec);
        // The extension of a file does not identify its format.
        fs::write(dir.path().join("a.arrow"), &bytes).unwrap();
        let inputs = open(&dir, &["a.arrow"], &options(100)).unwrap();
        assert_eq!(inputs.files()[0].format, Format::ArrowStream);
        assert_eq!(inputs.rows(), Some(600));
        let expected = rows(0, 600);
        assert_eq!(read(&inputs, 100).unwrap().columns(), expected.columns());
        let inputs = open_stdin(bytes, &options(100)).unwrap();
        assert_eq!((inputs.rows(), inputs.bytes()), (None, None));
        assert_eq!(read(&inputs, 100).unwrap().columns(), expected.columns());
        assert!(inputs.units[0].read(&Watch::default()).is_err(), "stdin passes once");
    }
}

#[test]
fn an_empty_stream_has_its_schema() {
    let bytes = stream_bytes(&[rows(0, 0)], None);
    let inputs = open_stdin(bytes, &options(100)).unwrap();
    assert_eq!(inputs.schema(), &rows(0, 0).schema());
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 0);
}

#[test]
fn stdin_tells_its_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let in_dir = ReadOptions { temp_dir: Some(dir.path().to_owned()), ..options(100) };
    write_parquet(&path, &rows(0, 250), 100);
    let inputs = open_stdin(fs::read(&path).unwrap(), &in_dir).unwrap();
    assert_eq!(inputs.units.len(), 3);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 250);
    write_arrow(&path, &[rows(0, 250)], None);
    let inputs = open_stdin(fs::read(&path).unwrap(), &in_dir).unwrap();
    assert_eq!(inputs.files()[0].format, Format::ArrowFile);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 250);
    let inputs = open_stdin(b"a,b\n1,x\n2,y\n".to_vec(), &in_dir).unwrap();
    assert_eq!(inputs.files()[0].format, Format::Csv);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 2);
    let inputs = open_stdin(b"{\"a\":1}\n{\"a\":2}".to_vec(), &in_dir).unwrap();
    assert_eq!(inputs.files()[0].format, Format::Ndjson);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 2);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no copy is left");
}

#[test]
fn columns_in_another_order_are_put_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let batch = rows(0, 20);
    write_parquet(&dir.path().join("a.parquet"), &batch, 10);
    let turned = batch.project(&[2, 0, 1]).unwrap();
    write_parquet(&dir.path().join("b.parquet"), &turned, 10);
    let inputs = open(&dir, &["a.parquet", "b.parquet"], &options(100)).unwrap();
    let read = read(&inputs, 100).unwrap();
    assert_eq!(read.slice(20, 20).columns(), batch.columns());
    fs::write(dir.path().join("c.csv"), "a,b\n1,x\n").unwrap();
    fs::write(dir.path().join("d.csv"), "b,a\n5,2\n").unwrap();
    let inputs = open(&dir, &["c.csv", "d.csv"], &options(100)).unwrap();
    let read = super::read(&inputs, 100).unwrap();
    assert_eq!(read.column(1).as_string::<i32>().value(1), "5");
}

#[test]
fn a_column_is_nullable_if_it_is_so_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    for (name, nullable) in [("a.arrow", false), ("b.arrow", true)] {
        let schema = Schema::new(vec![Field::new("id", DataType::Int64, nullable)]);
        let ids = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![ids]).unwrap();
        write_arrow(&dir.path().join(name), &[batch], None);
    }
    let inputs = open(&dir, &["a.arrow", "b.arrow"], &options(10)).unwrap();
    assert!(inputs.schema().field(0).is_nullable());
    assert_eq!(read(&inputs, 10).unwrap().num_rows(), 4);
    let inputs = open(&dir, &["a.arrow"], &options(10)).unwrap();
    assert!(!inputs.schema().field(0).is_nullable());
}
