//! Keys as bytes that compare in the order of the key, and so the values that order the changes of
//! a key.
//!
//! The bytes of a key begin with the bytes of its first column, so that bounds of the first column
//! are bounds of keys (see [`super::extents`]).

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef, SortOptions};
use windrow::SortColumn;

use crate::changelog::Ranks;
use crate::columns::TextAs;
use crate::derived::Derived;
use crate::equality::{one_form, plain_type};
use crate::error::{Error, Result, failed};
use crate::names::Places;
use crate::settings::Preset;

/// The encoder of some columns of record batches of one schema. Values are equal as in SQL.
pub(super) struct Code {
    derived: Derived,
    ranks: Option<Ranks>,
    columns: Vec<usize>,
    fields: Vec<SortField>,
    converter: RowConverter,
}

impl Code {
    /// Returns the encoder of a key.
    pub(super) fn of(schema: &SchemaRef, key: &[SortColumn]) -> Result<Self> {
        let derived = Derived::of(schema, key.iter().map(|column| &*column.name));
        Self::bound(derived, None, key)
    }

    /// Returns the encoder of an order, in which text may stand for numbers; `None` if the schema
    /// lacks one of its columns.
    pub(super) fn of_order(
        schema: &SchemaRef,
        order: &[SortColumn],
        preset: Option<Preset>,
        texts: &[(String, TextAs)],
    ) -> Result<Option<Self>> {
        let derived = Derived::of(schema, order.iter().map(|column| &*column.name));
        let places = Places::of(derived.schema.fields());
        if order.is_empty() || !order.iter().all(|column| places.has(&column.name)) {
            return Ok(None);
        }
        let mut order = order.to_vec();
        let ranks = Ranks::bind(&derived.schema, preset, &mut order, texts, None)?;
        Self::bound(derived, Some(ranks), &order).map(Some)
    }

    fn bound(derived: Derived, ranks: Option<Ranks>, by: &[SortColumn]) -> Result<Self> {
        let schema = ranks.as_ref().map_or(&derived.schema, |ranks| &ranks.schema);
        let places = Places::of(schema.fields());
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for SortColumn { name, descending, nulls_first, .. } in by {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let place = places.only(name).ok_or_else(|| Error::missing_column(name, names))?;
            let kind = plain_type(schema.field(place).data_type()).clone();
            let options = SortOptions { descending: *descending, nulls_first: *nulls_first };
            columns.push(place);
            fields.push(SortField::new_with_options(kind, options));
        }
        let converter = RowConverter::new(fields.clone()).map_err(failed)?;
        Ok(Self { derived, ranks, columns, fields, converter })
    }

    /// Encodes the rows of `batch`.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<Rows> {
        let mut batch = self.derived.append(batch)?;
        if let Some(ranks) = &self.ranks {
            batch = ranks.apply(batch, |row| row as u64)?;
        }
        let columns = self.columns.iter().map(|&column| plain(batch.column(column)));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.converter.convert_columns(&columns).map_err(failed)
    }

    /// Returns the type of the first column.
    pub(super) fn leading(&self) -> &DataType {
        plain_type(self.derived.schema.field(self.columns[0]).data_type())
    }

    /// Encodes values of the first column.
    pub(super) fn of_leading(&self, values: &ArrayRef) -> Result<Rows> {
        let converter = RowConverter::new(vec![self.fields[0].clone()]).map_err(failed)?;
        converter.convert_columns(&[one_form(values)]).map_err(failed)
    }
}

/// Returns the values in one form, without a dictionary or run-end encoding.
pub(super) fn plain(values: &ArrayRef) -> Result<ArrayRef> {
    let kind = plain_type(values.data_type());
    match kind == values.data_type() {
        true => Ok(one_form(values)),
        false => cast(values, kind).map(|values| one_form(&values)).map_err(failed),
    }
}
