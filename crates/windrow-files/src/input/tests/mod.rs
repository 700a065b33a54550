//! Tests of whole files, good and bad, of each format. This file holds their helpers.

mod binary;
mod cuts;
mod faults;
mod text;

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::metadata::SortingColumn;
use ::parquet::file::properties::WriterProperties;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int64Array, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use arrow_select::concat::concat_batches;
use tempfile::TempDir;

use crate::error::ErrorKind;
use crate::watch::Watch;

use super::*;

/// Rows `from..to`: a number, its text with nulls, its last digit as a dictionary.
fn rows(from: i64, to: i64) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    let name: ArrayRef = Arc::new(StringArray::from_iter(
        (from..to).map(|i| (i % 7 != 0).then(|| format!("name {i}"))),
    ));
    let digits: Vec<String> = (from..to).map(|i| (i % 10).to_string()).collect();
    let digit: DictionaryArray<Int32Type> = digits.iter().map(String::as_str).collect();
    RecordBatch::try_from_iter([("id", id), ("name", name), ("digit", Arc::new(digit) as _)])
        .unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, group: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_sorting_columns(Some(vec![SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: true,
        }]))
        .build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batches: &[RecordBatch], codec: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
}

fn stream_bytes(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

fn options(batch_rows: usize) -> ReadOptions {
    ReadOptions { batch_rows: Some(batch_rows), ..ReadOptions::default() }
}

fn open(dir: &TempDir, names: &[&str], options: &ReadOptions) -> Result<Inputs> {
    let sources: Vec<Source> =
        names.iter().map(|name| Source::File(dir.path().join(name))).collect();
    Inputs::open(&sources, options)
}

fn open_stdin(bytes: Vec<u8>, options: &ReadOptions) -> Result<Inputs> {
    Inputs::open_with(&[Source::Stdin], options, Box::new(Cursor::new(bytes)))
}

/// Reads all batches of all units, and checks them against the units' promises.
fn read(inputs: &Inputs, batch_rows: usize) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    for unit in &inputs.units {
        for batch in unit.read(&Watch::default())? {
            let batch = batch?;
            assert!(batch.num_rows() > 0 && batch.num_rows() <= batch_rows);
            assert_eq!(batch.schema_ref(), inputs.schema());
            batches.push(batch);
        }
    }
    Ok(concat_batches(inputs.schema(), &batches).unwrap())
}

/// Returns the message of an expected error from opening or reading.
fn fault(dir: &TempDir, names: &[&str], options: &ReadOptions) -> String {
    let result = open(dir, names, options).and_then(|inputs| read(&inputs, options.batch_rows()));
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Data | ErrorKind::NotFound) => {
            error.to_string()
        }
        other => panic!("expected an error of the data, got {other:?}"),
    }
}

fn expect(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no '{part}' in: {message}");
    }
}
