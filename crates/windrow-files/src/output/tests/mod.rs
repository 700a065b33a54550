//! Tests of every format: rows are read back, bytes do not depend on record batches, and no files
//! are left over.

mod rows;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::*;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::*;
use crate::error::ErrorKind;
use rows::{flat, nested, textual};

const ALL: [Format; 5] =
    [Format::Parquet, Format::ArrowFile, Format::ArrowStream, Format::Csv, Format::Ndjson];

fn target(directory: &tempfile::TempDir) -> (std::path::PathBuf, Destination) {
    let path = directory.path().join("out");
    (path.clone(), Destination::Path(path))
}

/// Writes parts of 20,000 rows each, made of record batches of `size` rows. Returns the file's
/// bytes.
fn write(
    make: fn(usize, usize) -> RecordBatch,
    parts: usize,
    size: usize,
    options: &OutputOptions,
) -> Vec<u8> {
    const ROWS: usize = 20_000;
    let directory = tempfile::tempdir().expect("a directory");
    let (path, target) = target(&directory);
    let sample = make(0, SAMPLE);
    let (encoder, mut appender) = open(&target, &sample.schema(), &sample, options).expect("opens");
    let encode = |part: usize| {
        let starts = (0..ROWS).step_by(size);
        let mut batches = starts.map(|start| Ok(make(part * ROWS + start, size.min(ROWS - start))));
        encoder.encode(&mut batches).expect("encodes")
    };
    // Encoded in any order, appended in order.
    let encoded: Vec<Part> = (0..parts).rev().map(encode).collect();
    for part in encoded.into_iter().rev() {
        appender.append(part).expect("appends");
    }
    assert!(!path.exists());
    let written = appender.finish().expect("finishes");
    let bytes = std::fs::read(&path).expect("the output");
    // The planned memory covers the output.
    let rows = make(0, ROWS);
    let part = PartRows { rows: ROWS, bytes: rows.get_array_memory_size(), longest: None };
    let part = part_bytes(&rows.schema(), options, part);
    assert!(bytes.len() <= parts.max(1) * part, "{:?}: {} > {part}", options.format, bytes.len());
    let expected = Written { rows: (parts * ROWS) as u64, bytes: bytes.len() as u64 };
    assert_eq!(written, expected);
    let left = std::fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(left, 1);
    bytes
}

const SAMPLE: usize = properties::SAMPLE_ROWS;

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

fn read(bytes: &[u8], schema: &SchemaRef, format: Format) -> RecordBatch {
    let cursor = std::io::Cursor::new(bytes);
    let batches: Result<Vec<RecordBatch>, _> = match format {
        Format::Avro => unreachable!("it is not written"),
        Format::Parquet => {
            let reader =
                ParquetRecordBatchReaderBuilder::try_new(file_of(bytes)).expect("a footer");
            assert_eq!(reader.schema(), &storable::storable(schema));
            let back = |batch: RecordBatch| {
                let columns = batch.columns().iter().zip(schema.fields());
                let typed =
                    |(column, field): (&ArrayRef, &FieldRef)| cast(column, field.data_type());
                RecordBatch::try_new(
                    Arc::clone(schema),
                    columns.map(typed).collect::<Result<_, _>>()?,
                )
            };
            reader.build().expect("a reader").map(|batch| back(batch?)).collect()
        }
        Format::ArrowFile => {
            let reader = FileReader::try_new(cursor, None).expect("a footer");
            assert_eq!(&reader.schema(), schema);
            reader.collect()
        }
        Format::ArrowStream => {
            let reader = StreamReader::try_new(cursor, None).expect("a schema");
            assert_eq!(&reader.schema(), schema);
            reader.collect()
        }
        Format::Csv => arrow_csv::ReaderBuilder::new(Arc::clone(schema))
            .with_header(true)
            .build(cursor)
            .expect("a reader")
            .collect(),
        Format::Ndjson => arrow_json::ReaderBuilder::new(Arc::clone(schema))
            .build(cursor)
            .expect("a reader")
            .collect(),
    };
    concat_batches(schema, &batches.expect("whole batches")).expect("one schema")
}

#[test]
fn every_type_comes_back() {
    for format in [Format::Parquet, Format::ArrowFile, Format::ArrowStream] {
        for make in [flat, nested] {
            let bytes = write(make, 2, 8192, &OutputOptions::new(format));
            let expected = make(0, 40_000);
            assert_eq!(read(&bytes, &expected.schema(), format), expected, "{format:?}");
        }
    }
    for format in [Format::Csv, Format::Ndjson] {
        let bytes = write(textual, 2, 8192, &OutputOptions::new(format));
        let expected = textual(0, 40_000);
        assert_eq!(read(&bytes, &expected.schema(), format), expected, "{format:?}");
    }
}

#[test]
fn bytes_do_not_depend_on_batches() {
    for format in ALL {
        let makes: &[fn(usize, usize) -> RecordBatch] = match format {
            Format::Csv => &[flat],
            _ => &[flat, nested],
        };
        for &make in makes {
            let mut options = OutputOptions::new(format);
            options.page_bytes = 4 << 10;
            let expected = write(make, 2, 8192, &options);
            for (size, in_turn) in [(100, false), (1024, true), (1500, false), (20_000, true)] {
                options.columns_in_turn = in_turn;
                assert!(write(make, 2, size, &options) == expected, "{format:?}, {size}");
            }
        }
    }
}

#[test]
fn codecs_are_what_readers_know() {
    let all = ["none", "snappy", "lz4", "zstd:3", "gzip", "brotli"];
    for (format, codecs) in [
        (Format::Parquet, &all[..]),
        (Format::ArrowFile, &["none", "lz4", "zstd"]),
        (Format::ArrowStream, &["none", "lz4", "zstd"]),
    ] {
        for codec in codecs {
            let mut options = OutputOptions::new(format);
            options.write.compression = Some(codec.parse().expect("a codec"));
            let bytes = write(flat, 1, 8192, &options);
            let expected = flat(0, 20_000);
            assert_eq!(read(&bytes, &expected.schema(), format), expected, "{codec}");
        }
    }
    let mut options = OutputOptions::new(Format::ArrowFile);
    options.write.compression = Some(Compression::Snappy);
    let sample = textual(0, 1);
    let refused = open(&Destination::Stdout, &sample.schema(), &sample, &options);
    assert!(refused.is_err_and(|error| error.kind() == ErrorKind::Usage));
}

#[test]
fn no_parts_make_a_valid_file() {
    for format in ALL {
        let bytes = write(textual, 0, 1, &OutputOptions::new(format));
        let schema = textual(0, 0).schema();
        assert_eq!(read(&bytes, &schema, format).num_rows(), 0, "{format:?}");
    }
}

fn footer(bytes: &[u8]) -> ParquetMetaData {
    ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&file_of(bytes))
        .expect("a footer")
}

#[test]
fn the_footer_tells_order_and_pages() {
    let column = |name: &str, descending| DeclaredColumn {
        name: name.into(),
        descending,
        nulls_first: !descending,
    };
    let mut options = OutputOptions::new(Format::Parquet);
    options.page_bytes = 4 << 10;
    // A struct puts two leaves before `id`. The order ends before a column with several leaves.
    options.sorting = vec![column("id", true), column("struct", false), column("id", false)];
    let metadata = footer(&write(nested, 2, 8192, &options));
    assert_eq!(metadata.num_row_groups(), 2);
    for group in metadata.row_groups() {
        let sorting = group.sorting_columns().expect("an order");
        assert_eq!(sorting.len(), 1);
        assert_eq!(
            (sorting[0].column_idx, sorting[0].descending, sorting[0].nulls_first),
            (2, true, false)
        );
        let leaf = group.column(2);
        assert_eq!(leaf.column_path().string(), "id");
        assert!(leaf.statistics().is_some());
    }
    let pages = metadata.offset_index().expect("an index")[0][1].page_locations().len();
    assert!(pages > 1);
    assert!(metadata.column_index().is_some());
    assert!(
        metadata
            .file_metadata()
            .created_by()
            .is_some_and(|name| name.starts_with("windrow version "))
    );

    options.sorting = vec![column("gone", false), column("id", false)];
    let metadata = footer(&write(nested, 1, 8192, &options));
    assert!(metadata.row_group(0).sorting_columns().is_none());
}

#[test]
fn encodings_follow_the_sample() {
    use parquet::basic::Encoding;
    let metadata = footer(&write(flat, 1, 8192, &OutputOptions::new(Format::Parquet)));
    for column in metadata.row_group(0).columns() {
        let encodings: Vec<Encoding> = column.encodings().collect();
        let dictionary = column.dictionary_page_offset().is_some();
        match column.column_path().string().as_str() {
            "id" | "i32" | "ts_us" | "d18" => {
                assert!(encodings.contains(&Encoding::DELTA_BINARY_PACKED) && !dictionary)
            }
            "utf8" | "view" => {
                assert!(encodings.contains(&Encoding::DELTA_BYTE_ARRAY) && !dictionary)
            }
            "few" | "dictionary" => assert!(dictionary),
            _ => {}
        }
    }
}

#[test]
fn narrow_dictionaries_may_be_full() {
    // Two parts with 128 values of their own each, enough for an int8 dictionary.
    let part = |first: usize| {
        let keys = Int8Array::from_iter_values(0..=127);
        let values = StringArray::from_iter_values((first..first + 128).map(|i| i.to_string()));
        let column =
            DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).expect("keys in range");
        RecordBatch::try_from_iter([("d", Arc::new(column) as ArrayRef)]).expect("one column")
    };
    for format in ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let (_, target) = target(&directory);
        let sample = part(0);
        let (encoder, mut appender) =
            open(&target, &sample.schema(), &sample, &OutputOptions::new(format)).expect("opens");
        let mut both = [part(0), part(128)].into_iter().map(Ok);
        let appended = encoder.encode(&mut both).and_then(|part| appender.append(part));
        // A file has one dictionary for each column, and the user determines its key type.
        assert_eq!(
            appended.is_err(),
            format == Format::ArrowFile,
            "{format:?}: {:?}",
            appended.err()
        );
    }
}

#[test]
fn dropping_an_appender_leaves_nothing() {
    for format in ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, target) = target(&directory);
        std::fs::write(&path, "old").expect("written");
        let sample = textual(0, 10);
        let (encoder, mut appender) =
            open(&target, &sample.schema(), &sample, &OutputOptions::new(format)).expect("opens");
        let part = encoder.encode(&mut [Ok(sample)].into_iter()).expect("encodes");
        appender.append(part).expect("appends");
        drop(appender);
        let left: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").collect();
        assert_eq!(left.len(), 1);
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
    }
}

#[test]
fn refuses_what_cannot_be() {
    let directory = tempfile::tempdir().expect("a directory");
    let refuse = |path: &Path, make: fn(usize, usize) -> RecordBatch, format| {
        let sample = make(0, 1);
        let opened = open(
            &Destination::Path(path.into()),
            &sample.schema(),
            &sample,
            &OutputOptions::new(format),
        );
        match opened.err() {
            Some(error) if error.kind() == ErrorKind::Usage => error.to_string(),
            other => panic!("not refused: {other:?}"),
        }
    };
    assert!(refuse(directory.path(), textual, Format::Parquet).contains("is a directory"));
    let orphaned = directory.path().join("no/such/out");
    assert!(refuse(&orphaned, textual, Format::Csv).contains("create it first"));
    let file = directory.path().join("out");
    assert!(refuse(&file, nested, Format::Csv).contains("\"struct\""));
}

#[test]
fn devices_are_written_in_place_and_full_disks_are_space() {
    for format in ALL {
        let sample = textual(0, 5000);
        let write = |device: &str| -> Result<Written> {
            let target = Destination::Path(device.into());
            let (encoder, mut appender) =
                open(&target, &sample.schema(), &sample, &OutputOptions::new(format))?;
            appender.append(encoder.encode(&mut [Ok(sample.clone())].into_iter())?)?;
            appender.finish()
        };
        assert_eq!(write("/dev/null").expect("takes all").rows, 5000);
        if Path::new("/dev/full").exists() {
            assert!(
                write("/dev/full").is_err_and(|error| error.kind() == ErrorKind::Space),
                "{format:?}"
            );
        }
    }
}

#[test]
fn the_text_of_many_columns_is_that_of_few_rows() {
    let fields = (0..2000).map(|i| Field::new(format!("c{i}"), DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    for format in [Format::Csv, Format::Ndjson] {
        let part = PartRows { rows: 32_768, bytes: 4 << 20, longest: None };
        let planned = part_bytes(&schema, &OutputOptions::new(format), part);
        assert!((4 << 20..32 << 20).contains(&planned), "{format}: {planned}");
    }
}

#[test]
fn the_text_of_nested_lists_is_planned_for() {
    const ROWS: usize = 32_768;
    let bytes = 4 << 20;
    let options = OutputOptions::new(Format::Ndjson);
    let planned = |data_type: DataType| {
        let schema = Arc::new(Schema::new(vec![Field::new("v", data_type, true)]));
        part_bytes(&schema, &options, PartRows { rows: ROWS, bytes, longest: None })
    };
    let list = |of: DataType| DataType::new_list(of, true);
    let flat = planned(list(DataType::Int64));
    let deep = planned(list(list(list(list(list(DataType::Int64))))));
    assert!(deep <= flat && deep < 32 << 20, "{deep} where a flat list takes {flat}");

    // The maximum number of elements of a part, each with the longest text.
    let elements = bytes / 10;
    let values = Int64Array::from_iter_values((0..elements).map(|_| i64::MIN));
    let per_row = elements / ROWS;
    let offsets = OffsetBuffer::from_repeated_length(per_row, ROWS);
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let values = values.slice(0, per_row * ROWS);
    let lists = ListArray::try_new(field, offsets, Arc::new(values), None).expect("lists");
    let rows = RecordBatch::try_from_iter([("v", Arc::new(lists) as ArrayRef)]).expect("rows");
    let directory = tempfile::tempdir().expect("a directory");
    let (path, target) = target(&directory);
    let (encoder, mut appender) = open(&target, &rows.schema(), &rows, &options).expect("opens");
    let part = encoder.encode(&mut std::iter::once(Ok(rows))).expect("encodes");
    appender.append(part).expect("appends");
    appender.finish().expect("finishes");
    let written = std::fs::metadata(&path).expect("there").len();
    assert!(written <= flat as u64, "{written} bytes where {flat} were planned");
}
