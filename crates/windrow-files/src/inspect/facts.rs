//! Facts about a file, as printed by `--json`.

use arrow_array::Array;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ord::sort::sort_to_indices;
use arrow_schema::{DataType, Field, SortOptions};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use serde::Serialize;

use crate::error::{ErrorKind, Result};
use crate::input::{
    DeclaredColumn, Footer, Inputs, ReadOptions, Source, common_order, declared_order,
};

use crate::store::is_far;
use crate::verbs::first_out_of_order;

/// Maximum number of characters of a minimum or maximum value.
const VALUE_CHARS: usize = 40;

/// Facts about a file, found without sorting. The display is aligned text; the serialization is an
/// object.
#[derive(Serialize)]
pub struct FileFacts {
    pub(super) file: String,
    pub(super) format: String,
    pub(super) bytes: Option<u64>,
    pub(super) rows: Option<u64>,
    pub(super) schema: Vec<FieldFacts>,
    pub(super) metadata_keys: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parquet: Option<ParquetFacts>,
}

#[derive(Serialize)]
pub(super) struct FieldFacts {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) nullable: bool,
}

#[derive(Serialize)]
pub(super) struct ParquetFacts {
    pub(super) created_by: Option<String>,
    pub(super) version: i32,
    pub(super) row_groups: Vec<GroupFacts>,
    pub(super) columns: Vec<LeafFacts>,
    /// Order declared by all row groups, and whether the file obeys it; `None` if row groups
    /// declare no order, or different ones.
    pub(super) order: Option<OrderFacts>,
}

#[derive(Serialize)]
pub(super) struct GroupFacts {
    pub(super) rows: i64,
    pub(super) compressed_bytes: i64,
    pub(super) uncompressed_bytes: i64,
    pub(super) sorted_by: Vec<DeclaredColumn>,
}

#[derive(Serialize)]
pub(super) struct LeafFacts {
    pub(super) name: String,
    pub(super) physical_type: String,
    pub(super) codec: String,
    pub(super) encodings: Vec<String>,
    pub(super) compressed_bytes: i64,
    pub(super) uncompressed_bytes: i64,
    /// Number of nulls; `None` if a row group does not record it.
    pub(super) nulls: Option<u64>,
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Serialize)]
pub(super) struct OrderFacts {
    pub(super) columns: Vec<DeclaredColumn>,
    /// Whether the order holds. `None` for a stream, which cannot be read again, for an object, and
    /// for columns without an order of rows.
    pub(super) holds: Option<bool>,
    pub(super) first_row_out_of_order: Option<u64>,
}

impl FileFacts {
    /// Opens `source` and collects its facts. The declared order of a Parquet file is checked by
    /// reading the file, unless it is an object in a store.
    ///
    /// # Errors
    /// `Data` for an input that cannot be opened or read.
    pub fn of(source: &Source, options: &ReadOptions) -> Result<Self> {
        let inputs = Inputs::open(std::slice::from_ref(source), options)?;
        let file = &inputs.files()[0];
        let fields = inputs.schema().fields().iter().map(|field| FieldFacts {
            name: field.name().clone(),
            kind: field.data_type().to_string(),
            nullable: field.is_nullable(),
        });
        let mut metadata_keys: Vec<String> = inputs.schema().metadata().keys().cloned().collect();
        let mut parquet = None;
        if let Some(footer) = inputs.content(0).footer()? {
            let about = footer.metadata().file_metadata();
            let pairs = about.key_value_metadata().into_iter().flatten();
            metadata_keys = pairs.map(|pair| pair.key.clone()).collect();
            let mut facts = ParquetFacts::of(&footer);
            // For an object, only the footer is read.
            let file = source.path().filter(|path| !is_far(path));
            if let (Some(order), Some(_)) = (&mut facts.order, file) {
                match first_out_of_order(source, &order.columns, options) {
                    Ok(row) => {
                        order.first_row_out_of_order = row;
                        order.holds = Some(row.is_none());
                    }
                    // A leaf of a nested column, or a type without an order.
                    Err(error) if error.kind() == ErrorKind::Usage => {}
                    Err(error) => return Err(error),
                }
            }
            parquet = Some(facts);
        }
        metadata_keys.sort();
        Ok(Self {
            file: file.name.to_string(),
            format: file.format.to_string(),
            bytes: file.bytes,
            rows: file.rows,
            schema: fields.collect(),
            metadata_keys,
            parquet,
        })
    }
}

impl ParquetFacts {
    fn of(footer: &Footer) -> Self {
        let metadata = footer.metadata();
        let about = metadata.file_metadata();
        let leaves = about.schema_descr().num_columns();
        let order = common_order(metadata);
        Self {
            created_by: about.created_by().map(str::to_owned),
            version: about.version(),
            row_groups: metadata.row_groups().iter().map(GroupFacts::of).collect(),
            columns: (0..leaves).map(|leaf| LeafFacts::of(footer, leaf)).collect(),
            order: (!order.is_empty()).then_some(OrderFacts {
                columns: order,
                holds: None,
                first_row_out_of_order: None,
            }),
        }
    }
}

impl GroupFacts {
    fn of(group: &RowGroupMetaData) -> Self {
        Self {
            rows: group.num_rows(),
            compressed_bytes: group.compressed_size(),
            uncompressed_bytes: group.total_byte_size(),
            sorted_by: declared_order(group),
        }
    }
}

impl LeafFacts {
    fn of(footer: &Footer, leaf: usize) -> Self {
        let metadata = footer.metadata();
        let column = metadata.file_metadata().schema_descr().column(leaf);
        let (min, max) = range(footer, leaf).unwrap_or_default();
        let mut codecs: Vec<String> = Vec::new();
        let mut encodings: Vec<String> = Vec::new();
        for chunk in chunks(metadata, leaf) {
            add(&mut codecs, codec(chunk));
            for encoding in chunk.encodings() {
                add(&mut encodings, encoding.to_string());
            }
        }
        let nulls = chunks(metadata, leaf).map(|chunk| match chunk.num_values() {
            0 => Some(0),
            _ => chunk.statistics()?.null_count_opt(),
        });
        Self {
            name: column.path().string(),
            physical_type: column.physical_type().to_string(),
            codec: codecs.join("+"),
            encodings,
            compressed_bytes: chunks(metadata, leaf).map(|c| c.compressed_size()).sum(),
            uncompressed_bytes: chunks(metadata, leaf).map(|c| c.uncompressed_size()).sum(),
            nulls: nulls.sum(),
            min: min.map(shown),
            max: max.map(shown),
        }
    }
}

/// Returns a value with a mark if it is truncated, here or in the file.
fn shown((text, is_exact): (String, bool)) -> String {
    let mut kept: String = text.chars().take(VALUE_CHARS).collect();
    if !is_exact || kept.len() < text.len() {
        kept.push('~');
    }
    kept
}

pub(crate) fn chunks(
    metadata: &ParquetMetaData,
    leaf: usize,
) -> impl Iterator<Item = &ColumnChunkMetaData> {
    let groups = metadata.row_groups().iter();
    groups.filter_map(move |group| group.columns().get(leaf))
}

fn add(to: &mut Vec<String>, what: String) {
    if !to.contains(&what) {
        to.push(what);
    }
}

/// Returns the codec without its level. The footer does not record the level, so a printed level
/// would be a default.
fn codec(chunk: &ColumnChunkMetaData) -> String {
    let text = chunk.compression().to_string();
    text.split('(').next().unwrap_or(&text).to_ascii_lowercase()
}

/// Returns the column of `path`, whose first step is `field`. Returns `None` within lists and maps,
/// whose values do not correspond to rows.
fn leaf_field<'a>(field: &'a Field, path: &[String]) -> Option<&'a Field> {
    path[1..].iter().try_fold(field, |field, name| match field.data_type() {
        DataType::Struct(fields) => {
            let mut named = fields.iter().filter(|field| field.name() == name);
            named.next().filter(|_| named.next().is_none()).map(|field| &**field)
        }
        _ => None,
    })
}

/// A bound of the values of a column, and whether it is one of them.
type Bound = (String, bool);

/// Returns the minimum and maximum of a column over the file, unless it is in a list.
pub(crate) fn range(footer: &Footer, leaf: usize) -> Option<(Option<Bound>, Option<Bound>)> {
    let metadata = footer.metadata();
    let descriptor = metadata.file_metadata().schema_descr();
    let column = descriptor.column(leaf);
    // By position, since another column may have the same name.
    let field = footer.schema().fields().get(descriptor.get_column_root_idx(leaf))?;
    let field = leaf_field(field, column.path().parts())?;
    if field.data_type().is_nested() {
        return None;
    }
    let converter = StatisticsConverter::from_column_index(leaf, field, descriptor).ok()?;
    let groups = || metadata.row_groups().iter();
    let mins = converter.row_group_mins(groups()).ok()?;
    let maxes = converter.row_group_maxes(groups()).ok()?;
    // A chunk of nulls has no truncated values.
    let exact = |of: fn(&Statistics) -> bool| {
        chunks(metadata, leaf).all(|chunk| chunk.statistics().is_none_or(of))
    };
    let known = |values: &dyn Array| {
        groups().enumerate().all(|(ordinal, group)| {
            let nulls = group.column(leaf).statistics().and_then(|s| s.null_count_opt());
            values.is_valid(ordinal)
                || group.num_rows() == 0
                || nulls.is_some_and(|nulls| nulls as i64 == group.num_rows())
        })
    };
    let is_exact = exact(|s| s.min_is_exact() || s.min_bytes_opt().is_none());
    let min = extreme(&mins, false).filter(|_| known(&mins)).map(|min| (min, is_exact));
    let is_exact = exact(|s| s.max_is_exact() || s.max_bytes_opt().is_none());
    let max = extreme(&maxes, true).filter(|_| known(&maxes)).map(|max| (max, is_exact));
    Some((min, max))
}

/// Returns the first of `values` in order.
fn extreme(values: &dyn Array, descending: bool) -> Option<String> {
    let options = SortOptions { descending, nulls_first: false };
    let first = sort_to_indices(values, Some(options), Some(1)).ok()?;
    let first = *first.values().first()? as usize;
    if values.is_null(first) {
        return None;
    }
    let format = FormatOptions::default();
    let text = ArrayFormatter::try_new(values, &format).ok()?;
    text.value(first).try_to_string().ok()
}
