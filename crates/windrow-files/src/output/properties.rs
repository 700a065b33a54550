//! Chooses the encoding of each Parquet column.
//!
//! ```text
//!  integers, dates, times          DELTA_BINARY_PACKED     unless few values lie far apart: dictionary
//!  strings, binary                 DELTA_LENGTH_BYTE_ARRAY unless few and short: dictionary;
//!                                  DELTA_BYTE_ARRAY if neighbours start alike
//!  floats                          PLAIN                   unless few: dictionary
//!  booleans, fixed-size binary     PLAIN
//!  strings, binary in long rows    PLAIN, in one page a chunk, without minima and maxima
//! ```
//!
//! For readers without support for the DELTA encodings, PLAIN takes their place ([`Encodings`]).
//!
//! The parquet crate's default, a dictionary for every column, costs 1.6 times the time and makes
//! the file 1.2 times as large (docs/decisions/006-parquet-settings.md); the encodings above shrink
//! pages before compression with zstd. Encodings are set per column and pages are V1: `PARQUET_2_0`
//! would change the encoding of other columns.
//!
//! A sample of the output's head shows whether a column has few values. The crate abandons a
//! dictionary that outgrows [`DICTIONARY_BYTES`] within the row group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, OffsetSizeTrait, RecordBatch};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Schema};
use arrow_select::take::take;
use parquet::arrow::add_encoded_arrow_schema_to_metadata;
use parquet::basic::{Encoding, Type};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::DeclaredColumn;
use super::compression::Compression;
use super::options::OutputOptions;
use super::row_group::ROWS_A_CALL;
use crate::error::Result;
use crate::names::Places;
use crate::nested::child_fields;
use crate::settings::Encodings;

/// The writer's name in footers.
pub(super) const CREATED_BY: &str = concat!("windrow version ", env!("CARGO_PKG_VERSION"));
/// Rows sampled at the head of the output.
pub(crate) const SAMPLE_ROWS: usize = 8192;
/// Values sampled of a leaf column: rows with long lists have hundreds of thousands of values, and
/// the sampling hashes each in 40 bytes.
const SAMPLE_VALUES: usize = 4 * SAMPLE_ROWS;
/// Minimum number of values for a decision.
const LEAST_VALUES: usize = 64;
/// Mean number of occurrences of a value from which a dictionary is tried: with fewer, it saves
/// little, and every value is hashed.
const LEAST_REPEATS: usize = 16;
/// Mean bytes shared by neighbouring values from which prefixes are left out.
const LEAST_PREFIX: usize = 4;
/// Maximum mean length of a value in a dictionary: a few longer values fill the dictionary, and
/// zstd finds their repeats.
const MOST_VALUE_BYTES: usize = 64;
/// Size limit of a page of byte strings in long rows, usually the whole chunk: the rows are
/// released before the page is compressed.
const LONG_PAGE: usize = 1 << 30;
/// Mean length from which a column gets no minimum and maximum.
const LONG_VALUE: usize = 64 << 10;
/// Size limit of a dictionary page, which is held uncompressed until its chunk ends, and by every
/// reader.
pub(super) const DICTIONARY_BYTES: usize = 128 << 10;

/// Distinct values that a Bloom filter is made for: the rows of a row group.
const FILTERED_VALUES: u64 = 122_880;

/// Estimates the bytes of a file without rows: mainly its schema, once as Arrow and once as
/// Parquet.
pub(super) fn frame_bytes(schema: &Schema) -> u64 {
    const FILE: usize = 1024;
    const FIELD: usize = 300;
    let text = |(key, value): (&String, &String)| key.len() + value.len() + 16;
    let fields = schema.flattened_fields().into_iter().map(|field| {
        FIELD + 3 * field.name().len() + field.metadata().iter().map(text).sum::<usize>()
    });
    let bytes = fields.sum::<usize>() + schema.metadata().iter().map(text).sum::<usize>();
    (FILE + 2 * bytes) as u64
}

/// Returns the writer properties for rows of `schema`; `descriptor` is the same schema in Parquet's
/// terms.
pub(super) fn properties(
    schema: &Schema,
    descriptor: &SchemaDescriptor,
    sample: &RecordBatch,
    options: &OutputOptions,
) -> Result<WriterProperties> {
    let compression = options.write.compression.unwrap_or(Compression::PARQUET_DEFAULT);
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        // With the word "version": readers in Java ignore the statistics of a writer whose name
        // they cannot parse.
        .set_created_by(CREATED_BY.into())
        .set_compression(compression.parquet()?)
        .set_data_page_size_limit(options.page_bytes)
        // Pages end by bytes: the default of 20,000 rows makes pages of 20 KB from well-compressing
        // values.
        .set_data_page_row_count_limit(usize::MAX >> 1)
        .set_write_batch_size(ROWS_A_CALL)
        .set_dictionary_enabled(false)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_offset_index_disabled(!options.page_index)
        .set_statistics_enabled(match (options.write.statistics, options.page_index) {
            (true, true) => EnabledStatistics::Page,
            (true, false) => EnabledStatistics::Chunk,
            (false, _) => EnabledStatistics::None,
        });
    let sorting = sorting_columns(descriptor, &options.sorting);
    if !sorting.is_empty() {
        builder = builder.set_sorting_columns(Some(sorting));
    }
    let ordered: HashSet<&str> = options.sorting.iter().map(|by| by.name.as_str()).collect();
    let sampled = sampled_leaves(sample, descriptor.num_columns());
    let mut categorical = Vec::new();
    schema.fields().iter().for_each(|field| collect_kinds(field.data_type(), &mut categorical));
    // Properties are set by path. Columns with equal paths share an encoding, which must suit any
    // type.
    let mut named: HashMap<_, usize> = HashMap::new();
    descriptor.columns().iter().for_each(|column| *named.entry(column.path()).or_default() += 1);
    for (leaf, column) in descriptor.columns().iter().enumerate() {
        let values = sampled.get(leaf).and_then(Option::as_ref);
        let strings = column.physical_type() == Type::BYTE_ARRAY;
        let (encoding, dictionary) = match categorical.get(leaf) {
            _ if named[column.path()] > 1 => LONG,
            Some(true) if strings => CATEGORICAL,
            _ if strings && options.long_rows => LONG,
            _ => encoded(column.physical_type(), values),
        };
        if strings && options.long_rows {
            builder = builder.set_column_data_page_size_limit(column.path().clone(), LONG_PAGE);
            if !(is_ordered(column, &ordered) && values.is_some_and(are_short)) {
                let none = EnabledStatistics::None;
                builder = builder.set_column_statistics_enabled(column.path().clone(), none);
            }
        }
        let encoding = match options.write.encodings {
            Encodings::Delta => encoding,
            Encodings::Plain => Encoding::PLAIN,
        };
        if options.bloom_filters.contains(&column.path().string()) {
            builder = builder
                .set_column_bloom_filter_enabled(column.path().clone(), true)
                .set_column_bloom_filter_max_ndv(column.path().clone(), FILTERED_VALUES);
        }
        builder = builder
            .set_column_encoding(column.path().clone(), encoding)
            .set_column_dictionary_enabled(column.path().clone(), dictionary);
    }
    // Key-value metadata of the first input's footer, which readers expect in the footer.
    let pairs = schema.metadata().iter().map(|(key, value)| (key.clone(), value.clone()));
    let mut pairs: Vec<KeyValue> = pairs.map(|(key, value)| KeyValue::new(key, value)).collect();
    pairs.sort_by(|a, b| a.key.cmp(&b.key));
    if !pairs.is_empty() {
        builder = builder.set_key_value_metadata(Some(pairs));
    }
    let mut properties = builder.build();
    add_encoded_arrow_schema_to_metadata(schema, &mut properties);
    Ok(properties)
}

/// Returns the order in terms of leaf columns. The order ends before the first column that is not a
/// single leaf of the file: rows ordered by (a, b, c) without b are ordered by (a), but not by (a,
/// c).
fn sorting_columns(
    descriptor: &SchemaDescriptor,
    sorting: &[DeclaredColumn],
) -> Vec<SortingColumn> {
    let leaves = descriptor.columns().iter().enumerate();
    let leaves: HashMap<&str, usize> = leaves
        .filter(|(_, leaf)| leaf.max_rep_level() == 0)
        .filter_map(|(at, leaf)| match leaf.path().parts() {
            [name] => Some((name.as_str(), at)),
            _ => None,
        })
        .collect();
    let columns = descriptor.root_schema().get_fields().iter();
    let columns: Places<'_> = columns.map(|field| field.name()).collect();
    let leaf_of = |column: &DeclaredColumn| {
        let leaf = *leaves.get(column.name.as_str())?;
        columns.only(&column.name)?;
        Some(SortingColumn {
            column_idx: i32::try_from(leaf).ok()?,
            descending: column.descending,
            nulls_first: column.nulls_first,
        })
    };
    sorting.iter().map_while(leaf_of).collect()
}

/// An encoding, and whether a dictionary is tried.
type Encoded = (Encoding, bool);

/// For values as long as a row group: the encoding with the fewest copies, valid for any type.
const LONG: Encoded = (Encoding::PLAIN, false);
/// For text that is a dictionary in Arrow: pyarrow and Polars read a column back as a dictionary
/// only from such pages.
const CATEGORICAL: Encoded = (Encoding::PLAIN, true);

/// Returns true if `sorting` has this column.
fn is_ordered(column: &ColumnDescriptor, sorting: &HashSet<&str>) -> bool {
    matches!(column.path().parts(), [name] if sorting.contains(name.as_str()))
}

fn are_short(values: &ArrayRef) -> bool {
    let bytes = values.to_data().get_slice_memory_size().unwrap_or(usize::MAX);
    bytes / values.len().max(1) < LONG_VALUE
}

/// Appends for each leaf column of a type, in Parquet's order, whether the leaf is a dictionary in
/// Arrow.
fn collect_kinds(data_type: &DataType, leaves: &mut Vec<bool>) {
    let children = child_fields(data_type);
    if children.is_empty() {
        leaves.push(matches!(data_type, DataType::Dictionary(..)));
    }
    children.iter().for_each(|field| collect_kinds(field.data_type(), leaves));
}

fn encoded(physical: Type, values: Option<&ArrayRef>) -> Encoded {
    let few = values.and_then(few_values);
    match physical {
        Type::INT32 | Type::INT64 => {
            let apart = values.zip(few).is_some_and(|(values, distinct)| {
                delta_bits(values).is_some_and(|bits| bits >= 2 * bit_width(distinct as u64))
            });
            (Encoding::DELTA_BINARY_PACKED, apart)
        }
        Type::BYTE_ARRAY => (byte_array_encoding(values), few.is_some()),
        Type::FLOAT | Type::DOUBLE => (Encoding::PLAIN, few.is_some()),
        Type::BOOLEAN | Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => (Encoding::PLAIN, false),
    }
}

/// Chooses prefix compression if the shared prefixes of neighbours outweigh the lengths to be
/// stored. On JSON text the file is 10 % smaller, and zstd has less to read.
fn byte_array_encoding(values: Option<&ArrayRef>) -> Encoding {
    let enough = values.filter(|values| values.len() >= LEAST_VALUES);
    let shared = enough.and_then(|values| {
        let bytes = cast(values, &DataType::LargeBinary).ok()?;
        let present: Vec<&[u8]> = bytes.as_binary::<i64>().iter().flatten().collect();
        let alike =
            |pair: &[&[u8]]| pair[0].iter().zip(pair[1]).take_while(|(a, b)| a == b).count();
        let sum: usize = present.windows(2).map(alike).sum();
        Some(present.len() >= LEAST_VALUES && sum >= present.len() * LEAST_PREFIX)
    });
    match shared {
        Some(true) => Encoding::DELTA_BYTE_ARRAY,
        _ => Encoding::DELTA_LENGTH_BYTE_ARRAY,
    }
}

/// Returns the number of distinct values, if they are few and short.
fn few_values(values: &ArrayRef) -> Option<usize> {
    let count = values.len() - values.logical_null_count();
    if count < LEAST_VALUES {
        return None;
    }
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]);
    let rows = converter.ok()?.convert_columns(&[Arc::clone(values)]).ok()?;
    let distinct: HashSet<&[u8]> = rows.iter().map(|row| row.data()).collect();
    let bytes: usize = distinct.iter().map(|value| value.len()).sum();
    let few = distinct.len() * LEAST_REPEATS <= count;
    (few && bytes <= distinct.len() * MOST_VALUE_BYTES).then_some(distinct.len())
}

/// Returns the bits of a packed difference between neighbours.
fn delta_bits(values: &ArrayRef) -> Option<u32> {
    let integers = cast(values, &DataType::Int64).ok()?;
    let integers: &Int64Array = integers.as_primitive::<Int64Type>();
    let present: Vec<i64> = integers.iter().flatten().collect();
    let deltas = present.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let (least, most) = deltas
        .fold((i64::MAX, i64::MIN), |(least, most), delta| (least.min(delta), most.max(delta)));
    Some(bit_width(most.wrapping_sub(least) as u64))
}

fn bit_width(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).max(1)
}

/// Returns the sampled values of each leaf column, in Parquet's order; `None` for a leaf not worth
/// sampling.
fn sampled_leaves(sample: &RecordBatch, leaves: usize) -> Vec<Option<ArrayRef>> {
    let sample = sample.slice(0, sample.num_rows().min(SAMPLE_ROWS));
    let mut found = Vec::with_capacity(leaves);
    for column in sample.columns() {
        collect_leaves(column, &mut found);
    }
    for values in found.iter_mut().flatten() {
        *values = values.slice(0, values.len().min(SAMPLE_VALUES));
    }
    // A type divided differently than by Parquet would shift all leaves after it.
    if found.len() == leaves { found } else { Vec::new() }
}

fn collect_leaves(array: &ArrayRef, leaves: &mut Vec<Option<ArrayRef>>) {
    match array.data_type() {
        DataType::Struct(_) => {
            for column in array.as_struct().columns() {
                collect_leaves(column, leaves);
            }
        }
        DataType::List(_) => collect_leaves(&list_values::<i32>(array), leaves),
        DataType::LargeList(_) => collect_leaves(&list_values::<i64>(array), leaves),
        DataType::FixedSizeList(..) => {
            collect_leaves(array.as_fixed_size_list().values(), leaves);
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let (start, end) = ends(map.value_offsets());
            for column in map.entries().columns() {
                collect_leaves(&column.slice(start, end - start), leaves);
            }
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            match take(dictionary.values(), dictionary.keys(), None) {
                Ok(plain) => collect_leaves(&plain, leaves),
                Err(_) => leaves.push(None),
            }
        }
        data_type if data_type.is_nested() => leaves.push(None),
        _ => leaves.push(Some(Arc::clone(array))),
    }
}

/// Returns the values of the lists of an array, which may be a slice.
fn list_values<O: OffsetSizeTrait>(array: &ArrayRef) -> ArrayRef {
    let list = array.as_list::<O>();
    let (start, end) = ends(list.value_offsets());
    list.values().slice(start, end - start)
}

fn ends<O: OffsetSizeTrait>(offsets: &[O]) -> (usize, usize) {
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    (at(offsets.first()), at(offsets.last()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, StringArray};

    use super::*;

    fn planned(physical: Type, values: impl Array + 'static) -> (Encoding, bool) {
        encoded(physical, Some(&(Arc::new(values) as ArrayRef)))
    }

    #[test]
    fn dictionaries_are_for_few_short_values() {
        let strings = |distinct: usize, width: usize| {
            StringArray::from_iter_values((0..4096).map(|i| format!("{:0width$}", i % distinct)))
        };
        let prefixes = Encoding::DELTA_BYTE_ARRAY;
        assert_eq!(planned(Type::BYTE_ARRAY, strings(7, 8)), (prefixes, true));
        assert_eq!(planned(Type::BYTE_ARRAY, strings(2000, 8)), (prefixes, false));
        assert_eq!(planned(Type::BYTE_ARRAY, strings(7, 300)), (prefixes, false));
        let apart = (0..4096u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string());
        let apart = StringArray::from_iter_values(apart);
        let lengths = Encoding::DELTA_LENGTH_BYTE_ARRAY;
        assert_eq!(planned(Type::BYTE_ARRAY, apart), (lengths, false));
        let floats = Float64Array::from_iter_values((0..4096).map(|i| f64::from(i % 5)));
        assert_eq!(planned(Type::DOUBLE, floats), (Encoding::PLAIN, true));
    }

    #[test]
    fn integers_get_a_dictionary_only_if_few_and_far_apart() {
        let packed = Encoding::DELTA_BINARY_PACKED;
        let small = Int64Array::from_iter_values((0..4096).map(|i| i * 7 % 50));
        assert_eq!(planned(Type::INT64, small), (packed, false));
        let hashes = Int64Array::from_iter_values(
            (0..4096i64).map(|i| (i % 9).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)),
        );
        assert_eq!(planned(Type::INT64, hashes), (packed, true));
        let sorted = Int64Array::from_iter_values((0..4096).map(|i| i / 100 * 1_000_000_007));
        assert_eq!(planned(Type::INT64, sorted), (packed, true));
    }
}
