//! What an open Parquet reader holds in memory, told from the footer.
//!
//! For each leaf column the reader holds a page as it was before compression, the dictionary (its values;
//! before any page, its page too) and the values of the batch being built, which grow by doubling. One
//! page at a time is also there compressed.
//!
//! ```text
//!  held = footer + max over leaves(compressed page)
//!       + sum over leaves(max(page + dictionary + 2 * batch_rows * width, 2 * dictionary) + codec)
//! ```
//! The footer does not tell the size of a page. Writers that count their pages give the mean, which is
//! doubled, as pages are uneven. Others are asked for the number of values in the first page: some
//! (DuckDB) write one page per column chunk, whatever its size.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, PageType, Type};
use parquet::column::page::PageReader;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageEncodingStats, ParquetMetaData, RowGroupMetaData,
};
use parquet::file::reader::SerializedPageReader;

use super::origin::RandomFile;

/// A chunk no larger than this is taken to be one page: looking closer would cost a read and gain
/// little. It is the page size that most writers aim at.
const SMALL_CHUNK: u64 = 1 << 20;

/// The buffers of the file and the batch reader itself.
const FIXED: u64 = 64 << 10;

/// A zstd context for decompression (`ZSTD_estimateDCtxSize()` is 95 KiB), one per leaf.
const ZSTD_CONTEXT: u64 = 128 << 10;

/// What a string is taken to need where a dictionary hides the lengths.
const STRING_GUESS: u64 = 32;

/// The heap that reading any one row group of `metadata` needs, with batches of `batch_rows`.
pub(super) fn parquet_reader(
    metadata: &ParquetMetaData,
    file: &Arc<RandomFile>,
    batch_rows: usize,
) -> usize {
    let leaves = metadata.file_metadata().schema_descr().num_columns();
    let mut held = FIXED + metadata.memory_size() as u64;
    let mut compressed_page = 0;
    for leaf in 0..leaves {
        // The leaf's largest chunk stands for all: pages are cut by the same rule in each.
        let Some((group, chunk)) = metadata
            .row_groups()
            .iter()
            .filter(|group| leaf < group.num_columns())
            .map(|group| (group, group.column(leaf)))
            .max_by_key(|(_, chunk)| chunk.uncompressed_size())
        else {
            continue;
        };
        let plain = size(chunk.uncompressed_size());
        let dictionary = dictionary_bytes(chunk);
        let page = plain_page_bytes(group, chunk, plain, file);
        let packed = size(chunk.compressed_size());
        compressed_page = compressed_page.max(scale(packed, page, plain).min(packed));
        let rows = (batch_rows as u64).min(size(group.num_rows()));
        let batch = rows.saturating_mul(row_bytes(group, chunk));
        let codec = match chunk.compression() {
            Compression::ZSTD(_) => ZSTD_CONTEXT,
            _ => 0,
        };
        // A batch of one row does not grow, and is gone when the next page is read beside the last.
        let growing = if rows > 1 { batch.saturating_mul(2) } else { batch.max(page) };
        let values = dictionary.saturating_add(page).saturating_add(growing);
        let read = dictionary.saturating_mul(2).max(values);
        // INT96 may be read twice at a time.
        let times = if chunk.column_type() == Type::INT96 { 2 } else { 1 };
        held = held.saturating_add(read.saturating_add(codec).saturating_mul(times));
    }
    usize::try_from(held.saturating_add(compressed_page)).unwrap_or(usize::MAX)
}

/// What a row of `group` takes once it is decoded, on average.
pub(super) fn decoded_row(group: &RowGroupMetaData) -> usize {
    let bytes = group.columns().iter().map(|chunk| row_bytes(group, chunk));
    usize::try_from(bytes.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
}

/// A size or a count of the footer; a negative one is that of a damaged file, told elsewhere.
fn size(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// `whole * part / of`, without overflow.
fn scale(whole: u64, part: u64, of: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(part) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// The dictionary page before compression, from its place before the first data page.
fn dictionary_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let plain = size(chunk.uncompressed_size());
    let Some(start) = chunk.dictionary_page_offset() else {
        return 0;
    };
    let packed = size(chunk.data_page_offset().saturating_sub(start));
    // Dictionaries compress worse than the indexes beside them or better; allow for twice the mean.
    scale(packed, plain, size(chunk.compressed_size())).saturating_mul(2).min(plain)
}

/// The largest plausible data page before compression.
fn plain_page_bytes(
    group: &RowGroupMetaData,
    chunk: &ColumnChunkMetaData,
    plain: u64,
    file: &Arc<RandomFile>,
) -> u64 {
    let data = |stat: &&PageEncodingStats| {
        matches!(stat.page_type, PageType::DATA_PAGE | PageType::DATA_PAGE_V2)
    };
    let stats = chunk.page_encoding_stats();
    let pages = stats.map(|stats| {
        let counts = stats.iter().filter(data).map(|stat| u64::try_from(stat.count).unwrap_or(0));
        counts.sum::<u64>()
    });
    let is_index = |stat: &PageEncodingStats| {
        matches!(stat.encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY)
    };
    // Pages of nothing but indexes into the dictionary: those take four bytes each, levels as many.
    let plain = match stats {
        Some(stats) if stats.iter().filter(data).all(is_index) => {
            plain.min(FIXED + 8 * size(chunk.num_values()))
        }
        _ => plain,
    };
    match pages {
        Some(0 | 1) => plain,
        // Values that are pages of their own are taken to be alike, as long rows are in all of the plan.
        Some(pages) if pages >= size(chunk.num_values()) => plain / pages,
        Some(pages) => (plain / pages).saturating_mul(2).min(plain),
        None if plain <= SMALL_CHUNK => plain,
        None => match values_of_first_page(group, chunk, file) {
            Some(values) => {
                scale(plain, values, size(chunk.num_values())).saturating_mul(2).min(plain)
            }
            None => plain,
        },
    }
}

/// The values in the first data page of `chunk`.
fn values_of_first_page(
    group: &RowGroupMetaData,
    chunk: &ColumnChunkMetaData,
    file: &Arc<RandomFile>,
) -> Option<u64> {
    let rows = usize::try_from(group.num_rows()).ok()?;
    let mut pages = SerializedPageReader::new(file.clone(), chunk, rows, None).ok()?;
    let mut page = pages.peek_next_page().ok()??;
    if page.is_dict {
        pages.skip_next_page().ok()?;
        page = pages.peek_next_page().ok()??;
    }
    page.num_levels.or(page.num_rows).map(|values| values as u64)
}

/// What a row of the leaf takes in a batch: values, offsets, levels.
fn row_bytes(group: &RowGroupMetaData, chunk: &ColumnChunkMetaData) -> u64 {
    let values = size(chunk.num_values()).max(1);
    let plain_mean = size(chunk.uncompressed_size()) / values;
    let value = match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE | Type::INT96 => 8,
        // A decimal of few bytes becomes one of 16.
        Type::FIXED_LEN_BYTE_ARRAY => size(chunk.column_descr().type_length().into()).max(16),
        // A view is 16 bytes where an offset is 4.
        Type::BYTE_ARRAY => {
            16 + match chunk.unencoded_byte_array_data_bytes() {
                Some(bytes) => size(bytes) / values,
                None if chunk.dictionary_page_offset().is_some() => plain_mean.max(STRING_GUESS),
                None => plain_mean,
            }
        }
    };
    let levels = 2 * u64::from(chunk.column_descr().max_rep_level() > 0)
        + 2 * u64::from(chunk.column_descr().max_def_level() > 0);
    scale(value + 1 + levels, values, size(group.num_rows())).max(1)
}
