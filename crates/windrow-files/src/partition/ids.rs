//! Numbers of partitions, as a column behind those of the input.
//!
//! ```text
//!  a b c        a b c _partition
//!  . . .   -->  . . .  3
//! ```
//!
//! Ranges that are to be found have their splitters only once the input was sampled: before that
//! there is no number for any row.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use windrow::{Layout, Partitioner};

use super::Sample;
use crate::derived::Derived;
use crate::equality::{floats, with_one_form};
use crate::error::{Error, Result};

/// Appends the number of its partition to every row; shared by all threads.
pub(crate) struct Ids {
    /// Columns of the layout that the input lacks.
    derived: Option<Derived>,
    layout: Layout,
    schema: SchemaRef,
    partitioner: OnceLock<Partitioner>,
    /// Copies that no thread works with; each has its own memory.
    idle: Mutex<Vec<Partitioner>>,
    sampled: Option<usize>,
    /// Columns of the key that are floats, of which those that are equal in SQL are of one partition.
    floats: Vec<usize>,
}

impl Ids {
    /// Numbers by a partitioner of the layout's rows.
    pub(crate) fn new(layout: &Layout, partitioner: Partitioner) -> Self {
        let ids = Self::of(layout, None);
        let _first = ids.partitioner.set(partitioner);
        ids
    }

    /// Numbers of as many ranges of the layout's key, to be found by a sample.
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

    /// Has floats that are equal in SQL numbered as one. Ranges are of the order that tells them apart.
    pub(crate) fn equal_as_in_sql(mut self) -> Self {
        self.floats = floats(self.layout.schema(), self.layout.key());
        self
    }

    /// Sets the columns of the layout that the input lacks.
    pub(crate) fn with(mut self, derived: Option<Derived>) -> Self {
        self.derived = derived;
        self
    }

    /// The batch with all columns of the layout.
    pub(crate) fn prepared(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.derived.as_ref().map_or_else(|| Ok(batch.clone()), |derived| derived.append(batch))
    }

    /// The schema of the layout with the number behind it.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// An empty sample, if one is needed.
    pub(crate) fn sample(&self) -> Result<Option<Sample>> {
        self.sampled.map(|partitions| Sample::new(&self.layout, partitions)).transpose()
    }

    /// Finds ranges that have about as many rows of the sample each.
    pub(crate) fn cut(&self, sample: Sample) -> Result<()> {
        let _first = self.partitioner.set(Partitioner::range(&self.layout, &sample.splitters()?)?);
        Ok(())
    }

    /// The batch with a number for every row.
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
