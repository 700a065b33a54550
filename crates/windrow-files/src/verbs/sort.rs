//! Sorting: all rows, ordered by columns, equal ones in input order.

use windrow::{Finish, IntoColumns, Order, SortColumn as Column};

use super::project::projection;
use super::{Arrangement, Way};
use crate::error::Result;
use crate::input::Inputs;

/// Rows in the order of columns; equal ones keep their order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SortSpec {
    /// The columns, most significant first.
    pub by: Vec<Column>,
    /// The columns to write, in this order; all unless given.
    pub select: Option<Vec<String>>,
}

impl SortSpec {
    /// Sorts by these columns: names, [`SortColumn`](windrow::SortColumn)s, or [`Columns`] read from text.
    pub fn by(by: impl IntoColumns) -> Self {
        Self { by: by.into_columns(), select: None }
    }

    /// Sets the columns to write.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        Ok(Arrangement {
            way: Way::Unordered,
            projection: projection(inputs.schema(), self.select.as_deref(), &[])?,
            layout: Order::by(self.by.clone()).bind(inputs.schema())?,
            transform: None,
            verify: None,
            finish: Finish::Log,
            required: Vec::new(),
        })
    }
}
