//! The verb `merge`: merges sorted files into one.

use windrow::{IntoColumns, Order, SortColumn as Column};

use super::dedupe::of_one_form;
use super::project::required;
use super::sort::Bound;
use super::{Arrangement, Way};
use crate::equality::FloatOrder;
use crate::error::Result;
use crate::input::Inputs;

/// Specification of a merge of sorted inputs. An unsorted input is an error that names the row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergeSpec {
    /// Columns by which every input is sorted, most significant first.
    pub by: Vec<Column>,
    /// Whether to keep only the last row of each key. Floats are then equal as in SQL, and are
    /// written as 0.0 and as a single NaN.
    pub unique: bool,
    /// Equality and order of floats.
    pub float_order: FloatOrder,
    /// Column with the number of times that a row was added. Diffs of equal rows are summed, and
    /// rows with a sum of zero dropped. Inputs must be sorted by `by` and all other columns.
    pub diff: Option<String>,
    /// Column with the time of a change, if diffs are summed.
    pub time: Option<String>,
    /// Columns to write, in this order; by default all.
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

    /// Sets whether to keep only the last row of each key.
    pub fn unique(mut self, unique: bool) -> Self {
        self.unique = unique;
        self
    }

    /// Sets the equality and order of floats.
    pub fn float_order(mut self, order: FloatOrder) -> Self {
        self.float_order = order;
        self
    }

    /// Sums the diffs of equal rows, separately for each time if a time column is given.
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
        // Any row of a key may stay, so keys are normalized to one form.
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
