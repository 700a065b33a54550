//! Removing duplicates: one row of each key, or none where there are several.
//!
//! Keys are equal as in SQL: nulls are one key, and so are -0.0 and 0.0, and all NaN. Such values come out as 0.0 and
//! as one NaN, so that the output is sorted whichever of the rows stays.

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

/// Rows without those whose key another row has.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DedupeSpec {
    /// The columns that are equal in duplicates; all unless given.
    pub key: Option<Vec<Column>>,
    /// Which of them stays.
    pub kept: Kept,
    /// The columns to write, in this order; all unless given.
    pub select: Option<Vec<String>>,
}

/// Which row of a key stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// The one that comes first in the inputs.
    #[default]
    First,
    /// The one that comes last.
    Last,
    /// None, where there are several.
    None,
    /// The one that comes last, with the last value of each column that is not null: rows that have what has changed,
    /// and null in all other columns, become the rows that they are changes of.
    LastKnown,
}

impl DedupeSpec {
    /// One row of those that are equal in all columns.
    pub fn whole_rows() -> Self {
        Self::default()
    }

    /// One row of those that are equal in these columns.
    pub fn by_key(key: impl IntoColumns) -> Self {
        Self { key: Some(key.into_columns()), ..Self::default() }
    }

    /// Sets which row stays.
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

/// Leaves out rows of which several have a key, given the columns of that.
fn sift(arrangement: &mut Arrangement, key: Vec<usize>) -> Result<()> {
    let schema = Decoder::new(&arrangement.layout, &arrangement.projection)?.schema().clone();
    let shown: Vec<usize> = (0..arrangement.projection.len()).collect();
    let places = project::places(&mut arrangement.projection, key);
    let start = move || Box::new(Alone::new(places.clone(), shown.clone())) as _;
    arrangement.sifting =
        Some(Sifting { schema, keeps_order: true, copies: 4, start: Box::new(start) });
    Ok(())
}

/// Brings the floats among `columns` to one form, if there are any. Columns that are derived are so before.
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
