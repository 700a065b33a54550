//! Derived columns: columns named by the order but absent from the input, such as members of
//! structs named by path.
//!
//! ```text
//!  id  user{id, name}           --append-->   id  user{id, name}  "user.id"
//! ```
//! Derived columns come after all others, are named by their paths, and are written only if
//! selected. An order in which floats compare as in SQL also uses derived columns: copies of the
//! float columns, whose own values stay unchanged.

use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use windrow::SortColumn;

use crate::equality::{one_form, plain_type};
use crate::error::{Result, failed};
use crate::names::{Places, extended};
use crate::nested::with_rows;
use crate::paths::{self, Paths, Steps};
use crate::settings::FloatOrder;

/// Columns to append, if any.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    /// The schema including the derived columns.
    pub(crate) schema: SchemaRef,
    columns: Vec<Copied>,
}

/// A copy of values found elsewhere in the row.
#[derive(Clone, Debug)]
struct Copied {
    from: Steps,
    /// Whether to normalize floats to one zero and one NaN.
    one_form: bool,
}

/// Prefix of the names of columns that only the order uses.
pub(crate) const OWN: &str = "__windrow_order";

impl Derived {
    /// Returns the derived columns for the `names` that are paths in `schema`.
    pub(crate) fn of<'a>(schema: &SchemaRef, names: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        let (places, paths) = (Places::of(schema.fields()), Paths::of(schema));
        let mut seen = HashSet::new();
        for name in names.into_iter().filter(|name| !places.has(name)) {
            if let Some(steps) = paths.find(name).filter(|_| seen.insert(name)) {
                fields.push(paths::field(schema, &steps, name));
                columns.push(Copied { from: steps, one_form: false });
            }
        }
        Self { schema: extended(schema, fields), columns }
    }

    /// Adds a column for each float column or path in `by`, with the values normalized
    /// for `order`, and makes `by` name the new column.
    pub(crate) fn ordering(
        mut self,
        schema: &SchemaRef,
        by: &mut [SortColumn],
        order: FloatOrder,
    ) -> Self {
        if order == FloatOrder::Total {
            return self;
        }
        let mut fields = Vec::new();
        let paths = Paths::of(schema);
        for column in by {
            let Some(from) = paths.find(&column.name) else { continue };
            let field = paths::field(schema, &from, &column.name);
            if plain_type(field.data_type()).is_floating() {
                column.name = format!("{OWN}_{}", column.name);
                fields.push(field.with_name(&column.name));
                self.columns.push(Copied { from, one_form: true });
            }
        }
        self.schema = extended(&self.schema, fields);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Makes all derived columns compare as in SQL.
    pub(crate) fn bring_to_one_form(&mut self) {
        self.columns.iter_mut().for_each(|column| column.one_form = true);
    }

    /// Returns the names of the derived columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let first = self.schema.fields().len() - self.columns.len();
        self.schema.fields()[first..].iter().map(|field| field.name())
    }

    /// Appends the derived columns to `batch`.
    pub(crate) fn append(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if self.is_empty() {
            return Ok(batch.clone());
        }
        let mut columns = batch.columns().to_vec();
        for Copied { from, one_form: is_brought } in &self.columns {
            let values = paths::values(batch, from).map_err(failed)?;
            columns.push(if *is_brought { one_form(&values) } else { values });
        }
        with_rows(&self.schema, columns, batch.num_rows()).map_err(failed)
    }
}
