//! Orders and layouts: the order that a user states, and its meaning for one schema.
//!
//! An [`Order`] names columns, directions and a rule. [`Order::bind`] checks the names against a
//! schema once and returns a [`Layout`], which is right by construction and cheap to clone.
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
pub use layout::{Slot, Tail, check_fields};
pub use shape::Sequence;
pub(crate) use shape::Shape;

use crate::error::{Error, Result};

/// One column of an order: its name, its direction and the position of its nulls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortColumn {
    /// Name of a top-level column.
    pub name: String,
    /// True if the greatest value comes first.
    pub descending: bool,
    /// True if nulls come before all values, whatever the direction.
    pub nulls_first: bool,
}

impl SortColumn {
    /// Returns the column with the direction and the position of nulls of Arrow's options. The
    /// default of `SortOptions` puts nulls first; [`asc`] and [`desc`] put nulls last.
    ///
    /// ```
    /// use windrow_rows::{arrow_schema::SortOptions, asc};
    /// assert_eq!(asc("at").with_options(SortOptions::default()), asc("at").nulls_first());
    /// ```
    #[must_use]
    pub fn with_options(mut self, options: SortOptions) -> Self {
        (self.descending, self.nulls_first) = (options.descending, options.nulls_first);
        self
    }

    /// Returns the column with nulls in front.
    #[must_use]
    pub fn nulls_first(mut self) -> Self {
        self.nulls_first = true;
        self
    }

    /// Returns the column with nulls at the end.
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

/// Returns a column in ascending order, nulls last.
pub fn asc(name: impl Into<String>) -> SortColumn {
    SortColumn { name: name.into(), descending: false, nulls_first: false }
}

/// Returns a column in descending order, nulls last.
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

/// Combines a name with the options of Arrow's kernels.
///
/// ```
/// use windrow_rows::{Order, arrow_schema::SortOptions};
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
/// use windrow_rows::{Order, asc};
/// let names: Vec<String> = vec!["country".into(), "city".into()];
/// let order = Order::by(&names[..]).then(names[1].clone()).then([asc("amount").nulls_first()]);
/// # let _ = order;
/// ```
pub trait IntoColumns {
    /// Returns the columns, most significant first.
    fn into_columns(self) -> Vec<SortColumn>;
}

impl<C: Into<SortColumn>> IntoColumns for C {
    fn into_columns(self) -> Vec<SortColumn> {
        vec![self.into()]
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

/// How rows with equal keys are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Keeps all rows, in input order: a stable sort.
    Keep,
    /// Keeps the first row in the order of [`Order::then`]; of equal rows, the row that came first.
    First,
    /// Keeps the last row in the order of [`Order::then`]; of equal rows, the row that came last.
    Last,
    /// Keeps the last row like [`Rule::Last`], with the last non-null value of each column outside
    /// the order.
    LastKnown,
    /// Merges rows equal in every column but `diff` into one row with the sum of their diffs, and
    /// drops the row if the sum is 0.
    Sum,
}

/// For the engine.
#[doc(hidden)]
impl Rule {
    /// Returns true if the last row of a key wins.
    pub fn prefers_last(self) -> bool {
        matches!(self, Self::Last | Self::LastKnown)
    }

    /// Returns true if one row of each key stays.
    pub fn is_by_key(self) -> bool {
        matches!(self, Self::First) || self.prefers_last()
    }
}

/// An arrangement of rows, with columns given by name.
///
/// ```
/// use windrow_rows::{Order, desc};
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
    /// Orders rows by these columns: the key.
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

    /// Orders rows by no column. Of all rows, those of a [`RowEncoder`](crate::RowEncoder) of such a
    /// layout are the shortest and the fastest: a bit for each nullable column, then values as Arrow
    /// has them. Rows are equal if and only if their bytes are; floats are equal if their bits are.
    pub fn unordered() -> Self {
        Self::by([] as [SortColumn; 0])
    }

    /// Orders rows within a key by these columns.
    #[must_use]
    pub fn then(mut self, columns: impl IntoColumns) -> Self {
        self.then.extend(columns.into_columns());
        self
    }

    /// Keeps only the last row of each key ([`Rule::Last`]).
    #[must_use]
    pub fn last(mut self) -> Self {
        self.rule = Rule::Last;
        self
    }

    /// Keeps only the first row of each key ([`Rule::First`]).
    #[must_use]
    pub fn first(mut self) -> Self {
        self.rule = Rule::First;
        self
    }

    /// Merges the rows of each key into one row with the last known value of each column
    /// ([`Rule::LastKnown`]). A null means that the row does not know the column. So a row followed
    /// by its changes, with nulls in all unchanged columns, becomes the row with all changes
    /// applied. The columns of the order come from the last row. The nulls of dictionaries and runs
    /// count as nulls, and so does a union whose field is null; nulls inside lists and structs are
    /// values.
    ///
    /// With [`Order::tombstone`], a row that deletes its key also discards all earlier values of
    /// the key.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    /// use windrow_rows::{Order, Rule};
    ///
    /// let changes = RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(vec![1, 1, 1])) as ArrayRef),
    ///     ("seq", Arc::new(Int64Array::from(vec![12, 10, 11])) as ArrayRef),
    ///     ("name", Arc::new(StringArray::from(vec![None, Some("ann"), Some("bob")])) as ArrayRef),
    ///     ("bio", Arc::new(StringArray::from(vec![None, Some("long"), None])) as ArrayRef),
    /// ])?;
    /// let layout = Order::by("id").then("seq").last_known().bind(&changes.schema())?;
    /// // The engine merges these rows into one: id 1, seq 12, name "bob", bio "long".
    /// assert_eq!(layout.rule(), Rule::LastKnown);
    /// # Ok::<(), windrow_rows::Error>(())
    /// ```
    ///
    /// # Cost
    /// The cost of [`Order::last`]. Until the rows are read, each key also keeps the rows that hold
    /// the last known value of a column: at most one row for each such column, and one more.
    #[must_use]
    pub fn last_known(mut self) -> Self {
        self.rule = Rule::LastKnown;
        self
    }

    /// Names the Boolean column that marks deletions, with [`Order::last`] and
    /// [`Order::last_known`]: a row with true deletes its key. A deletion wins like any row; a
    /// snapshot then leaves out the key, and a log keeps the deletion.
    #[must_use]
    pub fn tombstone(mut self, name: impl Into<String>) -> Self {
        self.tombstone = Some(name.into());
        self
    }

    /// Names the column with the time of a change, without nulls: an integer, date or timestamp, or
    /// up to 32 bytes of `FixedSizeBinary`, for any other [`Time`](crate::Time).
    #[must_use]
    pub fn time(mut self, name: impl Into<String>) -> Self {
        self.time = Some(name.into());
        self
    }

    /// Names the column that counts how often a row was added (negative: removed): an integer
    /// without nulls. Implies [`Rule::Sum`].
    #[must_use]
    pub fn diff(self, name: impl Into<String>) -> Self {
        self.diffs([name])
    }

    /// Names several columns like [`Order::diff`], each with a sum of its own, for example a count
    /// and a sum. A row is removed when all its diffs are zero.
    #[must_use]
    pub fn diffs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.diffs = names.into_iter().map(Into::into).collect();
        self.rule = Rule::Sum;
        self
    }

    /// Combines the diffs of equal rows with `fold` instead of adding them up. The diff columns
    /// together are one value of the fold. No kernel supports folds: rows are ordered like rows
    /// with several diffs.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use windrow_rows::{Diff, Fold, Order, Rule};
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
    /// // The engine merges these rows into two: node 1 with distance 0, node 2 with distance 3.
    /// assert_eq!(layout.rule(), Rule::Sum);
    /// # Ok::<(), windrow_rows::Error>(())
    /// ```
    #[must_use]
    pub fn fold(mut self, fold: &'static dyn Fold) -> Self {
        self.fold = Some(fold);
        self
    }

    /// Binds the order to the columns of `schema`.
    ///
    /// # Cost
    /// A copy of the schema, and a table of all column names.
    ///
    /// # Errors
    /// [`Error::MissingColumn`], [`Error::UnsupportedColumn`] and [`Error::InvalidOrder`]: a
    /// missing or ambiguous name, a type without an order, a rule that contradicts another.
    pub fn bind(&self, schema: &Schema) -> Result<Layout> {
        Layout::bind(self, SchemaRef::new(schema.clone()))
    }
}

/// The columns of a schema by name. A linear search for each of 100,000 columns would take time
/// quadratic in their number.
pub struct Names<'a> {
    schema: &'a Schema,
    /// Position of each name, or `None` if several columns have the name.
    places: HashMap<&'a str, Option<usize>>,
}

impl<'a> Names<'a> {
    /// Returns the names of the columns of `schema`.
    pub fn of(schema: &'a Schema) -> Self {
        let mut places = HashMap::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let place = |place: &mut Option<usize>| *place = None;
            places.entry(field.name().as_str()).and_modify(place).or_insert(Some(index));
        }
        Self { schema, places }
    }

    /// Returns the position and the field of the only column called `name`.
    pub fn find(&self, name: &str) -> Result<(usize, &'a Field)> {
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
