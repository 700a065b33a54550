//! Parquet annotations of columns without a type in Arrow.
//!
//! ```text
//!  Parquet                                Arrow field                               Parquet
//!  TIME, isAdjustedToUTC      --keep-->   Time64, "adjusted_to_utc"    --restore-->  the same
//!  ENUM                                   Utf8,   [KEY]: "ENUM"
//!  BSON, GEOMETRY, GEOGRAPHY              Binary, [KEY]: "BSON" ...
//!  VARIANT, a group                       Struct, [KEY]: "VARIANT"
//! ```
//! The metadata of a field carries the annotation through the job, and through Arrow files. Text
//! outputs lose the annotation.
//!
//! Invariant: an annotated Parquet column has its annotation in Parquet output.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::{LogicalType, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};

use crate::input::row_groups::Footer;
use crate::nested::mapped;

use super::int96::{has_leaves, with_fields, with_leaves};

/// The key of an annotation in the metadata of a field.
const KEY: &str = "PARQUET:logical_type";

/// The metadata key of adjusted times, defined by the writer of the parquet crate.
const ADJUSTED: &str = "adjusted_to_utc";

const VARIANT: &str = "VARIANT";

/// Returns the footer, with the annotations in the metadata of the fields.
pub(super) fn settled(footer: Footer) -> Result<Footer> {
    let parquet = footer.metadata().file_metadata().schema_descr();
    let mut variants = HashSet::new();
    let mut leaf = 0;
    for field in parquet.root_schema().get_fields() {
        find_variants(field, &mut leaf, &mut variants);
    }
    let marks = parquet.columns().iter().map(|leaf| leaf.logical_type_ref().and_then(mark));
    let marks: Vec<Option<String>> = marks.collect();
    let footer = with_leaves(&footer, |leaf, field| match marks.get(leaf) {
        Some(Some(mark)) => marked(field, mark),
        Some(None) | None => Arc::clone(field),
    })?;
    let mut leaf = 0;
    let fields = footer.schema().fields().iter();
    let fields = fields.map(|field| with_variants(field, &mut leaf, &variants)).collect();
    with_fields(&footer, fields)
}

/// Collects the first leaf of each VARIANT below `kind`, and the leaf after its last.
fn find_variants(kind: &Type, leaf: &mut usize, found: &mut HashSet<(usize, usize)>) {
    if kind.is_primitive() {
        *leaf += 1;
        return;
    }
    let first = *leaf;
    kind.get_fields().iter().for_each(|field| find_variants(field, leaf, found));
    if let Some(LogicalType::Variant(_)) = kind.get_basic_info().logical_type_ref() {
        found.insert((first, *leaf));
    }
}

/// Returns `field`, whose first leaf is `leaf`, with its VARIANTs marked.
fn with_variants(
    field: &FieldRef,
    leaf: &mut usize,
    variants: &HashSet<(usize, usize)>,
) -> FieldRef {
    let first = *leaf;
    if !has_leaves(field.data_type()) {
        *leaf += 1;
        return Arc::clone(field);
    }
    let field = mapped(field, |of| with_variants(of, leaf, variants));
    // A struct with a VARIANT as its only member has the same leaves.
    let is_variant = |fields: &Fields| {
        fields.find("metadata").is_some_and(|(_, of)| !of.data_type().is_nested())
    };
    match field.data_type() {
        DataType::Struct(fields) if is_variant(fields) && variants.contains(&(first, *leaf)) => {
            marked(&field, VARIANT)
        }
        _ => field,
    }
}

/// Returns the mark of a leaf, for an annotation without a type in Arrow.
fn mark(kind: &LogicalType) -> Option<String> {
    Some(match kind {
        LogicalType::Time(time) if time.is_adjusted_to_u_t_c => ADJUSTED.to_owned(),
        LogicalType::Enum => "ENUM".to_owned(),
        LogicalType::Bson => "BSON".to_owned(),
        LogicalType::Geometry(of) => format!("GEOMETRY {}", of.crs.as_deref().unwrap_or_default()),
        LogicalType::Geography(of) => {
            let algorithm = of.algorithm().unwrap_or_default();
            format!("GEOGRAPHY {algorithm} {}", of.crs.as_deref().unwrap_or_default())
        }
        _ => return None,
    })
}

/// Returns the annotation for a text of [`mark`].
fn annotation(mark: &str) -> Option<LogicalType> {
    let mut parts = mark.splitn(3, ' ');
    let crs = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Some(match parts.next()? {
        VARIANT => LogicalType::variant(Some(1)),
        "ENUM" => LogicalType::Enum,
        "BSON" => LogicalType::Bson,
        "GEOMETRY" => LogicalType::geometry(crs(mark.split_once(' ')?.1)),
        "GEOGRAPHY" => {
            let algorithm = parts.next()?.parse().ok()?;
            LogicalType::geography(crs(parts.next()?), Some(algorithm))
        }
        _ => return None,
    })
}

fn marked(field: &FieldRef, mark: &str) -> FieldRef {
    let (key, value) = if mark == ADJUSTED { (ADJUSTED, "true") } else { (KEY, mark) };
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_owned(), value.to_owned());
    let mut field = Field::clone(field).with_metadata(metadata);
    if mark == "ENUM" && *field.data_type() == DataType::Binary {
        field.set_data_type(DataType::Utf8);
    }
    Arc::new(field)
}

/// Returns `first` as the field for values of both fields. Returns `None` if the values cannot
/// share a column: times in UTC and other times, or a VARIANT and a struct. Other annotations are
/// removed if different.
pub(crate) fn common(first: &FieldRef, other: &Field) -> Option<FieldRef> {
    let both = [first, other];
    let both = both.map(|field| (field.metadata().get(KEY), field.metadata().get(ADJUSTED)));
    let [(one, adjusted), (another, also)] = both;
    let is_null = || first.data_type().is_null() || other.data_type().is_null();
    if (one, adjusted) == (another, also) || is_null() {
        return Some(Arc::clone(first));
    }
    let is_variant = |mark: Option<&String>| mark.is_some_and(|mark| mark == VARIANT);
    if adjusted.is_some() != also.is_some() || is_variant(one) || is_variant(another) {
        return None;
    }
    let mut metadata = first.metadata().clone();
    metadata.remove(KEY);
    Some(Arc::new(Field::clone(first).with_metadata(metadata)))
}

/// Returns names for the types of two fields that differ only in annotations.
pub(crate) fn shown(fields: [&Field; 2]) -> (String, String) {
    let [one, other] = fields.map(|field| {
        let (mark, adjusted) = (field.metadata().get(KEY), field.metadata().get(ADJUSTED));
        match (mark, adjusted) {
            (_, Some(_)) => format!("{} in UTC", field.data_type()),
            (Some(mark), None) => format!("a {mark}"),
            (None, None) => format!("plain {}", field.data_type()),
        }
    });
    (one, other)
}

/// Returns the Parquet schema `root`, made of `schema`, with the annotations of the fields.
pub(crate) fn annotated(root: &Type, schema: &Schema) -> Result<TypePtr> {
    let fields = root.get_fields().iter().zip(schema.fields());
    let fields = fields.map(|(kind, field)| restored(kind, field)).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder(root.name()).with_fields(fields).build()?))
}

fn restored(kind: &TypePtr, field: &Field) -> Result<TypePtr> {
    let annotation = field.metadata().get(KEY).and_then(|mark| annotation(mark));
    if kind.is_primitive() {
        return match annotation {
            Some(annotation) if kind.get_physical_type() == Physical::BYTE_ARRAY => {
                let about = kind.get_basic_info();
                let leaf = Type::primitive_type_builder(kind.name(), Physical::BYTE_ARRAY)
                    .with_repetition(about.repetition())
                    .with_logical_type(Some(annotation))
                    .with_id(about.has_id().then(|| about.id()));
                Ok(Arc::new(leaf.build()?))
            }
            _ => Ok(Arc::clone(kind)),
        };
    }
    let parts = kind.get_fields();
    let within: Vec<TypePtr> = match field.data_type() {
        DataType::Struct(fields) => {
            let parts = parts.iter().zip(fields);
            parts.map(|(kind, field)| restored(kind, field)).collect::<Result<_>>()?
        }
        // A group of the repeated values.
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            let items = [restored(&parts[0].get_fields()[0], of)?];
            vec![with_parts(&parts[0], items.to_vec(), None)?]
        }
        DataType::Map(entries, _) => vec![restored(&parts[0], entries)?],
        _ => return Ok(Arc::clone(kind)),
    };
    with_parts(kind, within, annotation)
}

/// Returns the group `kind` with other parts.
fn with_parts(
    kind: &TypePtr,
    parts: Vec<TypePtr>,
    annotation: Option<LogicalType>,
) -> Result<TypePtr> {
    if annotation.is_none() && parts == kind.get_fields() {
        return Ok(Arc::clone(kind));
    }
    let about = kind.get_basic_info();
    let group = Type::group_type_builder(kind.name())
        .with_repetition(about.repetition())
        .with_logical_type(annotation.or_else(|| about.logical_type_ref().cloned()))
        .with_fields(parts)
        .with_id(about.has_id().then(|| about.id()));
    Ok(Arc::new(group.build()?))
}
