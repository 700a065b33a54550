//! Input of record batches into a dataflow.

use std::sync::Arc;

use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::core::input::Handle;
use timely::order::TotalOrder;
use windrow::arrow_array::RecordBatch;
use windrow::arrow_schema::SchemaRef;
use windrow::{Error, Result};

use super::shape::check_schema;
use super::{Changes, ColumnCollection};
use crate::{DiffCode, TimeCode};

/// An input of record batches of one schema, with a current time.
pub struct ColumnInput<T: TimeCode + TotalOrder, R: DiffCode> {
    schema: SchemaRef,
    handle: Handle<T, NoopBuilder<Changes<T, R>>>,
}

impl<T: TimeCode + TotalOrder, R: DiffCode> ColumnInput<T, R> {
    /// Creates an input and its collection of `schema`.
    pub fn new<'scope>(
        scope: Scope<'scope, T>,
        schema: &SchemaRef,
    ) -> (Self, ColumnCollection<'scope, T, R>) {
        let (handle, stream) = scope.new_input_with_builder();
        let collection = ColumnCollection::of_schema(stream, Arc::clone(schema));
        (Self { schema: Arc::clone(schema), handle }, collection)
    }

    /// Inserts rows at the current time, with a diff of 1.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if `batch` has another schema; nothing is inserted then.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()>
    where
        R: From<i8>,
    {
        let diffs = (0..batch.num_rows()).map(|_| R::from(1)).collect();
        self.push_changes(batch, diffs)
    }

    /// Inserts or removes rows at the current time, each with its diff.
    ///
    /// # Errors
    /// As [`ColumnInput::push`], and [`Error::InvalidOrder`] if the numbers of diffs and rows
    /// differ.
    pub fn push_changes(&mut self, batch: RecordBatch, diffs: Vec<R>) -> Result<()> {
        let times = vec![self.time().clone(); batch.num_rows()];
        self.push_timed(Changes::new(batch, times, diffs)?)
    }

    /// Inserts changes at their own times.
    ///
    /// # Errors
    /// As [`ColumnInput::push`], and [`Error::InvalidOrder`] for a time before the current one.
    pub fn push_timed(&mut self, mut changes: Changes<T, R>) -> Result<()> {
        check_schema(&self.schema, changes.batch().schema_ref())?;
        let now = self.time();
        if let Some(early) = changes.times().iter().find(|time| !now.less_equal(time)) {
            return Err(Error::InvalidOrder(format!("a change at {early:?}, and it is {now:?}")));
        }
        self.handle.send_batch(&mut changes);
        Ok(())
    }

    /// Returns the current time.
    pub fn time(&self) -> &T {
        self.handle.time()
    }

    /// Ends all times that are not at or after `time`.
    ///
    /// # Panics
    /// If `time` is not at or after the current time.
    pub fn advance_to(&mut self, time: T) {
        self.handle.advance_to(time);
    }
}
