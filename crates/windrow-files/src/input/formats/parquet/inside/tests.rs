//! The spans of a page, beside the lengths of the rows that were written.

use std::fs::File;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::input::options::ReadOptions;
use crate::input::source::origin::Origin;

use super::super::pages::Pages;
use super::*;

/// Bytes of an item besides the value, and bytes of a value whose length is unknown.
const FIXED: u64 = 20;
const MEAN: u64 = 8;

/// The items of a row: `None` is a null.
type Row = Option<Vec<Option<usize>>>;

fn row_bytes(row: &Row) -> u64 {
    let items = row.as_deref().filter(|items| !items.is_empty()).unwrap_or(&[None]);
    items.iter().map(|item| FIXED + item.unwrap_or(0) as u64).sum()
}

/// Checks the spans of `column`, written as one page, in both versions of pages.
#[track_caller]
fn spans_are_those_of(rows: &[Row], column: &ArrayRef) {
    let rows: Vec<u64> = rows.iter().map(row_bytes).collect();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let set = WriterProperties::builder().set_writer_version(version);
        let set = set.set_dictionary_enabled(false).set_encoding(Encoding::PLAIN);
        let set =
            set.set_data_page_size_limit(usize::MAX).set_data_page_row_count_limit(usize::MAX);
        let batch =
            RecordBatch::try_from_iter_with_nullable([("a", column.clone(), true)]).unwrap();
        let to = File::create(file.path()).unwrap();
        let mut writer = ArrowWriter::try_new(to, batch.schema(), Some(set.build())).unwrap();
        writer.write(&batch).unwrap();
        let footer = writer.close().unwrap();
        let chunk = footer.row_group(0).column(0);

        let origin = Origin::of_path(file.path(), &ReadOptions::default()).unwrap();
        let random = Arc::new(origin.random().unwrap());
        let pages: Vec<Page> = Pages::of(&random, chunk).collect();
        assert_eq!(pages.len(), 1);
        let inside = Inside::of(&random, chunk, &pages[0], FIXED, MEAN).unwrap();
        let spans: Vec<Span> = inside.spans().collect();

        let mut left = rows.as_slice();
        for span in &spans {
            let (within, behind) = left.split_at(usize::try_from(span.rows).unwrap());
            left = behind;
            assert_eq!(span.bytes, within.iter().sum::<u64>(), "{span:?}");
            assert_eq!(Some(&span.longest), within.iter().max(), "{span:?}");
            // No rows next to each other have far more than their share.
            let (mut above, mut most) = (0_i64, 0);
            for row in within {
                above = 0.max(above + *row as i64 - 2 * span.width() as i64);
                most = most.max(above);
            }
            assert!(most <= GRAIN as i64, "{span:?}: {most}");
        }
        assert_eq!(left, [0_u64; 0]);
        assert!(spans.len() <= 12, "{} spans", spans.len());
    }
}

/// Lengths of values: short ones, long ones next to each other, nulls, and some long ones alone.
fn lengths() -> Vec<Option<usize>> {
    let mut lengths: Vec<Option<usize>> = (0..20_000).map(|row| Some(row % 7)).collect();
    lengths.extend([Some(3 << 20); 5]);
    lengths.extend((0..10_000).map(|row| (row % 3 > 0).then_some(row % 90)));
    lengths.extend([None; 5000]);
    lengths.extend([Some(400 << 10), Some(1), Some(300 << 10), None]);
    lengths.extend([Some(2000); 500]);
    lengths
}

#[test]
fn of_strings() {
    let lengths = lengths();
    let rows: Vec<Row> = lengths.iter().map(|length| Some(vec![*length])).collect();
    let mut column = StringBuilder::new();
    lengths.iter().for_each(|length| column.append_option(length.map(|length| "x".repeat(length))));
    spans_are_those_of(&rows, &(Arc::new(column.finish()) as ArrayRef));
}

#[test]
fn of_lists() {
    // Lists of 0 to 3 texts, nulls among them, and one list with most of the items.
    let lengths = lengths();
    let (mut rows, mut rest, mut turn) = (Vec::<Row>::new(), lengths.as_slice(), 0);
    while !rest.is_empty() {
        let count = if turn == 8000 { 6000 } else { turn % 4 };
        let (items, behind) = rest.split_at(count.min(rest.len()));
        rows.push((turn % 5 > 0 || count > 0).then(|| items.to_vec()));
        (rest, turn) = (behind, turn + 1);
    }
    let mut texts = ListBuilder::new(StringBuilder::new());
    for row in &rows {
        let items = row.iter().flatten();
        items.for_each(|item| texts.values().append_option(item.map(|length| "x".repeat(length))));
        texts.append(row.is_some());
    }
    spans_are_those_of(&rows, &(Arc::new(texts.finish()) as ArrayRef));

    let mut numbers = ListBuilder::new(Int64Builder::new());
    for row in &mut rows {
        for item in row.iter_mut().flatten() {
            numbers.values().append_option(item.map(|length| length as i64));
            *item = item.map(|_| usize::try_from(MEAN).unwrap());
        }
        numbers.append(row.is_some());
    }
    spans_are_those_of(&rows, &(Arc::new(numbers.finish()) as ArrayRef));
}
