//! Removes duplicates: keeps one row of each key, or none if several rows have the key.
//!
//! Keys are equal as in SQL: nulls are one key, -0.0 equals 0.0, and all NaN are equal. The output
//! has 0.0 and a single NaN in place of such values, so that it is sorted whichever row is kept.

use std::sync::Arc;

use arrow_array::RecordBatch;
use windrow::{Decoder, IntoColumns, Order, SortColumn as Column};

use super::project;
use super::sift::{Alone, Sifting};
use super::sort::Bound;
use super::{Arrangement, Transform};
use crate::derived::Derived;
use crate::equality::{FloatOrder, floats, with_one_form};
use crate::error::{Error, Result};
use crate::input::Inputs;

/// Rows without duplicate keys.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DedupeSpec {
    /// The columns to compare; all columns by default.
    pub key: Option<Vec<Column>>,
    /// The row to keep.
    pub kept: Kept,
    /// The columns to write, in this order; all columns by default.
    pub select: Option<Vec<String>>,
}

/// The row to keep of several rows with equal keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// The first row in input order.
    #[default]
    First,
    /// The last row in input order.
    Last,
    /// None: keys with several rows are removed.
    None,
    /// The last row, filled with the last non-null value of each column. Merges partial rows, with
    /// values in the changed columns and nulls elsewhere, into whole rows.
    LastKnown,
}

impl DedupeSpec {
    /// Keeps one of several rows that are equal in all columns.
    pub fn whole_rows() -> Self {
        Self::default()
    }

    /// Keeps one of several rows that are equal in these columns.
    pub fn by_key(key: impl IntoColumns) -> Self {
        Self { key: Some(key.into_columns()), ..Self::default() }
    }

    /// Sets the row to keep.
    pub fn kept(mut self, kept: Kept) -> Self {
        self.kept = kept;
        self
    }

    /// Sets the columns to write.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let all = || {
            let fields = inputs.schema().fields().iter();
            fields.map(|field| windrow::asc(field.name().as_str())).collect()
        };
        let key: Vec<Column> = self.key.clone().unwrap_or_else(all);
        let ruled = |order: Order| match self.kept {
            Kept::First => order.first(),
            Kept::Last => order.last(),
            Kept::LastKnown => order.last_known(),
            Kept::None => order,
        };
        let bound = Bound::of(inputs, &key, self.select.as_deref(), FloatOrder::Total, ruled)?;
        let mut arrangement = bound.arrangement();
        let columns: Vec<usize> = arrangement.layout.key().collect();
        arrangement.transform = of_one_form(&mut arrangement.derived, &columns, inputs);
        if self.kept == Kept::None {
            sift(&mut arrangement, columns)?;
        }
        Ok(arrangement)
    }
}

/// Adds a sift that removes keys with several rows; `key` holds the key columns.
fn sift(arrangement: &mut Arrangement, key: Vec<usize>) -> Result<()> {
    let schema = Decoder::new(&arrangement.layout, &arrangement.projection)?.schema().clone();
    let shown: Vec<usize> = (0..arrangement.projection.len()).collect();
    let places = project::places(&mut arrangement.projection, key);
    let start = move || Box::new(Alone::new(places.clone(), shown.clone())) as _;
    arrangement.sifting =
        Some(Sifting { schema, keeps_order: true, copies: 4, start: Box::new(start) });
    Ok(())
}

/// Returns a transform that normalizes the floats among `columns`; `None` if there are no floats.
/// Derived columns are normalized when they are appended.
pub(super) fn of_one_form(
    derived: &mut Option<Derived>,
    columns: &[usize],
    inputs: &Inputs,
) -> Option<Transform> {
    let floats = floats(inputs.schema(), columns.iter().copied());
    if let Some(derived) = derived {
        derived.bring_to_one_form();
    }
    (!floats.is_empty()).then(|| {
        Arc::new(move |batch: &RecordBatch, _| {
            with_one_form(batch, &floats).map_err(|error| Error::data(error.to_string()))
        }) as Transform
    })
}
