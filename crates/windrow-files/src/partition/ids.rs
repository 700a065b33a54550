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
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use windrow::{Layout, Partitioner};

use super::Sample;
use crate::derived::Derived;
use crate::equality::{floats, with_one_form};
use crate::error::{Error, Result};

/// Appends its partition's number to every row. All threads share this value.
pub(crate) struct Ids {
    /// Columns of the layout that are computed from the input.
    derived: Option<Derived>,
    layout: Layout,
    schema: SchemaRef,
    partitioner: OnceLock<Partitioner>,
    /// Idle copies of the partitioner, each with its own memory.
    idle: Mutex<Vec<Partitioner>>,
    sampled: Option<usize>,
    /// Float columns of the key. Floats that are equal in SQL belong to one partition.
    floats: Vec<usize>,
}

impl Ids {
    /// Numbers rows by a partitioner of the layout's rows.
    pub(crate) fn new(layout: &Layout, partitioner: Partitioner) -> Self {
        let ids = Self::of(layout, None);
        let _first = ids.partitioner.set(partitioner);
        ids
    }

    /// Numbers rows by ranges of the layout's key. A sample determines the ranges later.
    pub(crate) fn of_ranges(layout: &Layout, partitions: usize) -> Self {
        Self::of(layout, Some(partitions))
    }

    fn of(layout: &Layout, sampled: Option<usize>) -> Self {
        let schema = layout.schema();
        let mut name = "_partition".to_owned();
        while schema.index_of(&name).is_ok() {
            name.insert(0, '_');
        }
        let number = Arc::new(Field::new(name, DataType::UInt32, false));
        let fields: Vec<_> = schema.fields().iter().cloned().chain([number]).collect();
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        Self {
            derived: None,
            layout: layout.clone(),
            schema: Arc::new(schema),
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

    /// Sets the columns of the layout that are computed from the input.
    pub(crate) fn with(mut self, derived: Option<Derived>) -> Self {
        self.derived = derived;
        self
    }

    /// Returns the record batch with all columns of the layout.
    pub(crate) fn prepared(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.derived.as_ref().map_or_else(|| Ok(batch.clone()), |derived| derived.append(batch))
    }

    /// Returns the schema of the layout, followed by the number.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
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
        let equal = with_one_form(&batch, &self.floats);
        let equal = equal.map_err(|error| Error::data(error.to_string()))?;
        partitioner.assign(&equal, &mut numbers)?;
        idle().push(partitioner);
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(UInt32Array::from(numbers)));
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| Error::data(error.to_string()))
    }
}
