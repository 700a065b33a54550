//! What a verb wants done with rows, in terms of the engine.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use windrow::{Decoder, Finish, Layout, Rule, SortColumn as Column};

use super::sift::Sifting;
use crate::derived::Derived;
use crate::error::{Error, Result};
use crate::facts::Pairs;
use crate::input::DeclaredColumn;

/// What becomes of a record batch before it is arranged: its change-log format is resolved, rows
/// that do not count are dropped.
/// It also gets the place in the inputs of its first row.
pub(crate) type Transform =
    Arc<dyn Fn(&RecordBatch, FirstRow) -> Result<RecordBatch> + Send + Sync>;

/// Where the first row of a record batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstRow {
    /// The ordinal of its input.
    pub(crate) file: usize,
    /// Its place there.
    pub(crate) row: u64,
}

/// What is known to be wrong only when all rows have passed the [`Transform`].
pub(crate) type Verify = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// How rows reach the arrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In any order: sorted here.
    Unordered,
    /// Every file is sorted: merged as it is read.
    Sorted,
}

/// What a verb wants done.
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
    /// Key-value metadata of what is written, where the job has said it.
    pub(crate) metadata: Option<Pairs>,
    /// Columns that are appended to what is read, or transformed.
    pub(crate) derived: Option<Derived>,
    /// What becomes of the rows in their order, before they are written.
    pub(crate) sifting: Option<Sifting>,
    /// Only the first so many rows in the order count, so that others may be dropped early.
    pub(crate) best: Option<u64>,
    /// Only the first so many rows of the inputs count.
    pub(crate) head: Option<u64>,
}

impl Arrangement {
    /// Sorted rows, all of them, with all their columns.
    pub(crate) fn of(layout: Layout) -> Self {
        Self {
            way: Way::Unordered,
            projection: (0..layout.schema().fields().len()).collect(),
            layout,
            transform: None,
            verify: None,
            finish: Finish::Log,
            required: Vec::new(),
            metadata: None,
            derived: None,
            sifting: None,
            best: None,
            head: None,
        }
    }

    /// The schema of what is written.
    ///
    /// # Errors
    /// `Data` for columns that rows cannot be decoded to.
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

    /// Whether rows are only put in order: all of them, as they are.
    pub(crate) fn passes_rows_on(&self) -> bool {
        let all = 0..self.layout.schema().fields().len();
        self.layout.rule() == Rule::Keep
            && self.projection.iter().copied().eq(all)
            && self.transform.is_none()
            && self.derived.is_none()
            && self.sifting.is_none()
            && self.head.is_none()
            && self.required.is_empty()
    }

    /// What is done with record batches on their way here.
    pub(crate) fn preparation(&self) -> Preparation {
        let Self { required, transform, derived, .. } = self;
        Preparation {
            required: required.clone(),
            transform: transform.clone(),
            derived: derived.clone(),
        }
    }

    /// The order of the rows, as a file declares it.
    pub(crate) fn sorting(&self) -> Vec<DeclaredColumn> {
        if self.sifting.as_ref().is_some_and(|sifting| !sifting.keeps_order) {
            return Vec::new();
        }
        let mut sorting = sort_columns(self.layout.order());
        if self.layout.rule() != Rule::Keep {
            // Within a key there is one row: the columns that chose it order nothing.
            sorting.truncate(self.layout.key().count());
        }
        sorting
    }
}

/// What is done with record batches before they are arranged.
#[derive(Clone)]
pub(crate) struct Preparation {
    required: Vec<usize>,
    transform: Option<Transform>,
    derived: Option<Derived>,
}

impl Preparation {
    /// The rows of `batch` as they are arranged.
    pub(crate) fn apply(&self, batch: &RecordBatch, first: FirstRow) -> Result<RecordBatch> {
        refuse_nulls(batch, &self.required, first.row)?;
        let batch = match &self.transform {
            Some(transform) => transform(batch, first)?,
            None => batch.clone(),
        };
        self.derived.as_ref().map_or(Ok(batch.clone()), |derived| derived.append(&batch))
    }
}

/// Refuses a null in any of these columns; `first_row` is the place in its file of the first row.
fn refuse_nulls(batch: &RecordBatch, columns: &[usize], first_row: u64) -> Result<()> {
    for &column in columns {
        let Some(nulls) = batch.column(column).logical_nulls() else { continue };
        if let Some(row) = (0..nulls.len()).find(|&row| nulls.is_null(row)) {
            let (row, schema) = (first_row + row as u64, batch.schema_ref());
            let column = schema.field(column).name();
            let message = format!(
                "row {row}: column {column:?} is null; drop such rows, or give them a value"
            );
            return Err(Error::data(message).at_row(row).in_column(column));
        }
    }
    Ok(())
}

/// Columns of an order, as a file declares it.
pub(crate) fn sort_columns(columns: &[Column]) -> Vec<DeclaredColumn> {
    let column = |column: &Column| DeclaredColumn {
        name: column.name.clone(),
        descending: column.descending,
        nulls_first: column.nulls_first,
    };
    columns.iter().map(column).collect()
}
