//! The verbs `sort` and `head`: all rows in the order of columns, with equal rows in input order;
//! and the first rows in input order.

use windrow::{IntoColumns, Layout, Order, SortColumn as Column};

use super::Arrangement;
use super::project::projection;
use super::sift::{First, Sifting};
use crate::derived::Derived;
use crate::equality::FloatOrder;
use crate::error::Result;
use crate::input::Inputs;

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

    /// Sets the columns to write.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the maximum number of rows to write. If the orders of this many rows fit a few MiB,
    /// rows outside the limit are dropped while reading.
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Sets the equality and order of floats.
    pub fn float_order(mut self, order: FloatOrder) -> Self {
        self.float_order = order;
        self
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let select = self.select.as_deref();
        let bound = Bound::of(inputs, &self.by, select, self.float_order, |order| order)?;
        let mut arrangement = bound.arrangement();
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

    /// Sets the columns to write.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let bound =
            Bound::of(inputs, &[], self.select.as_deref(), FloatOrder::Total, |order| order)?;
        let mut arrangement = bound.arrangement();
        arrangement.sifting = Some(first(&arrangement, self.rows)?);
        arrangement.head = Some(self.rows);
        Ok(arrangement)
    }
}

/// An order bound to the inputs' rows, and the columns to write.
pub(super) struct Bound {
    pub(super) layout: Layout,
    pub(super) derived: Option<Derived>,
    pub(super) projection: Vec<usize>,
}

impl Bound {
    /// Binds the order `by` to `inputs`, with extensions by `more`, and `select` as the columns to
    /// write.
    pub(super) fn of(
        inputs: &Inputs,
        by: &[Column],
        select: Option<&[String]>,
        floats: FloatOrder,
        more: impl FnOnce(Order) -> Order,
    ) -> Result<Self> {
        let ordered = by.iter().map(|column| column.name.as_str());
        let selected = select.unwrap_or_default().iter().map(String::as_str);
        let derived = Derived::of(inputs.schema(), ordered.chain(selected));
        let mut by = by.to_vec();
        let derived = Derived::ordering(derived, inputs.schema(), &mut by, floats);
        let schema = derived.as_ref().map_or(inputs.schema(), Derived::schema);
        let hidden: Vec<String> = derived.iter().flat_map(Derived::names).cloned().collect();
        let projection = projection(schema, select, &hidden)?;
        let layout = more(Order::by(by)).bind(schema)?;
        Ok(Self { layout, projection, derived })
    }

    pub(super) fn arrangement(self) -> Arrangement {
        let Self { layout, derived, projection } = self;
        Arrangement { projection, derived, ..Arrangement::of(layout) }
    }
}

/// Limits the output to the first rows.
fn first(arrangement: &Arrangement, rows: u64) -> Result<Sifting> {
    let schema = windrow::Decoder::new(&arrangement.layout, &arrangement.projection)?;
    let schema = schema.schema().clone();
    let start = Box::new(move || Box::new(First::new(rows)) as _);
    Ok(Sifting { schema, keeps_order: true, copies: 0, start })
}
