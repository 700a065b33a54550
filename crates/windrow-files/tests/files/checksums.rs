//! Tests of checksums in Parquet pages: damage is an error, and never changes rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_select::concat::concat_batches;
use windrow_files::{
    Compression, Inputs, Job, Limit, Limits, ReadOptions, SortSpec, Source, Target, WriteOptions,
    expand,
};

const ROWS: i64 = 6000;
const FLIPS: u64 = 1000;

/// Columns with and without dictionaries, nulls and lists.
fn rows() -> RecordBatch {
    let some = |i: i64, every: i64| i % every != 0;
    let list =
        |i: i64| some(i, 5).then(|| (0..i % 4).map(|item| Some(item as i32)).collect::<Vec<_>>());
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        (
            "f",
            Arc::new(Float64Array::from_iter(
                (0..ROWS).map(|i| some(i, 7).then(|| i as f64 / 3.0)),
            )),
        ),
        (
            "few",
            Arc::new(StringArray::from_iter(
                (0..ROWS).map(|i| some(i, 9).then(|| format!("kind {}", i % 4))),
            )),
        ),
        (
            "many",
            Arc::new(StringArray::from_iter_values(
                (0..ROWS).map(|i| format!("{:x}", i * 0x9E37_79B9)),
            )),
        ),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..ROWS).map(list)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(path: &Path, options: &WriteOptions) -> RecordBatch {
    let rows = rows();
    let reader = RecordBatchIterator::new([Ok(rows.clone())], rows.schema());
    let inputs = Inputs::open(&[Source::reader("rows", reader)], &ReadOptions::default()).unwrap();
    let job = Job::sort(inputs, &SortSpec::by("id")).unwrap();
    job.write(&Target::of(path), options, &Limits::default()).unwrap();
    rows
}

/// Reads the rows of a file.
fn read(path: &Path) -> Result<RecordBatch, String> {
    let inputs = Inputs::open(&expand([path]).unwrap(), &ReadOptions::default());
    let job = inputs.and_then(|inputs| Job::sort(inputs, &SortSpec::by("id")));
    let limits = Limits::default().threads(1).memory(Limit::Unlimited);
    let job = job.and_then(|job| Ok((job.schema()?, job.batches(&limits)?)));
    let (schema, batches) = job.map_err(|error| error.to_string())?;
    let batches: Result<Vec<_>, _> = batches.collect();
    let batches = batches.map_err(|error| error.to_string())?;
    concat_batches(&schema, &batches).map_err(|error| error.to_string())
}

/// Returns the number of bytes before the footer.
fn pages(bytes: &[u8]) -> usize {
    let (_, tail) = bytes.split_at(bytes.len() - 8);
    bytes.len() - 8 - u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize
}

/// Flips single bits of the file. Returns the number of flips that change rows without an error.
fn silent(path: &Path, rows: &RecordBatch) -> u64 {
    let whole = fs::read(path).unwrap();
    let damaged = path.with_extension("damaged.parquet");
    let (end, mut state, mut silent) = (pages(&whole) as u64, 0x2545_F491_4F6C_DD1D_u64, 0);
    for _ in 0..FLIPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut bytes = whole.clone();
        bytes[(4 + (state >> 16) % (end - 4)) as usize] ^= 1 << (state % 8);
        fs::write(&damaged, bytes).unwrap();
        silent += u64::from(read(&damaged).is_ok_and(|read| read != *rows));
    }
    silent
}

fn file(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("a.parquet")
}

#[test]
fn files_of_any_codec_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let codecs = [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd(3)];
    for checksums in [true, false] {
        for codec in codecs {
            let options = WriteOptions::default()
                .compression(codec)
                .checksums(checksums)
                .page_bytes(4 << 10)
                .row_group_bytes(64 << 10);
            let rows = write(&file(&directory), &options);
            assert_eq!(read(&file(&directory)), Ok(rows), "{codec:?}, {checksums}");
        }
    }
}

#[test]
fn a_thousand_flips_are_never_silent() {
    let directory = tempfile::tempdir().unwrap();
    // Without a codec, only checksums detect damage.
    let options = WriteOptions::default().compression(Compression::None).page_bytes(4 << 10);
    let rows = write(&file(&directory), &options);
    assert_eq!(silent(&file(&directory), &rows), 0);
    let rows = write(&file(&directory), &options.checksums(false));
    assert!(silent(&file(&directory), &rows) > FLIPS / 2);
}
