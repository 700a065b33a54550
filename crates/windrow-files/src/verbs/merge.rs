//! The verb `merge`: merges sorted files into one.

use windrow::{IntoColumns, Order, SortColumn as Column};

use super::dedupe::bring_key_to_one_form;
use super::project::required;
use super::{Arrangement, Way};
use crate::columns::names;
use crate::error::Result;
use crate::input::Inputs;
use crate::settings::{FloatOrder, setters};

/// Specification of a merge of sorted inputs. An unsorted input is an error that names the row.
#[derive(Clone, Debug, Default)]
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
        Self { by: by.into_columns(), ..Self::default() }
    }

    setters! {
        /// Sets whether to keep only the last row of each key.
        unique: bool;
        /// Sets the equality and order of floats.
        float_order: FloatOrder;
    }

    /// Sums the diffs of equal rows, separately for each time if a time column is given.
    pub fn consolidate(mut self, diff: impl Into<String>, time: Option<String>) -> Self {
        self.diff = Some(diff.into());
        self.time = time;
        self
    }

    setters! {
        /// Sets the columns to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
    }

    /// Returns the columns with values that the verb interprets: the order. `None` means all
    /// columns, if diffs of equal rows are summed.
    pub fn compared(&self) -> Option<Vec<String>> {
        self.diff.is_none().then(|| names(&self.by))
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
        let select = self.select.as_deref();
        let mut arrangement = Arrangement::by(inputs, &self.by, select, floats, ruled)?;
        if self.unique {
            bring_key_to_one_form(&mut arrangement, inputs);
        }
        arrangement.way = Way::Sorted;
        arrangement.required = required(inputs.schema(), &[&self.diff, &self.time])?;
        Ok(arrangement)
    }
}
