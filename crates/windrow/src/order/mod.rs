//! Orders and layouts: what the user said, and what it means for one schema.
//!
//! An [`Order`] is words: names of columns, directions, a rule. [`Order::bind`] checks them against
//! a schema once and yields a [`Layout`], which is right by construction and cheap to clone.
//!
//! ```text
//! Order::by(["user"]).then(desc("ts"))  --bind(schema)-->  Layout
//!                                                           key     user asc
//!                                                           then    ts desc
//!                                                           payload everything else
//! ```
//!
//! Order of values: integers, dates and decimals by value; booleans false first; strings and
//! binaries by bytes; floats by IEEE 754 totalOrder (-NaN, -inf, ..., -0.0, +0.0, ..., inf, NaN).

pub(crate) mod code;
mod fold;
mod header;
mod layout;
mod node;
mod shape;
pub(crate) mod types;

use std::collections::HashMap;

use arrow_schema::{Field, Schema, SchemaRef, SortOptions};

pub use fold::Fold;
pub use layout::Layout;
pub(crate) use layout::{Slot, Tail, check_fields};
pub(crate) use shape::{Sequence, Shape};

use crate::error::{Error, Result};

/// One column of an order: its name, its direction, where its nulls stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortColumn {
    /// Name of a top-level column.
    pub name: String,
    /// Greatest first.
    pub descending: bool,
    /// Nulls before all values, whatever the direction.
    pub nulls_first: bool,
}

impl SortColumn {
    /// The same column in the direction, and with the place of nulls, that Arrow's kernels take. Their
    /// default has nulls first; that of [`asc`] and [`desc`] has them last.
    ///
    /// ```
    /// use windrow::{arrow_schema::SortOptions, asc};
    /// assert_eq!(asc("at").with_options(SortOptions::default()), asc("at").nulls_first());
    /// ```
    #[must_use]
    pub fn with_options(mut self, options: SortOptions) -> Self {
        (self.descending, self.nulls_first) = (options.descending, options.nulls_first);
        self
    }

    /// The same column with its nulls in front.
    #[must_use]
    pub fn nulls_first(mut self) -> Self {
        self.nulls_first = true;
        self
    }

    /// The same column with its nulls at the end.
    #[must_use]
    pub fn nulls_last(mut self) -> Self {
        self.nulls_first = false;
        self
    }
}

impl From<&SortColumn> for SortOptions {
    fn from(column: &SortColumn) -> Self {
        Self { descending: column.descending, nulls_first: column.nulls_first }
    }
}

/// A column in ascending order, nulls last.
pub fn asc(name: impl Into<String>) -> SortColumn {
    SortColumn { name: name.into(), descending: false, nulls_first: false }
}

/// A column in descending order, nulls last.
pub fn desc(name: impl Into<String>) -> SortColumn {
    SortColumn { descending: true, ..asc(name) }
}

impl From<&str> for SortColumn {
    fn from(name: &str) -> Self {
        asc(name)
    }
}

impl From<&String> for SortColumn {
    fn from(name: &String) -> Self {
        asc(name)
    }
}

impl From<String> for SortColumn {
    fn from(name: String) -> Self {
        asc(name)
    }
}

/// A name, and the options that Arrow's kernels take.
///
/// ```
/// use windrow::{Order, arrow_schema::SortOptions};
/// let order = Order::by([("country", SortOptions::default().desc()), ("city", SortOptions::default())]);
/// # let _ = order;
/// ```
impl<S: Into<String>> From<(S, SortOptions)> for SortColumn {
    fn from((name, options): (S, SortOptions)) -> Self {
        asc(name).with_options(options)
    }
}

/// One or more columns: a name, a [`SortColumn`], or an array, slice or vector of either.
///
/// ```
/// use windrow::{Order, asc};
/// let names: Vec<String> = vec!["country".into(), "city".into()];
/// let order = Order::by(&names[..]).then(names[1].clone()).then([asc("amount").nulls_first()]);
/// # let _ = order;
/// ```
pub trait IntoColumns {
    /// The columns, most significant first.
    fn into_columns(self) -> Vec<SortColumn>;
}

impl IntoColumns for SortColumn {
    fn into_columns(self) -> Vec<SortColumn> {
        vec![self]
    }
}

impl<S: Into<String>> IntoColumns for (S, SortOptions) {
    fn into_columns(self) -> Vec<SortColumn> {
        vec![self.into()]
    }
}

impl IntoColumns for &str {
    fn into_columns(self) -> Vec<SortColumn> {
        vec![asc(self)]
    }
}

impl IntoColumns for String {
    fn into_columns(self) -> Vec<SortColumn> {
        vec![asc(self)]
    }
}

impl<C: Into<SortColumn> + Clone> IntoColumns for &[C] {
    fn into_columns(self) -> Vec<SortColumn> {
        self.iter().cloned().map(Into::into).collect()
    }
}

impl<C: Into<SortColumn>, const N: usize> IntoColumns for [C; N] {
    fn into_columns(self) -> Vec<SortColumn> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<C: Into<SortColumn>> IntoColumns for Vec<C> {
    fn into_columns(self) -> Vec<SortColumn> {
        self.into_iter().map(Into::into).collect()
    }
}

/// What becomes of rows that meet under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All of them stay, in input order: a stable sort.
    Keep,
    /// The first in the order of [`Order::then`] stays; of equals, the one that came first.
    First,
    /// The last in the order of [`Order::then`] stays; of equals, the one that came last.
    Last,
    /// As [`Rule::Last`], with the last value that is not null in each column that is not of the order.
    LastKnown,
    /// Rows equal in every column but `diff` become one with the sum of their diffs; none if that is 0.
    Sum,
}

impl Rule {
    /// True if of the rows of a key the last one wins.
    pub(crate) fn prefers_last(self) -> bool {
        matches!(self, Self::Last | Self::LastKnown)
    }

    /// True if one row of each key stays.
    pub(crate) fn is_by_key(self) -> bool {
        matches!(self, Self::First) || self.prefers_last()
    }
}

/// How rows are to be arranged, in the user's words.
///
/// ```
/// use windrow::{Order, desc};
/// let order = Order::by(["country", "city"]).then(desc("amount"));
/// # let _ = order;
/// ```
#[derive(Clone, Debug)]
pub struct Order {
    key: Vec<SortColumn>,
    then: Vec<SortColumn>,
    rule: Rule,
    time: Option<String>,
    diffs: Vec<String>,
    fold: Option<&'static dyn Fold>,
    tombstone: Option<String>,
}

impl Order {
    /// Rows ordered by these columns: the key.
    pub fn by(key: impl IntoColumns) -> Self {
        Self {
            key: key.into_columns(),
            then: Vec::new(),
            rule: Rule::Keep,
            time: None,
            diffs: Vec::new(),
            fold: None,
            tombstone: None,
        }
    }

    /// Within a key, ordered by these columns.
    #[must_use]
    pub fn then(mut self, columns: impl IntoColumns) -> Self {
        self.then.extend(columns.into_columns());
        self
    }

    /// Only the last row of each key stays ([`Rule::Last`]).
    #[must_use]
    pub fn last(mut self) -> Self {
        self.rule = Rule::Last;
        self
    }

    /// Only the first row of each key stays ([`Rule::First`]).
    #[must_use]
    pub fn first(mut self) -> Self {
        self.rule = Rule::First;
        self
    }

    /// Each key becomes one row, of the last value that is known in each column ([`Rule::LastKnown`]): nulls are what a
    /// row does not know. So rows that have what has changed, and nulls in all other columns, become the row that they are
    /// changes of. The columns of the order are those of the last row. A dictionary's or a run's null is one, and so is a
    /// union whose field is null; nulls inside of lists and structs are values.
    ///
    /// With [`Order::tombstone`] nothing is known of a key behind a row that deletes it, but by the rows that come later.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    /// use windrow::{Order, consolidate};
    ///
    /// let changes = RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(vec![1, 1, 1])) as ArrayRef),
    ///     ("seq", Arc::new(Int64Array::from(vec![12, 10, 11])) as ArrayRef),
    ///     ("name", Arc::new(StringArray::from(vec![None, Some("ann"), Some("bob")])) as ArrayRef),
    ///     ("bio", Arc::new(StringArray::from(vec![None, Some("long"), None])) as ArrayRef),
    /// ])?;
    /// let layout = Order::by("id").then("seq").last_known().bind(&changes.schema())?;
    /// let rows = consolidate(&layout, &changes)?;
    /// assert_eq!(rows.num_rows(), 1);
    /// assert_eq!(rows.column(1).as_ref(), &Int64Array::from(vec![12]));
    /// assert_eq!(rows.column(2).as_ref(), &StringArray::from(vec!["bob"]));
    /// assert_eq!(rows.column(3).as_ref(), &StringArray::from(vec!["long"]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Cost
    /// That of [`Order::last`], and until they are read, of each key the rows that know a column which none behind them
    /// does: as many as there are such columns at the most, and one.
    #[must_use]
    pub fn last_known(mut self) -> Self {
        self.rule = Rule::LastKnown;
        self
    }

    /// With [`Order::last`] and [`Order::last_known`]: a row whose Boolean column `name` is true deletes its key. It wins as
    /// any row does; a snapshot then leaves it out, a log keeps it.
    #[must_use]
    pub fn tombstone(mut self, name: impl Into<String>) -> Self {
        self.tombstone = Some(name.into());
        self
    }

    /// The column that says when a change happened, without nulls: an integer, date or timestamp, or up to 32 bytes of
    /// `FixedSizeBinary`, which hold any other [`Time`](crate::Time).
    #[must_use]
    pub fn time(mut self, name: impl Into<String>) -> Self {
        self.time = Some(name.into());
        self
    }

    /// The column that says how often a row was added (negative: removed); an integer without
    /// nulls. Implies [`Rule::Sum`].
    #[must_use]
    pub fn diff(self, name: impl Into<String>) -> Self {
        self.diffs([name])
    }

    /// As [`Order::diff`], of several columns that add up each for itself, as counts and sums do: a row is gone when
    /// all of them are zero.
    #[must_use]
    pub fn diffs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.diffs = names.into_iter().map(Into::into).collect();
        self.rule = Rule::Sum;
        self
    }

    /// Diffs of equal rows are not added up, but become what `fold` makes of them: all the diff columns together are one
    /// value of it. No kernel knows it: such rows are ordered as those of several diffs are.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use windrow::{Diff, Fold, Order, consolidate};
    ///
    /// #[derive(Debug)]
    /// struct Least;
    ///
    /// impl Fold for Least {
    ///     fn name(&self) -> &str {
    ///         "least"
    ///     }
    ///
    ///     fn fold(&self, into: &mut [u8], diff: &[u8]) {
    ///         i64::decode(into).min(i64::decode(diff)).encode(into);
    ///     }
    /// }
    ///
    /// let batch = RecordBatch::try_from_iter([
    ///     ("node", Arc::new(Int64Array::from(vec![2, 1, 2, 2])) as ArrayRef),
    ///     ("distance", Arc::new(Int64Array::from(vec![5, 0, 3, 4])) as ArrayRef),
    /// ])?;
    /// let layout = Order::by("node").diff("distance").fold(&Least).bind(&batch.schema())?;
    /// let rows = consolidate(&layout, &batch)?;
    /// assert_eq!(rows.column(0).as_ref(), &Int64Array::from(vec![1, 2]));
    /// assert_eq!(rows.column(1).as_ref(), &Int64Array::from(vec![0, 3]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn fold(mut self, fold: &'static dyn Fold) -> Self {
        self.fold = Some(fold);
        self
    }

    /// Binds the words to the columns of `schema`.
    ///
    /// # Cost
    /// A copy of the schema, and a look at all names of columns for each that is named.
    ///
    /// # Errors
    /// [`Error::MissingColumn`], [`Error::UnsupportedColumn`] and [`Error::InvalidOrder`]: a name
    /// that is not there or there twice, a type that has no order, a rule that contradicts another.
    pub fn bind(&self, schema: &Schema) -> Result<Layout> {
        Layout::bind(self, SchemaRef::new(schema.clone()))
    }
}

/// The columns of a schema by name: to look for each of 100,000 among all of them would cost their square.
pub(crate) struct Names<'a> {
    schema: &'a Schema,
    /// Positions; none of a name that several columns have.
    places: HashMap<&'a str, Option<usize>>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(schema: &'a Schema) -> Self {
        let mut places = HashMap::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let place = |place: &mut Option<usize>| *place = None;
            places.entry(field.name().as_str()).and_modify(place).or_insert(Some(index));
        }
        Self { schema, places }
    }

    /// The position of the only column called `name`.
    pub(crate) fn find(&self, name: &str) -> Result<(usize, &'a Field)> {
        match self.places.get(name) {
            Some(Some(index)) => Ok((*index, self.schema.field(*index))),
            Some(None) => {
                Err(Error::InvalidOrder(format!("more than one column is named {name:?}")))
            }
            None => {
                let names = self.schema.fields().iter().map(|field| field.name().as_str());
                let available = names.collect::<Vec<_>>().join(", ");
                Err(Error::MissingColumn { column: name.to_owned(), available })
            }
        }
    }
}
