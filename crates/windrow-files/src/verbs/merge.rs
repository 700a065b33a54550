//! Merging: files that are sorted, into one that is.

use windrow::{IntoColumns, Order, SortColumn as Column};

use super::dedupe::of_one_form;
use super::project::required;
use super::sort::Bound;
use super::{Arrangement, Way};
use crate::equality::FloatOrder;
use crate::error::Result;
use crate::input::Inputs;

/// Inputs that are sorted already, merged. One that is not is an error that names the row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergeSpec {
    /// The columns that every input is sorted by, most significant first.
    pub by: Vec<Column>,
    /// Whether of rows equal in them only the last is kept. Floats are then equal as in SQL, and come out as 0.0 and as
    /// one NaN.
    pub unique: bool,
    /// Which floats are equal, and where they stand.
    pub float_order: FloatOrder,
    /// The column with how often a row was added: diffs of equal rows are summed, and zeros dropped. Inputs
    /// are then sorted by `by` and all other columns.
    pub diff: Option<String>,
    /// The column with the time of a change, where diffs are summed.
    pub time: Option<String>,
    /// The columns to write, in this order; all unless given.
    pub select: Option<Vec<String>>,
}

impl MergeSpec {
    /// Merges by these columns.
    pub fn by(by: impl IntoColumns) -> Self {
        Self {
            by: by.into_columns(),
            unique: false,
            float_order: FloatOrder::Total,
            diff: None,
            time: None,
            select: None,
        }
    }

    /// Sets whether of rows equal in the columns only the last is kept.
    pub fn unique(mut self, unique: bool) -> Self {
        self.unique = unique;
        self
    }

    /// Sets which floats are equal, and where they stand.
    pub fn float_order(mut self, order: FloatOrder) -> Self {
        self.float_order = order;
        self
    }

    /// Sums the diffs of equal rows, at each time if there is a column of times.
    pub fn consolidate(mut self, diff: impl Into<String>, time: Option<String>) -> Self {
        self.diff = Some(diff.into());
        self.time = time;
        self
    }

    /// Sets the columns to write.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let ruled = |mut order: Order| {
            if self.unique {
                order = order.last();
            }
            if let Some(diff) = &self.diff {
                order = order.diff(diff);
            }
            if let Some(time) = &self.time {
                order = order.time(time);
            }
            order
        };
        // Of rows with one key any may stay, so that their keys are brought to one form.
        let floats = if self.unique { FloatOrder::Total } else { self.float_order };
        let bound = Bound::of(inputs, &self.by, self.select.as_deref(), floats, ruled)?;
        let mut arrangement = bound.arrangement();
        if self.unique {
            let columns: Vec<usize> = arrangement.layout.key().collect();
            arrangement.transform = of_one_form(&mut arrangement.derived, &columns, inputs);
        }
        arrangement.way = Way::Sorted;
        arrangement.required = required(inputs.schema(), &[&self.diff, &self.time])?;
        Ok(arrangement)
    }
}
