//! Parquet: a unit is a row group.
//!
//! A footer can be far larger than what is planned from it, so ten thousand of them are not kept: a
//! file keeps the rows of its groups, and the footers of the files being read are in a small cache.
//! Statistics and page indexes are not loaded; `inspect` asks for a footer with them.

use std::collections::VecDeque;
use std::io::BufReader;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::ConvertedType;
use parquet::file::metadata::{ParquetMetaData, ParquetStatisticsPolicy, RowGroupMetaData};

use crate::error::{Error, Result};
use crate::format::Format;

use super::int96::{self, Seconds};
use super::origin::{Origin, RandomFile};
use super::{Batches, Content, Opened, SortColumn, Span, dictionaries, estimate, footer_depth};

/// A footer and the Arrow schema in it.
pub(crate) type Footer = ArrowReaderMetadata;

/// Footers kept: one for each of the threads that read, and some more for a merge of few files.
const CACHED_FOOTERS: usize = 8;

/// The footers used last, by the ordinal of their file.
#[derive(Default)]
pub(super) struct FooterCache(Mutex<VecDeque<(usize, Footer)>>);

impl FooterCache {
    fn get(&self, file: usize) -> Option<Footer> {
        let mut footers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = footers.iter().position(|(key, _)| *key == file)?;
        let found = footers.remove(place)?;
        let footer = found.1.clone();
        footers.push_back(found);
        Some(footer)
    }

    fn put(&self, file: usize, footer: Footer) {
        let mut footers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        footers.retain(|(key, _)| *key != file);
        if footers.len() == CACHED_FOOTERS {
            footers.pop_front();
        }
        footers.push_back((file, footer));
    }
}

/// Values that are decoded at a time, as they were before compression.
const BATCH_BYTES: usize = 2 << 20;

struct ParquetFile {
    origin: Origin,
    ordinal: usize,
    /// To notice a file that was replaced after it was opened.
    rows: u64,
    groups: usize,
    batch_rows: usize,
    bloom_filters: bool,
    encrypted: bool,
    footers: Arc<FooterCache>,
}

/// Reads the footer of `origin` and plans its row groups.
pub(super) fn open(
    origin: Origin,
    ordinal: usize,
    batch_rows: usize,
    footers: Arc<FooterCache>,
) -> Result<Opened> {
    let file = origin.random()?;
    let footer = load(&origin, &file, ParquetStatisticsPolicy::SkipAll)?;
    let metadata = footer.metadata();
    intervals_are_whole(metadata).map_err(|what| origin.error(what))?;
    let mut spans = Vec::with_capacity(metadata.num_row_groups());
    let mut rows = 0;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let in_group = plausible(group, file.len()).map_err(|what| {
            origin.error(format!("the file is damaged: row group {index}: {what}"))
        })?;
        spans.push(Span { part: index..index + 1, first_row: rows, rows: Some(in_group) });
        rows += in_group;
    }
    let batch_rows = batch_rows_of(metadata, batch_rows);
    let mut columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let bloom_filters = columns.any(|column| column.bloom_filter_offset().is_some());
    let encrypted = footer_start(&file)
        .is_some_and(|start| footer_depth::is_encrypted(BufReader::new(file.reader_at(start))));
    let opened = Opened {
        format: Format::Parquet,
        schema: footer.schema().clone(),
        bytes: Some(file.len()),
        rows: Some(rows),
        reader_bytes: match encrypted {
            // No page of it can be looked at.
            true => 0,
            false => estimate::parquet_reader(metadata, &Arc::new(file), batch_rows),
        },
        row_bytes: longest_row(metadata),
        content: Box::new(ParquetFile {
            origin,
            ordinal,
            rows,
            groups: spans.len(),
            batch_rows,
            bloom_filters,
            encrypted,
            footers: footers.clone(),
        }),
        spans,
    };
    footers.put(ordinal, footer);
    Ok(opened)
}

/// The rows of a batch: fewer where rows are long.
fn batch_rows_of(metadata: &ParquetMetaData, most: usize) -> usize {
    most.min(BATCH_BYTES / longest_row(metadata).max(1)).max(1)
}

/// Bytes of a row on average, in the row group where that is most: as it is in the file or, where a
/// dictionary makes it shorter there, as it is decoded.
fn longest_row(metadata: &ParquetMetaData) -> usize {
    let row_bytes = |group: &RowGroupMetaData| {
        let bytes = usize::try_from(group.total_byte_size()).unwrap_or(0);
        let written = bytes / usize::try_from(group.num_rows()).unwrap_or(0).max(1);
        written.max(estimate::decoded_row(group))
    };
    metadata.row_groups().iter().map(row_bytes).max().unwrap_or(0)
}

/// Refuses intervals of another writer than Arrow's: they have months, days and milliseconds, and would
/// be read as days and milliseconds alone.
fn intervals_are_whole(metadata: &ParquetMetaData) -> Result<(), String> {
    let file = metadata.file_metadata();
    let arrow = file.key_value_metadata().is_some_and(|pairs| {
        pairs.iter().any(|pair| pair.key == parquet::arrow::ARROW_SCHEMA_META_KEY)
    });
    let mut columns = file.schema_descr().columns().iter();
    match columns.find(|column| column.converted_type() == ConvertedType::INTERVAL) {
        Some(column) if !arrow => Err(format!(
            "column '{}' is an INTERVAL, the months of which cannot be read; cast it to a number or \
             to text first",
            column.path().string()
        )),
        _ => Ok(()),
    }
}

fn load(origin: &Origin, file: &RandomFile, statistics: ParquetStatisticsPolicy) -> Result<Footer> {
    if let Some(start) = footer_start(file) {
        let footer = BufReader::new(file.reader_at(start));
        footer_depth::check(footer).map_err(|what| origin.error(what))?;
    }
    let options = ArrowReaderOptions::new()
        .with_column_stats_policy(statistics)
        // The counts of pages in it tell how large a page is.
        .with_encoding_stats_as_mask(false);
    ArrowReaderMetadata::load(file, options)
        .and_then(dictionaries::settled)
        .and_then(int96::settled)
        .map_err(|cause| origin.error(unreadable(file, &cause)))
}

/// Where the footer of a file begins that ends as Parquet does.
fn footer_start(file: &RandomFile) -> Option<u64> {
    let end = file.len().checked_sub(8)?;
    let tail = file.read_exact(end, 8).ok()?;
    let (length, magic) = tail.split_first_chunk::<4>()?;
    end.checked_sub(u64::from(u32::from_le_bytes(*length))).filter(|_| magic == b"PAR1")
}

/// Says what is wrong with a file whose footer cannot be read.
fn unreadable(file: &RandomFile, cause: &dyn std::fmt::Display) -> String {
    let magic = |at| file.read_exact(at, 4).unwrap_or_default();
    let starts = magic(0) == b"PAR1";
    let ends = magic(file.len().saturating_sub(4)) == b"PAR1";
    if file.len() == 0 {
        "the file is empty, so it is not Parquet".into()
    } else if starts && !ends {
        format!(
            "the Parquet file is cut short, at {} bytes: its footer is missing; \
             copy it again, or let its writer finish",
            file.len()
        )
    } else if magic(0) == b"PARE" {
        "the file is encrypted, which is not read; decrypt it first".into()
    } else if !starts && !ends {
        "not a Parquet file; name its format with `input_format`".into()
    } else {
        format!("the Parquet footer is damaged: {cause}")
    }
}

/// The rows of `group`, if what it says of itself can be true in a file of `len` bytes.
fn plausible(group: &RowGroupMetaData, len: u64) -> Result<u64, String> {
    let rows = u64::try_from(group.num_rows()).map_err(|_| "a negative number of rows")?;
    for column in group.columns() {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = u64::try_from(start)
            .ok()
            .zip(u64::try_from(column.compressed_size()).ok())
            .and_then(|(start, length)| start.checked_add(length));
        if end.is_none_or(|end| end > len) || column.uncompressed_size() < 0 {
            return Err(format!(
                "column '{}' lies outside the file, which has {len} bytes; copy it again",
                column.column_path().string()
            ));
        }
    }
    Ok(rows)
}

/// The columns by which `group` says it is sorted.
pub(crate) fn declared_order(group: &RowGroupMetaData) -> Vec<SortColumn> {
    let columns = group.sorting_columns().into_iter().flatten();
    columns
        .map(|sorting| SortColumn {
            name: usize::try_from(sorting.column_idx)
                .ok()
                .filter(|leaf| *leaf < group.num_columns())
                .map_or_else(
                    || format!("(no column {})", sorting.column_idx),
                    |leaf| group.column(leaf).column_path().string(),
                ),
            descending: sorting.descending,
            nulls_first: sorting.nulls_first,
        })
        .collect()
}

/// The order that all row groups declare; empty if they differ.
pub(crate) fn common_order(metadata: &ParquetMetaData) -> Vec<SortColumn> {
    let mut orders = metadata.row_groups().iter().map(declared_order);
    let Some(first) = orders.next() else {
        return Vec::new();
    };
    if orders.all(|order| order == first) { first } else { Vec::new() }
}

impl Content for ParquetFile {
    fn name(&self) -> &Arc<str> {
        self.origin.name()
    }

    fn has_bloom_filters(&self) -> bool {
        self.bloom_filters
    }

    fn read(&self, part: Range<usize>, batch_rows: usize) -> Result<Batches> {
        if self.encrypted {
            return Err(self
                .origin
                .error("columns of it are encrypted, though its footer is not; decrypt it first"));
        }
        let file = self.origin.random()?;
        let footer = match self.footers.get(self.ordinal) {
            Some(footer) => footer,
            None => {
                let footer = load(&self.origin, &file, ParquetStatisticsPolicy::SkipAll)?;
                let groups = footer.metadata().row_groups();
                let rows: i64 = groups.iter().map(RowGroupMetaData::num_rows).sum();
                if groups.len() != self.groups || rows as u64 != self.rows {
                    return Err(self.origin.error("the file was replaced while it was read"));
                }
                self.footers.put(self.ordinal, footer.clone());
                footer
            }
        };
        let batch_rows = batch_rows.min(self.batch_rows);
        let mut seconds = Seconds::of(&file, &footer, part.clone(), batch_rows)
            .map_err(|cause| self.origin.error(cause))?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer)
            .with_row_groups(part.collect())
            .with_batch_size(batch_rows)
            .build()
            .map_err(|cause| self.origin.error(cause))?;
        let name = self.origin.name().clone();
        Ok(Box::new(reader.map(move |batch| {
            let batch = batch
                .map_err(|cause| Error::data(format!("{name}: the file is damaged: {cause}")))?;
            match seconds.as_mut().map_or(Ok(()), Seconds::check) {
                Ok(()) => Ok(batch),
                Err(fault) => Err(Error::data(format!("{name}: {fault}"))),
            }
        })))
    }

    fn footer(&self) -> Option<Result<Footer>> {
        let file = match self.origin.random() {
            Ok(file) => file,
            Err(error) => return Some(Err(error)),
        };
        Some(load(&self.origin, &file, ParquetStatisticsPolicy::KeepAll))
    }
}
