//! The verbs `sort` and `head`: all rows in the order of columns, with equal rows in input order;
//! and the first rows in input order.

use windrow::{IntoColumns, SortColumn as Column};

use super::Arrangement;
use super::sift::{First, Sifting};
use crate::columns::names;
use crate::error::Result;
use crate::input::Inputs;
use crate::settings::{FloatOrder, setters};

/// Specification of a sort. Equal rows keep their order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SortSpec {
    /// Columns of the order, most significant first.
    pub by: Vec<Column>,
    /// Columns to write, in this order; by default all.
    pub select: Option<Vec<String>>,
    /// Maximum number of rows to write: the first rows of the order.
    pub limit: Option<u64>,
    /// Equality and order of floats.
    pub float_order: FloatOrder,
}

impl SortSpec {
    /// Sorts by these columns: names, [`SortColumn`](windrow::SortColumn)s, or
    /// [`Columns`](crate::Columns) parsed from text.
    pub fn by(by: impl IntoColumns) -> Self {
        Self { by: by.into_columns(), select: None, limit: None, float_order: FloatOrder::Total }
    }

    setters! {
        /// Sets the columns to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
        /// Sets the maximum number of rows to write. If the orders of this many rows fit a few MiB,
        /// rows outside the limit are dropped while reading.
        limit: u64 => Some(limit);
        /// Sets the equality and order of floats.
        float_order: FloatOrder;
    }

    /// Returns the columns with values that the verb interprets: the order. It copies the others.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(names(&self.by))
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let select = self.select.as_deref();
        let mut arrangement =
            Arrangement::by(inputs, &self.by, select, self.float_order, |order| order)?;
        if let Some(limit) = self.limit {
            arrangement.sifting = Some(first(&arrangement, limit)?);
            arrangement.best = Some(limit);
        }
        Ok(arrangement)
    }
}

/// Specification of the first rows of the inputs, in input order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeadSpec {
    /// Number of rows.
    pub rows: u64,
    /// Columns to write, in this order; by default all.
    pub select: Option<Vec<String>>,
}

impl HeadSpec {
    /// Selects the first `rows` rows.
    pub fn rows(rows: u64) -> Self {
        Self { rows, select: None }
    }

    setters! {
        /// Sets the columns to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
    }

    /// Returns the columns with values that the verb interprets: none.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let (select, floats) = (self.select.as_deref(), FloatOrder::Total);
        let mut arrangement = Arrangement::by(inputs, &[], select, floats, |order| order)?;
        arrangement.sifting = Some(first(&arrangement, self.rows)?);
        arrangement.head = Some(self.rows);
        Ok(arrangement)
    }
}

/// Limits the output to the first rows.
fn first(arrangement: &Arrangement, rows: u64) -> Result<Sifting> {
    let schema = arrangement.schema()?;
    let start = Box::new(move || Box::new(First { left: rows }) as _);
    Ok(Sifting { schema, keeps_order: true, copies: 0, start })
}
