//! Columns that the order names and no input has: members of structs, by their paths.
//!
//! ```text
//!  id  user{id, name}           --append-->   id  user{id, name}  "user.id"
//! ```
//! They stand behind all others, are called by their paths, and are written only where they are selected.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use crate::equality::one_form;
use crate::error::{Error, Result};
use crate::paths::{self, Steps};

/// Columns to append.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    /// With them.
    schema: SchemaRef,
    columns: Vec<Steps>,
    /// Whether floats among them have one zero and one NaN.
    one_form: bool,
}

impl Derived {
    /// Those of `names` that are paths in `schema`; none if all are columns, or nothing.
    pub(crate) fn of<'a>(
        schema: &SchemaRef,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let mut fields = schema.fields().to_vec();
        let mut columns = Vec::new();
        for name in names {
            if fields.iter().any(|field| field.name() == name) {
                continue;
            }
            if let Some(steps) = paths::find(schema, name) {
                fields.push(Arc::new(paths::field(schema, &steps, name)));
                columns.push(steps);
            }
        }
        let metadata = schema.metadata().clone();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        (!columns.is_empty()).then_some(Self { schema, columns, one_form: false })
    }

    /// Has them compare as in SQL.
    pub(crate) fn bring_to_one_form(&mut self) {
        self.one_form = true;
    }

    /// The columns there were, and those.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The names of those.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let first = self.schema.fields().len() - self.columns.len();
        self.schema.fields()[first..].iter().map(|field| field.name())
    }

    /// `batch`, with them.
    pub(crate) fn append(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let failed = |error: arrow::error::ArrowError| Error::data(error.to_string());
        let mut columns = batch.columns().to_vec();
        for steps in &self.columns {
            let values = paths::values(batch, steps).map_err(failed)?;
            columns.push(if self.one_form { one_form(&values) } else { values });
        }
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows).map_err(failed)
    }
}
