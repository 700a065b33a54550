//! Partition numbers, as an additional last column.
//!
//! ```text
//!  a b c        a b c _partition
//!  . . .   -->  . . .  3
//! ```
//!
//! Splitters of sampled ranges are known only after the sample. Before that, rows have no number.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, SchemaRef};
use windrow::{Layout, Partitioner};

use super::Sample;
use crate::derived::Derived;
use crate::equality::{floats, with_one_form};
use crate::error::{Error, Result, failed};
use crate::names::extended;

/// Appends its partition's number to every row. All threads share this value.
pub(crate) struct Ids {
    /// Columns of the layout that are computed from the input.
    derived: Derived,
    layout: Layout,
    /// The schema of the layout, followed by the number.
    pub(crate) schema: SchemaRef,
    partitioner: OnceLock<Partitioner>,
    /// Idle copies of the partitioner, each with its own memory.
    idle: Mutex<Vec<Partitioner>>,
    sampled: Option<usize>,
    /// Float columns of the key. Floats that are equal in SQL belong to one partition.
    floats: Vec<usize>,
}

impl Ids {
    /// Numbers rows by a partitioner of the layout's rows. `derived` are the columns of the layout
    /// that are computed from the input.
    pub(crate) fn new(layout: &Layout, derived: Derived, partitioner: Partitioner) -> Self {
        let ids = Self::of(layout, derived, None);
        let _first = ids.partitioner.set(partitioner);
        ids
    }

    /// Numbers rows; by so many ranges of the layout's key if `sampled`, which a sample determines
    /// later.
    pub(crate) fn of(layout: &Layout, derived: Derived, sampled: Option<usize>) -> Self {
        let schema = layout.schema();
        let mut name = "_partition".to_owned();
        while schema.index_of(&name).is_ok() {
            name.insert(0, '_');
        }
        let number = Field::new(name, DataType::UInt32, false);
        Self {
            derived,
            layout: layout.clone(),
            schema: extended(schema, [number]),
            partitioner: OnceLock::new(),
            idle: Mutex::default(),
            sampled,
            floats: Vec::new(),
        }
    }

    /// Gives the same number to floats that are equal in SQL. Ranges need no such rule, since their
    /// order distinguishes these floats.
    pub(crate) fn equal_as_in_sql(mut self) -> Self {
        self.floats = floats(self.layout.schema(), self.layout.key());
        self
    }

    /// Returns the record batch with all columns of the layout.
    pub(crate) fn prepared(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.derived.append(batch)
    }

    /// Returns an empty sample, if one is needed.
    pub(crate) fn sample(&self) -> Result<Option<Sample>> {
        self.sampled.map(|partitions| Sample::new(&self.layout, partitions)).transpose()
    }

    /// Determines ranges with about equally many rows of the sample.
    pub(crate) fn cut(&self, sample: Sample) -> Result<()> {
        let _first = self.partitioner.set(Partitioner::range(&self.layout, &sample.splitters()?)?);
        Ok(())
    }

    /// Returns the record batch with a number for every row.
    pub(crate) fn append(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let batch = self.prepared(batch)?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = idle().pop();
        let mut partitioner = copy
            .or_else(|| self.partitioner.get().cloned())
            .ok_or_else(|| Error::data("internal error: ranges were not sampled"))?;
        let mut numbers = Vec::new();
        let equal = with_one_form(&batch, &self.floats).map_err(failed)?;
        partitioner.assign(&equal, &mut numbers)?;
        idle().push(partitioner);
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(UInt32Array::from(numbers)));
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(failed)
    }
}
