//! Memory for writing Parquet, by the allocations of the `parquet` crate (59.3).
//!
//! ```text
//!  writer of a leaf     codec       its context; zstd also has one for decompression (96 KiB)
//!    (as long as its    delta       1 MiB of packed integers: numbers, lengths of strings; twice that where
//!    chunk is open)                 prefixes are left out
//!                       dictionary  a hash table (72 KiB), the page, 8 bytes an index of the page being built
//!                       pages       one as it is built, joined with its levels, compressed
//!  call                 its values as they came and put together; of lists also levels and places
//!  finished chunk       its pages as they go to the file, a header for each; what the footer says of it
//!  row group, written   what the footer and the page index say of each chunk, until the end of the file
//!  file                 the schema, in Arrow's terms and Parquet's, and the properties of each leaf
//! ```
//!
//! Reserved memory counts whole, touched or not: reused memory stays resident, and a writer of ten
//! values may get a mebibyte of it. Therefore columns written together need the memory of all their
//! writers. Columns written in turn (see [`super::row_group`]) need the memory of the held rows,
//! and of one column's writers:
//!
//! ```text
//!  together = leaves x writer          + encoded rows             + chunks + files
//!  in turn  = leaves of the widest     + encoded rows + held rows + chunks + files
//!             column x writer
//! ```

use std::collections::BTreeMap;

use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;

use super::compression::Compression;
use super::options::OutputOptions;
use super::part::PartRows;
use super::properties::DICTIONARY_BYTES;
use super::row_group::{BYTES_A_CALL, ROWS_A_CALL};
use super::storable::storable;
use crate::nested::child_fields;
use crate::settings::Format;

/// Minimum bytes of a compression context. Above it, zstd fits its tables to the size of the data.
const LEAST_CONTEXT: usize = 64 << 10;
/// Bytes of a context for decompression, which the crate makes with each one for compression
/// (zstd's is 95 KiB).
const DECOMPRESSION: usize = 96 << 10;
/// Initial bytes of the packed integers of a delta encoding.
const DELTA: usize = 1 << 20;
/// Bytes of a hash table for 4096 values of a dictionary.
const HASH_TABLE: usize = 72 << 10;
/// Bytes of an index of a dictionary before packing.
const INDEX: usize = 8;
/// Bytes of a held array beside its values: the array, and the owners of its buffers.
const HELD_ARRAY: usize = 400;
/// Bytes of a chunk beside its pages, from its end until the end of the file: entries for the
/// footer and for the page index, each with a minimum and a maximum. 1,240 bytes were measured for
/// numbers and short strings; nulls and long strings take more.
const CHUNK: usize = 1536;
/// Bytes in the page index for each page after the first of its chunk.
const PAGE: usize = 200;
/// Bytes of a leaf in an open file: in the schema, and in the properties. 700 to 1,000 bytes were
/// measured.
const LEAF_OF_A_FILE: usize = 1200;
/// Bytes of a held record batch with wide rows.
const BATCH_BYTES: usize = 2 << 20;
/// Open files of a thread: a new file is opened before the previous one is closed.
const FILES: usize = 2;

/// Numbers of a schema's leaf columns.
struct Leaves {
    all: usize,
    /// Leaves of the column with the most leaves.
    widest: usize,
    /// Maximum ratio of a call's levels and indices to its bytes.
    levels: usize,
}

/// Bytes for the levels of a list's value, two of two bytes, and its index, each in a vector that
/// doubles to grow.
const LEVELS: usize = 24;
/// Bytes of a list's item in a row, beside its value.
const ITEM: usize = 3;

/// See [`Leaves::levels`]. `items` tells whether values of the type are items of a list.
fn levels(data_type: &DataType, items: bool) -> usize {
    let items = items || data_type.is_list() || matches!(data_type, DataType::Map(..));
    let children = child_fields(data_type);
    let of_children = children.iter().map(|field| levels(field.data_type(), items));
    match of_children.max() {
        Some(most) => most,
        None if items => LEVELS.div_ceil(ITEM + data_type.primitive_width().unwrap_or(0)),
        None => 0,
    }
}

impl Leaves {
    fn of(schema: &SchemaRef) -> Self {
        let schema = &storable(schema);
        let fields = schema.fields().len();
        let Ok(descriptor) = ArrowSchemaConverter::new().convert(schema) else {
            return Self { all: fields, widest: fields, levels: 0 };
        };
        let levels = schema.fields().iter().map(|field| levels(field.data_type(), false)).max();
        let all = descriptor.num_columns();
        let mut of_column = BTreeMap::new();
        for leaf in 0..all {
            *of_column.entry(descriptor.get_column_root_idx(leaf)).or_insert(0) += 1;
        }
        let widest = of_column.into_values().max().unwrap_or(0);
        Self { all, widest, levels: levels.unwrap_or(0) }
    }
}

/// Returns the memory for the metadata of `groups` row groups until the end of the file. `bytes` is
/// the size of their rows together as Arrow arrays. Other formats hold a few bytes for each part.
pub(crate) fn footer_bytes(
    schema: &SchemaRef,
    options: &OutputOptions,
    groups: usize,
    bytes: usize,
) -> usize {
    if options.format != Format::Parquet {
        return 0;
    }
    let chunks = groups.saturating_mul(Leaves::of(schema).all);
    chunks.saturating_mul(CHUNK).saturating_add(bytes / options.page_bytes.max(1) * PAGE)
}

/// See [`super::part_bytes`].
pub(super) fn part_bytes(schema: &SchemaRef, options: &OutputOptions, part: PartRows) -> usize {
    let PartRows { rows, bytes, longest } = part;
    let leaves = Leaves::of(schema);
    let compression = options.write.compression.unwrap_or(Compression::PARQUET_DEFAULT);
    let context = compression.context_bytes().min(LEAST_CONTEXT.saturating_add(4 * bytes));
    let page = options.page_bytes.min(bytes);
    let values = DELTA.max(2 * page).max(rows * INDEX);
    let dictionary = HASH_TABLE + DICTIONARY_BYTES;
    let writer = context + DECOMPRESSION + values + dictionary;
    let widths = || schema.fields().iter().map(|field| field.data_type().primitive_width());
    let varies = widths().any(|width| width.is_none());
    // Encoded rows take no more memory than in Arrow. A page shorter than its limit costs less.
    let row = bytes.checked_div(rows).unwrap_or(0);
    let rows_a_call = ROWS_A_CALL.min(rows);
    let call = (row * rows_a_call).min(BYTES_A_CALL + row);
    // Where long rows can be neighbours, a call ends by its bytes. A call of a thousand short rows
    // has the mean size, and values of fixed width are in no list.
    let most = longest.map_or(BYTES_A_CALL, |longest| longest.saturating_mul(ROWS_A_CALL));
    let (call, fixed) = match varies && most >= BYTES_A_CALL {
        true => (call.max(BYTES_A_CALL.min(bytes)), 0),
        false => (call, rows_a_call * widths().flatten().sum::<usize>()),
    };
    let call = 2 * call + leaves.levels * call.saturating_sub(fixed);
    let kept = leaves.all * (CHUNK + FILES * LEAF_OF_A_FILE);
    if !options.columns_in_turn {
        return leaves.all * writer + call + bytes + kept;
    }
    let held = bytes + leaves.all * HELD_ARRAY * (bytes / BATCH_BYTES + 2);
    leaves.widest * (writer + DELTA) + page + call + bytes + held + kept
}
