//! Differences between two sides, by key: as changes from the old side to the new one, or as
//! figures.
//!
//! ```text
//! OLD  rows, each with a weight of 1    \
//!                                        sum of rows that are equal --> key by key: Changes
//! NEW  rows, each with a weight of 2^32 /
//! ```
//! The first merge of equal rows from both sides combines the rows; one or two rows are left of
//! each key. The engine compares whole rows as bytes, so any type can be compared. Floats
//! are equal as in SQL: floats in the key are normalized first, and the other floats of a key's two
//! rows are compared again.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use windrow::{IntoColumns, Order, SortColumn as Column};

use super::changes::{Changes, NEW, OLD, Pairing};
use super::project::{check_names, projection};
use super::sift::Sifting;
use super::{Arrangement, FirstRow, Transform};
use crate::derived::Derived;
use crate::equality::{floats, with_one_form};
use crate::error::{Error, Result, failed};
use crate::input::Inputs;
use crate::names::{Places, extended};
use crate::settings::{Shown, setters};

/// The name of the weight column.
const WEIGHT: &str = "__windrow_weight";

/// The changes from an old side to a new one; [`Inputs::open_pair`](crate::Inputs::open_pair) opens
/// the sides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiffSpec {
    /// The columns that identify a row. A key found twice on a side is an error.
    pub key: Vec<Column>,
    /// The form of the output.
    pub shown: Shown,
    /// The name of the operation column, which comes first and holds `insert`, `update` or
    /// `delete`.
    pub op_column: String,
    /// The columns to compare and to write, in this order, after the key columns not among them;
    /// all columns by default.
    pub select: Option<Vec<String>>,
}

impl DiffSpec {
    /// Compares rows with equal keys.
    pub fn by_key(key: impl IntoColumns) -> Self {
        Self {
            key: key.into_columns(),
            shown: Shown::default(),
            op_column: "op".to_owned(),
            select: None,
        }
    }

    setters! {
        /// Sets the form of the output.
        shown: Shown;
        /// Sets the name of the operation column.
        op_column: impl Into<String> => op_column.into();
        /// Sets the columns to compare and to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let Some(first_new) = inputs.first_of_new else {
            return Err(Error::usage("differences are of two sides: open the inputs as a pair"));
        };
        if self.key.is_empty() {
            return Err(Error::usage("differences need a `key`"));
        }
        let compared = Compared::of(self, inputs)?;
        let layout = Order::by(self.key.clone()).diff(WEIGHT).bind(&compared.schema)?;
        let key: Vec<usize> = layout.key().collect();
        let mut arrangement = Arrangement::of(layout);
        let schema = arrangement.schema()?;
        let pairing = Arc::new(Pairing::of(&schema, key.clone(), compared.shown, self)?);
        arrangement.sifting = Some(Sifting {
            schema: Arc::clone(&pairing.schema),
            keeps_order: self.shown == Shown::Changes,
            copies: 6,
            start: Box::new(move || Box::new(Changes::new(&pairing)) as _),
        });
        let floats = floats(&compared.schema, key);
        let Compared { schema, columns, derived, .. } = compared;
        let transform: Transform = Arc::new(move |batch: &RecordBatch, at: FirstRow| {
            let batch = derived.append(batch)?;
            let mut values: Vec<ArrayRef> =
                columns.iter().map(|&column| ArrayRef::clone(batch.column(column))).collect();
            let weight = if at.file < first_new { OLD } else { NEW };
            values.push(Arc::new(Int64Array::from_value(weight, batch.num_rows())));
            RecordBatch::try_new(Arc::clone(&schema), values)
                .and_then(|batch| with_one_form(&batch, &floats))
                .map_err(failed)
        });
        arrangement.transform = Some(transform);
        Ok(arrangement)
    }
}

/// The columns to compare.
struct Compared {
    derived: Derived,
    /// Positions of the columns in the inputs, including derived columns.
    columns: Vec<usize>,
    /// Number of columns to write, the first ones.
    shown: usize,
    /// Schema of the columns and the weight.
    schema: SchemaRef,
}

impl Compared {
    fn of(spec: &DiffSpec, inputs: &Inputs) -> Result<Self> {
        if inputs.schema().fields().iter().any(|field| field.name() == WEIGHT) {
            return Err(Error::usage(format!(
                "the inputs have a column {WEIGHT:?}, a name that windrow keeps for itself; rename it"
            )));
        }
        let keys = || spec.key.iter().map(|column| column.name.as_str());
        let selected = spec.select.iter().flatten().map(String::as_str);
        let derived = Derived::of(inputs.schema(), keys().chain(selected));
        let schema = &derived.schema;
        check_names(schema, keys())?;
        let hidden: Vec<String> = derived.names().cloned().collect();
        let mut columns = projection(schema, spec.select.as_deref(), &hidden)?;
        let places = Places::of(schema.fields());
        let written: HashSet<usize> = columns.iter().copied().collect();
        let of_key = keys().filter_map(|name| places.first(name));
        let added: Vec<usize> = of_key.filter(|column| !written.contains(column)).collect();
        let mut shown = columns.len();
        if spec.select.is_some() {
            // A consumer of the changes needs the key.
            shown += added.len();
            columns.splice(0..0, added);
        } else {
            // An added key is a member of a struct, which is written as a whole.
            columns.extend(added);
        }
        let schema = Arc::new(schema.project(&columns).map_err(failed)?);
        let schema = extended(&schema, [Field::new(WEIGHT, DataType::Int64, false)]);
        Ok(Self { derived, columns, shown, schema })
    }
}
