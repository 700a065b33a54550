//! Tests of row groups that are in order already: they are copied if and only if the result equals
//! sorting.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, SortingColumn,
};
use parquet::file::properties::WriterProperties;
use windrow_files::{
    Compression, ErrorKind, Inputs, Job, Limits, MergeSpec, ReadOptions, Result, SortSpec, Source,
    Stats, Target, WriteOptions, asc, desc,
};

/// A directory with Parquet files.
struct Files(tempfile::TempDir);

/// Makes rows with these ids, each with its index in the batch and the name of its writer.
fn rows(ids: impl IntoIterator<Item = Option<i64>>, by: &str) -> RecordBatch {
    let id: Int64Array = ids.into_iter().collect();
    let count = i64::try_from(id.len()).unwrap();
    let place: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let text = (0..count).map(|place| format!("{by} {}", place % 1000));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(text));
    let id: ArrayRef = Arc::new(id);
    RecordBatch::try_from_iter_with_nullable([
        ("id", id, true),
        ("place", place, false),
        ("text", text, false),
    ])
    .unwrap()
}

/// Returns each id of the range twice, shuffled.
fn shuffled(from: i64, to: i64) -> Vec<Option<i64>> {
    let count = to - from;
    (0..2 * count).map(|i| Some(from + i * 7919 % count)).collect()
}

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file of these rows, unsorted, with another writer.
    fn foreign(&self, name: &str, batch: &RecordBatch) -> PathBuf {
        let path = self.path(name);
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        path
    }

    /// Writes a file of these rows, sorted.
    fn sorted(&self, name: &str, batch: &RecordBatch, spec: &SortSpec) -> PathBuf {
        let source = self.foreign("unsorted.parquet", batch);
        let path = self.path(name);
        let stats = sort(&[&source], spec, &WriteOptions::default(), &path).unwrap();
        assert_eq!(stats.row_groups_passed, 0);
        path
    }
}

fn open(paths: &[&Path]) -> Inputs {
    let sources: Vec<Source> = paths.iter().map(|path| Source::File(path.into())).collect();
    Inputs::open(&sources, &ReadOptions::default()).unwrap()
}

fn sort(paths: &[&Path], spec: &SortSpec, write: &WriteOptions, to: &Path) -> Result<Stats> {
    Job::sort(open(paths), spec)?.write(&Target::of(to), write, &Limits::default())
}

fn read(path: &Path) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = builder.schema().clone();
    let reader: ParquetRecordBatchReader = builder.build().unwrap();
    concat_batches(&schema, &reader.map(|batch| batch.unwrap()).collect::<Vec<_>>()).unwrap()
}

fn row_groups(path: &Path) -> u64 {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    builder.metadata().num_row_groups() as u64
}

/// Returns the bytes of all column chunks, and the footer.
fn pages(path: &Path) -> (Vec<u8>, ParquetMetaData) {
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&File::open(path).unwrap())
        .unwrap();
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let end = chunks.map(|chunk| chunk.byte_range().0 + chunk.byte_range().1).max().unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(usize::try_from(end).unwrap());
    (bytes, metadata)
}

/// Options with the default values, but set explicitly, so that everything is encoded.
fn anew() -> WriteOptions {
    WriteOptions::default().compression(Compression::Zstd(2))
}

/// Sorts `paths` in both ways, and checks that the rows are equal. Returns the numbers of copied
/// and of all row groups.
fn passed(files: &Files, paths: &[&Path], spec: &SortSpec) -> (u64, u64) {
    let (to, anew_to) = (files.path("passed.parquet"), files.path("anew.parquet"));
    let stats = sort(paths, spec, &WriteOptions::default(), &to).unwrap();
    assert_eq!(sort(paths, spec, &anew(), &anew_to).unwrap().row_groups_passed, 0);
    let rows = read(&to);
    assert_eq!(rows, read(&anew_to));
    assert_eq!((stats.rows_in, stats.rows_out), (rows.num_rows() as u64, rows.num_rows() as u64));
    (stats.row_groups_passed, row_groups(&to))
}

#[test]
fn a_sorted_file_is_passed_on_byte_by_byte() {
    let files = Files::new();
    let spec = SortSpec::by(desc("id"));
    let mut ids = shuffled(0, 150_000);
    ids.push(None);
    let file = files.sorted("a.parquet", &rows(ids, "a"), &spec);
    assert_eq!(passed(&files, &[&file], &spec), (3, 3));
    for copy in ["passed.parquet", "anew.parquet"] {
        assert!(pages(&files.path(copy)) == pages(&file), "{copy}");
    }
    // The output may also replace its input.
    let (usual, before) = (WriteOptions::default(), pages(&file));
    assert_eq!(sort(&[&file], &spec, &usual, &file).unwrap().row_groups_passed, 3);
    assert!(pages(&file) == before);
}

#[test]
fn files_follow_by_their_keys() {
    let files = Files::new();
    for spec in [SortSpec::by(asc("id")), SortSpec::by([desc("id"), asc("text")])] {
        let sorted = |name: &str, from, to| {
            files.sorted(&format!("{name}.parquet"), &rows(shuffled(from, to), name), &spec)
        };
        let (a, b, c) =
            (sorted("a", 0, 1000), sorted("b", 1000, 90_000), sorted("c", 90_000, 90_010));
        for order in [[&a, &b, &c], [&c, &b, &a], [&b, &c, &a]] {
            assert_eq!(passed(&files, &order.map(PathBuf::as_path), &spec), (4, 4));
        }
        let to = files.path("merged.parquet");
        let merge = MergeSpec::by(spec.by.clone());
        let stats = Job::merge(open(&[&b, &a, &c]), &merge)
            .unwrap()
            .write(&Target::of(&to), &WriteOptions::default(), &Limits::default())
            .unwrap();
        assert_eq!(stats.row_groups_passed, 4);
        assert_eq!(read(&to), read(&files.path("passed.parquet")));
    }
}

#[test]
fn files_that_overlap_are_merged() {
    let files = Files::new();
    let spec = SortSpec::by(asc("id"));
    let a = files.sorted("a.parquet", &rows(shuffled(0, 1000), "a"), &spec);
    let b = files.sorted("b.parquet", &rows(shuffled(999, 2000), "b"), &spec);
    let c = files.sorted("c.parquet", &rows(shuffled(100, 200), "c"), &spec);
    assert_eq!(passed(&files, &[&a, &c], &spec), (0, 1));
    assert_eq!(passed(&files, &[&a, &b, &c], &spec), (0, 1));
    // Rows with the key 999 are in both files. Rows of the first input come first.
    assert_eq!(passed(&files, &[&a, &b], &spec), (2, 2));
    assert_eq!(passed(&files, &[&b, &a], &spec), (0, 1));
}

#[test]
fn nulls_are_not_in_the_bounds() {
    let files = Files::new();
    let spec = SortSpec::by(asc("id").nulls_first());
    let some = |ids: &[i64], name: &str| {
        let ids = ids.iter().map(|&id| (id > 0).then_some(id));
        files.sorted(&format!("{name}.parquet"), &rows(ids, name), &spec)
    };
    let (a, b) = (some(&[1, 2, 3], "a"), some(&[0, 7, 8], "b"));
    assert_eq!(passed(&files, &[&a, &b], &spec), (0, 1));
    assert_eq!(passed(&files, &[&b], &spec), (1, 1));
    let none = files.sorted("none.parquet", &rows([], "none"), &spec);
    assert_eq!(passed(&files, &[&none, &a, &none], &spec), (1, 1));
    assert_eq!(passed(&files, &[&none], &spec), (0, 0));
}

#[test]
fn the_order_of_less_is_the_order_of_more_columns() {
    let files = Files::new();
    let spec = SortSpec::by([asc("id"), asc("place")]);
    let file = files.sorted("a.parquet", &rows(shuffled(0, 1000), "a"), &spec);
    assert_eq!(passed(&files, &[&file], &SortSpec::by("id")), (1, 1));
    assert_eq!(passed(&files, &[&file], &spec), (1, 1));
    // Rows that are in order by fewer columns are in this order as well, which a read of them shows.
    let other = SortSpec::by([asc("id"), asc("place"), asc("text")]);
    assert_eq!(passed(&files, &[&file], &other), (1, 1));
    assert_eq!(passed(&files, &[&file], &SortSpec::by(desc("id"))), (0, 1));
}

#[test]
fn what_a_footer_says_is_not_believed() {
    let files = Files::new();
    let spec = SortSpec::by("id");
    let honest = files.sorted("honest.parquet", &rows(shuffled(0, 1000), "a"), &spec);
    let file = File::open(&honest).unwrap();
    let footer = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().clone();
    let created_by = footer.file_metadata().created_by().unwrap().to_owned();
    let sorting = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    let properties = WriterProperties::builder()
        .set_created_by(created_by)
        .set_compression(Codec::ZSTD(ZstdLevel::try_new(2).unwrap()))
        .set_sorting_columns(Some(vec![sorting]))
        .set_max_row_group_row_count(Some(700))
        .build();
    let lies = |name: &str, batch: &RecordBatch| {
        let path = files.path(name);
        let file = File::create(&path).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties.clone())).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        path
    };
    let batch = read(&honest);
    assert_eq!(passed(&files, &[&lies("true.parquet", &batch)], &spec), (3, 3));
    // Disorder within a row group, and between row groups.
    let mixed = lies("mixed.parquet", &rows(shuffled(0, 1000), "a"));
    assert_eq!(passed(&files, &[&mixed], &spec), (0, 1));
    let turned = [batch.slice(700, 700), batch.slice(0, 700), batch.slice(1400, 600)];
    let turned = lies("turned.parquet", &concat_batches(&batch.schema(), &turned).unwrap());
    assert_eq!(passed(&files, &[&turned], &spec), (0, 1));
}

#[test]
fn damage_is_found_before_anything_is_written() {
    let files = Files::new();
    let spec = SortSpec::by("id");
    let file = files.sorted("a.parquet", &rows(shuffled(0, 10_000), "a"), &spec);
    let mut bytes = fs::read(&file).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap();
    // A column that is compared with nothing.
    let (start, length) = builder.metadata().row_group(0).column(2).byte_range();
    bytes[usize::try_from(start + length / 2).unwrap()] ^= 1;
    fs::write(&file, bytes).unwrap();
    let to = files.path("to.parquet");
    let error = sort(&[&file], &spec, &WriteOptions::default(), &to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert!(!to.exists());
}

#[test]
fn what_is_asked_for_is_encoded() {
    let files = Files::new();
    let spec = SortSpec::by("id");
    let file = files.sorted("a.parquet", &rows(shuffled(0, 1000), "a"), &spec);
    let to = files.path("to.parquet");
    let usual = WriteOptions::default;
    for write in [
        usual().compression(Compression::Snappy),
        usual().page_bytes(8 << 10),
        usual().row_group_bytes(1 << 20),
        usual().checksums(false),
        usual().statistics(false),
    ] {
        assert_eq!(sort(&[&file], &spec, &write, &to).unwrap().row_groups_passed, 0, "{write:?}");
    }
    for spec in [spec.clone().select(["id", "place"]), spec.clone().limit(5)] {
        assert_eq!(sort(&[&file], &spec, &usual(), &to).unwrap().row_groups_passed, 0);
    }
    let other = files.path("to.arrow");
    assert_eq!(sort(&[&file], &spec, &usual(), &other).unwrap().row_groups_passed, 0);
}
