//! Keys as bytes that compare in the order of the key, and so the values that order the changes of
//! a key.
//!
//! The bytes of a key begin with the bytes of its first column, so that bounds of the first column
//! are bounds of keys (see [`super::extents`]).

use std::cell::OnceCell;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef, SortOptions};
use windrow::SortColumn;

use crate::changelog::{Ranks, is_own};
use crate::columns::names;
use crate::derived::Derived;
use crate::equality::{one_form, plain_type};
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, ReadOptions, Source};
use crate::names::Places;

/// The key columns of a table, opened when they are first read.
pub(super) struct KeyColumns {
    sources: Vec<Source>,
    /// Options that read the key alone.
    pub(super) read: ReadOptions,
    opened: OnceCell<Inputs>,
}

impl KeyColumns {
    pub(super) fn of(table: &Inputs, key: &[SortColumn], read: &ReadOptions) -> Self {
        let names = names(key);
        let read = read.clone().selecting(Some(names.clone()), Some(&names));
        let sources = table.files().iter().map(|file| file.source.clone()).collect();
        Self { sources, read, opened: OnceCell::new() }
    }

    pub(super) fn inputs(&self) -> Result<&Inputs> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = Inputs::open(&self.sources, &self.read)?;
        Ok(self.opened.get_or_init(|| opened))
    }
}

/// The encoder of a table's keys. Keys are equal as in SQL.
pub(super) struct KeyCode {
    derived: Derived,
    columns: Vec<usize>,
    all: RowConverter,
    first: RowConverter,
    /// The first column of the key.
    pub(super) leading: SortColumn,
    pub(super) leading_type: DataType,
}

impl KeyCode {
    pub(super) fn of(schema: &SchemaRef, key: &[SortColumn]) -> Result<Self> {
        let derived = Derived::of(schema, key.iter().map(|column| &*column.name));
        let (columns, fields) = fields(derived.schema(), key)?;
        let leading = key.first().ok_or_else(|| Error::usage("changes need a `key`"))?.clone();
        let leading_type = plain_type(derived.schema().field(columns[0]).data_type()).clone();
        let first = RowConverter::new(vec![fields[0].clone()]).map_err(failed)?;
        let all = RowConverter::new(fields).map_err(failed)?;
        Ok(Self { derived, columns, all, first, leading, leading_type })
    }

    /// Encodes the keys of `batch`, which has the columns of the table.
    pub(super) fn codes(&self, batch: &RecordBatch) -> Result<Rows> {
        let batch = self.derived.append(batch)?;
        let columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|&column| plain(batch.column(column)).map(|values| one_form(&values)))
            .collect::<Result<_>>()?;
        self.all.convert_columns(&columns).map_err(failed)
    }

    /// Encodes values of the first column of the key.
    pub(super) fn first_codes(&self, values: &ArrayRef) -> Result<Rows> {
        self.first.convert_columns(&[one_form(values)]).map_err(failed)
    }
}

/// The encoder of the values that order changes and rows.
pub(super) struct OrderCode {
    derived: Derived,
    ranks: Ranks,
    order: Vec<SortColumn>,
    converter: RowConverter,
}

impl OrderCode {
    pub(super) fn of(schema: &SchemaRef, order: Vec<SortColumn>, ranks: Ranks) -> Result<Self> {
        let derived = Derived::of(schema, order.iter().map(|column| &*column.name));
        let (_, fields) = fields(&ranks.schema, &order)?;
        let converter = RowConverter::new(fields).map_err(failed)?;
        Ok(Self { derived, ranks, order, converter })
    }

    /// Encodes the order of rows of the table.
    pub(super) fn of_rows(&self, batch: &RecordBatch) -> Result<Rows> {
        let batch = self.derived.append(batch)?;
        let batch = match self.ranks.do_anything() {
            true => self.ranks.apply(batch, |row| row as u64)?,
            false => batch,
        };
        self.codes(&batch, &batch)
    }

    /// Encodes the order of changes: `rows` has the columns of the table, `stored` the numbers that
    /// stand for text.
    pub(super) fn of_changes(&self, rows: &RecordBatch, stored: &RecordBatch) -> Result<Rows> {
        self.codes(&self.derived.append(rows)?, stored)
    }

    fn codes(&self, rows: &RecordBatch, stored: &RecordBatch) -> Result<Rows> {
        let column = |column: &SortColumn| {
            let batch = if is_own(&column.name) { stored } else { rows };
            let found = batch.column_by_name(&column.name);
            let found = found.ok_or_else(|| Error::missing_column(&column.name, [].into_iter()));
            found.and_then(plain)
        };
        let columns = self.order.iter().map(column).collect::<Result<Vec<_>>>()?;
        self.converter.convert_columns(&columns).map_err(failed)
    }
}

/// Returns the places of `columns` in `schema`, and their order.
fn fields(schema: &SchemaRef, columns: &[SortColumn]) -> Result<(Vec<usize>, Vec<SortField>)> {
    let places = Places::of(schema.fields());
    let field = |column: &SortColumn| {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let place = places.only(&column.name);
        let place = place.ok_or_else(|| Error::missing_column(&column.name, names))?;
        let SortColumn { descending, nulls_first, .. } = *column;
        let kind = plain_type(schema.field(place).data_type()).clone();
        Ok((place, SortField::new_with_options(kind, SortOptions { descending, nulls_first })))
    };
    Ok(columns.iter().map(field).collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

/// Returns the values without a dictionary or run-end encoding.
fn plain(values: &ArrayRef) -> Result<ArrayRef> {
    let kind = plain_type(values.data_type());
    if kind == values.data_type() {
        return Ok(ArrayRef::clone(values));
    }
    cast(values, kind).map_err(failed)
}
