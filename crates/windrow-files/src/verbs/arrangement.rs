//! The arrangement requested by a verb, in terms of the engine.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use windrow::{Decoder, Finish, Layout, Order, Rule, SortColumn as Column};

use super::project::projection;
use super::sift::Sifting;
use crate::derived::Derived;
use crate::error::{Error, Result};
use crate::facts::Pairs;
use crate::input::{DeclaredColumn, Inputs};
use crate::settings::FloatOrder;

/// Converts a record batch before it is arranged: resolves the change-log format and drops
/// irrelevant rows. The second argument is the position of the batch's first row in the inputs.
pub(crate) type Transform =
    Arc<dyn Fn(&RecordBatch, FirstRow) -> Result<RecordBatch> + Send + Sync>;

/// The position of the first row of a record batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstRow {
    /// Index of the input.
    pub(crate) file: usize,
    /// Row number in the input.
    pub(crate) row: u64,
}

/// A check made after all rows have passed the [`Transform`].
pub(crate) type Verify = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// The order in which rows arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In any order; the engine sorts the rows.
    Unordered,
    /// In sorted files; the engine merges the files while reading.
    Sorted,
}

/// A verb's request to the engine.
pub(crate) struct Arrangement {
    pub(crate) way: Way,
    pub(crate) layout: Layout,
    pub(crate) transform: Option<Transform>,
    pub(crate) verify: Option<Verify>,
    pub(crate) finish: Finish,
    /// Columns of the layout's schema to write, in this order.
    pub(crate) projection: Vec<usize>,
    /// Columns of the inputs in which a null is an error: diffs and their times.
    pub(crate) required: Vec<usize>,
    /// Key-value metadata of the output, once the job has set it.
    pub(crate) metadata: Option<Pairs>,
    /// Columns to append to the rows read or transformed.
    pub(crate) derived: Derived,
    /// The transform of the sorted rows, applied before writing.
    pub(crate) sifting: Option<Sifting>,
    /// Number of rows wanted, the first ones in the order; other rows may be dropped early.
    pub(crate) best: Option<u64>,
    /// Number of rows wanted, the first ones of the inputs.
    pub(crate) head: Option<u64>,
}

impl Arrangement {
    /// Returns an arrangement that sorts all rows, with all columns.
    pub(crate) fn of(layout: Layout) -> Self {
        Self {
            way: Way::Unordered,
            projection: (0..layout.schema().fields().len()).collect(),
            derived: Derived::of(layout.schema(), []),
            layout,
            transform: None,
            verify: None,
            finish: Finish::Log,
            required: Vec::new(),
            metadata: None,
            sifting: None,
            best: None,
            head: None,
        }
    }

    /// Returns an arrangement by the order `by`, with extensions by `more`, and `select` as the
    /// columns to write.
    pub(super) fn by(
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
        let derived = derived.ordering(inputs.schema(), &mut by, floats);
        let hidden: Vec<String> = derived.names().cloned().collect();
        let projection = projection(&derived.schema, select, &hidden)?;
        let layout = more(Order::by(by)).bind(&derived.schema)?;
        Ok(Self { projection, derived, ..Self::of(layout) })
    }

    /// Returns the schema of the output.
    ///
    /// # Errors
    /// `Data` for column types that rows cannot be decoded to.
    pub(crate) fn schema(&self) -> Result<SchemaRef> {
        let schema = match &self.sifting {
            Some(sifting) => Arc::clone(&sifting.schema),
            None => Arc::clone(Decoder::new(&self.layout, &self.projection)?.schema()),
        };
        Ok(match &self.metadata {
            Some(metadata) if metadata != schema.metadata() => {
                Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata.clone()))
            }
            _ => schema,
        })
    }

    /// Returns true if the arrangement only sorts: all rows, unchanged.
    pub(crate) fn passes_rows_on(&self) -> bool {
        let all = 0..self.layout.schema().fields().len();
        self.layout.rule() == Rule::Keep
            && self.projection.iter().copied().eq(all)
            && self.transform.is_none()
            && self.derived.is_empty()
            && self.sifting.is_none()
            && self.head.is_none()
            && self.required.is_empty()
    }

    /// Returns the preparation of record batches.
    pub(crate) fn preparation(&self) -> Preparation {
        let Self { required, transform, derived, .. } = self;
        Preparation {
            required: required.clone(),
            transform: transform.clone(),
            derived: derived.clone(),
        }
    }

    /// Returns the order of the rows in the form declared by a file.
    pub(crate) fn sorting(&self) -> Vec<DeclaredColumn> {
        if self.sifting.as_ref().is_some_and(|sifting| !sifting.keeps_order) {
            return Vec::new();
        }
        let mut sorting = sort_columns(self.layout.order());
        if self.layout.rule() != Rule::Keep {
            // A key has one row, so the columns that chose the row define no order.
            sorting.truncate(self.layout.key().count());
        }
        sorting
    }
}

/// The processing of record batches before the arrangement.
#[derive(Clone)]
pub(crate) struct Preparation {
    required: Vec<usize>,
    transform: Option<Transform>,
    derived: Derived,
}

impl Preparation {
    /// Prepares the rows of `batch`.
    pub(crate) fn apply(&self, batch: &RecordBatch, first: FirstRow) -> Result<RecordBatch> {
        refuse_nulls(batch, &self.required, first.row)?;
        match &self.transform {
            Some(transform) => self.derived.append(&transform(batch, first)?),
            None => self.derived.append(batch),
        }
    }
}

/// Returns an error for a null in any of `columns`; `first_row` is the number of the batch's first
/// row in its file.
fn refuse_nulls(batch: &RecordBatch, columns: &[usize], first_row: u64) -> Result<()> {
    for &column in columns {
        let Some(nulls) = batch.column(column).logical_nulls() else { continue };
        if let Some(row) = (0..nulls.len()).find(|&row| nulls.is_null(row)) {
            let (row, schema) = (first_row + row as u64, batch.schema_ref());
            let column = schema.field(column).name();
            let what = "is null; drop such rows, or give them a value";
            return Err(Error::of_value(row, column, what));
        }
    }
    Ok(())
}

/// Converts columns of an order to the form declared by a file.
pub(crate) fn sort_columns(columns: &[Column]) -> Vec<DeclaredColumn> {
    let column = |column: &Column| DeclaredColumn {
        name: column.name.clone(),
        descending: column.descending,
        nulls_first: column.nulls_first,
    };
    columns.iter().map(column).collect()
}
