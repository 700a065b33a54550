//! Tests of inputs that are unreadable, inconsistent, truncated or damaged: errors name the file,
//! and nothing panics.

use crate::error::ErrorKind;

use super::*;

#[test]
fn schemas_that_differ_are_told_with_both_files() {
    let dir = tempfile::tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &rows(0, 10), 10);
    let batch = rows(0, 10);
    write_parquet(&dir.path().join("fewer.parquet"), &batch.project(&[0, 1]).unwrap(), 10);
    let more: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", batch.column(0).clone()),
        ("name", batch.column(1).clone()),
        ("digit", batch.column(2).clone()),
    ];
    columns.push(("more", more.clone()));
    let wider = RecordBatch::try_from_iter(columns.clone()).unwrap();
    write_parquet(&dir.path().join("more.parquet"), &wider, 10);
    columns.pop();
    columns[1].1 = more;
    let other = RecordBatch::try_from_iter(columns).unwrap();
    write_parquet(&dir.path().join("other.parquet"), &other, 10);
    for (name, parts) in [
        ("fewer.parquet", ["'digit'", "missing"]),
        ("more.parquet", ["'more'", "not in"]),
        ("other.parquet", ["'name'", "Int64"]),
    ] {
        let message = fault(&dir, &["a.parquet", name], &options(10));
        expect(&message, &["a.parquet", name]);
        expect(&message, &parts);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let with = options(10);
    expect(&fault(&dir, &["none.parquet"], &with), &["none.parquet", "no such file"]);
    expect(&fault(&dir, &[""], &with), &["directory"]);
    fs::write(dir.path().join("a.parquet"), "id,name\n1,x\n").unwrap();
    let message = fault(&dir, &["a.parquet"], &with);
    expect(&message, &["a.parquet", "not a Parquet file", "`input_format`"]);
    fs::write(dir.path().join("a.arrow"), "id,name\n1,x\n").unwrap();
    expect(&fault(&dir, &["a.arrow"], &with), &["a.arrow", "not an Arrow"]);
    for name in ["e.parquet", "e.arrow", "e.arrows", "e.csv", "e.ndjson"] {
        fs::write(dir.path().join(name), "").unwrap();
        expect(&fault(&dir, &[name], &with), &[name]);
    }
    fs::write(dir.path().join("a.txt"), "id,name\n1,x\n").unwrap();
    assert!(open(&dir, &["a.txt"], &with).is_err_and(|error| error.kind() == ErrorKind::Usage));
    assert!(Inputs::open(&[], &with).is_err_and(|error| error.kind() == ErrorKind::Usage));
}

/// Opens and reads `bytes` as a file. The result may be anything except a panic or more rows than
/// written.
fn survives(dir: &TempDir, name: &str, bytes: &[u8]) -> Result<RecordBatch> {
    fs::write(dir.path().join(name), bytes).unwrap();
    open(dir, &[name], &options(50)).and_then(|inputs| read(&inputs, 50))
}

#[test]
fn files_cut_short_are_faults_and_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("whole");
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        match name {
            "a.parquet" => write_parquet(&path, &rows(0, 300), 100),
            "a.arrow" => write_arrow(&path, &[rows(0, 300)], Some(CompressionType::LZ4_FRAME)),
            _ => fs::write(&path, stream_bytes(&[rows(0, 300)], None)).unwrap(),
        }
        let whole = fs::read(&path).unwrap();
        assert_eq!(survives(&dir, name, &whole).unwrap().num_rows(), 300);
        for length in (0..whole.len()).step_by(1 + whole.len() / 97) {
            let result = survives(&dir, name, &whole[..length]);
            // A stream may end between two frames.
            if name != "a.arrows" {
                let message = result.unwrap_err().to_string();
                expect(&message, &[name]);
            }
        }
        // Missing bytes in the middle leave the end in place.
        for at in [10, whole.len() / 3, whole.len() / 2] {
            let holed = [&whole[..at], &whole[at + 5..]].concat();
            assert!(survives(&dir, name, &holed).is_err(), "{name} at {at}");
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("whole");
    for name in ["a.parquet", "a.arrow", "b.arrow", "a.arrows"] {
        match name {
            "a.parquet" => write_parquet(&path, &rows(0, 200), 100),
            "a.arrow" => write_arrow(&path, &[rows(0, 200)], Some(CompressionType::ZSTD)),
            "b.arrow" => write_arrow(&path, &[rows(0, 200)], None),
            _ => fs::write(&path, stream_bytes(&[rows(0, 200)], None)).unwrap(),
        }
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(1 + whole.len() / 199) {
            for flip in [0x01, 0x80, 0xFF] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                // Changed bytes of values are valid values, so the result cannot be checked.
                let _ = survives(&dir, name, &bytes);
            }
        }
    }
}

#[test]
fn invalid_utf8_in_parquet_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "needle", "b"]));
    let batch = RecordBatch::try_from_iter([("s", text)]).unwrap();
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(plain)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let mut places = bytes.windows(6).enumerate().filter(|(_, at)| *at == b"needle");
    let place = places.next().unwrap().0;
    assert!(survives(&dir, "b.parquet", &bytes).is_ok());
    bytes[place] = 0xFF;
    let message = survives(&dir, "b.parquet", &bytes).unwrap_err().to_string();
    expect(&message, &["b.parquet", "UTF-8"]);
}
