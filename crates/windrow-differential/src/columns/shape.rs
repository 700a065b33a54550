//! The encoding of a collection's record batches as rows of an arrangement.
//!
//! ```text
//! schema   user  name  at            row   name | user  at | time | diff      by name
//! ```
//! Invariant: rows hold the key columns, in the key's order, then all other columns in schema
//! order.

use std::sync::Arc;

use windrow::arrow_array::RecordBatch;
use windrow::arrow_schema::{Field, Schema, SchemaRef};
use windrow::{Error, IntoColumns, Layout, Order, Result, RowEncoder, Rows, SortColumn};

use crate::format::{layout_of, tail};
use crate::{DiffCode, TimeCode};

/// A schema, and the arrangement of its columns by a key.
pub(super) struct Shape {
    pub(super) schema: SchemaRef,
    pub(super) key: Vec<SortColumn>,
    /// Positions in the schema, in row order.
    pub(super) places: Vec<usize>,
    /// Layout of whole rows: the columns of the schema, then time and diffs.
    pub(super) layout: Layout,
    /// Encodes rows without time and diffs.
    encoder: RowEncoder,
    /// Bytes of time and diffs.
    pub(super) tail: usize,
}

impl Shape {
    /// Arranges the columns of `schema` by `key`, with times `T` and diffs `R`.
    pub(super) fn new<T: TimeCode, R: DiffCode>(
        schema: &SchemaRef,
        key: impl IntoColumns,
    ) -> Result<Self> {
        let key = key.into_columns();
        let places_of = |column: &SortColumn| schema.fields().find(&column.name).map(|(at, _)| at);
        let mut places: Vec<usize> = key.iter().filter_map(places_of).collect();
        places.extend(
            (0..schema.fields().len()).filter(|at| !places.contains(at)).collect::<Vec<_>>(),
        );
        let others = places.iter().skip(key.len()).map(|&at| schema.field(at).name().into());
        let all: Vec<SortColumn> = key.iter().cloned().chain(others).collect();
        // `bind` rejects invalid keys and columns without a row encoding.
        let encoder = RowEncoder::of_keys(&Order::by(all).bind(schema)?);
        let layout = layout_of::<T, R>(schema, Order::by(&*key))?;
        Ok(Self { schema: Arc::clone(schema), key, places, layout, encoder, tail: tail::<T, R>() })
    }

    /// Encodes the rows of a record batch, without times and diffs.
    pub(super) fn encode(&self, batch: &RecordBatch) -> Result<Rows> {
        check_schema(&self.schema, batch.schema_ref())?;
        self.encoder.encode(&batch.project(&self.places)?)
    }

    /// Fails unless keys of `self` and `other` compare as bytes.
    pub(super) fn check_joins(&self, other: &Self) -> Result<()> {
        if self.layout.same_key(&other.layout) {
            return Ok(());
        }
        let (expected, got) = (self.describe_key(), other.describe_key());
        Err(Error::SchemaMismatch { expected, got })
    }

    /// Describes the key.
    fn describe_key(&self) -> String {
        let columns = self.key.iter().zip(&self.places).map(|(column, &at)| {
            let field = self.schema.field(at);
            let nulls = if field.is_nullable() { "" } else { " not null" };
            let direction = if column.descending { " desc" } else { "" };
            let first = if column.nulls_first { " nulls first" } else { "" };
            format!("{:?}: {}{nulls}{direction}{first}", field.name(), field.data_type())
        });
        format!("the key ({})", columns.collect::<Vec<_>>().join(", "))
    }
}

/// Fails unless `got` has the columns of `expected`, by name and type.
pub(super) fn check_schema(expected: &Schema, got: &Schema) -> Result<()> {
    let same = |(a, b): (&Arc<Field>, &Arc<Field>)| {
        Arc::ptr_eq(a, b) || a.name() == b.name() && a.data_type() == b.data_type()
    };
    let (fields, others) = (expected.fields(), got.fields());
    if fields.len() == others.len() && fields.iter().zip(others).all(same) {
        return Ok(());
    }
    Err(Error::SchemaMismatch { expected: describe(expected), got: describe(got) })
}

/// Describes the columns of a schema.
fn describe(schema: &Schema) -> String {
    let columns = schema.fields().iter();
    let columns = columns.map(|field| format!("{:?}: {}", field.name(), field.data_type()));
    format!("({})", columns.collect::<Vec<_>>().join(", "))
}
