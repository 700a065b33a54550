//! Record batches into a dataflow.

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
use crate::diff::DiffCode;
use crate::time::TimeCode;

/// A collection that record batches of one schema are put into, at a time that goes on.
pub struct ColumnInput<T: TimeCode + TotalOrder, R: DiffCode> {
    schema: SchemaRef,
    handle: Handle<T, NoopBuilder<Changes<T, R>>>,
}

impl<T: TimeCode + TotalOrder, R: DiffCode> ColumnInput<T, R> {
    /// A collection of `schema`, and the way into it.
    pub fn new<'scope>(
        scope: Scope<'scope, T>,
        schema: &SchemaRef,
    ) -> (Self, ColumnCollection<'scope, T, R>) {
        let (handle, stream) = scope.new_input_with_builder();
        let collection = ColumnCollection::of_schema(stream, Arc::clone(schema));
        (Self { schema: Arc::clone(schema), handle }, collection)
    }

    /// Puts rows in, once each, now.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if they are not of the schema: nothing is put in.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()>
    where
        R: From<i8>,
    {
        let diffs = (0..batch.num_rows()).map(|_| R::from(1)).collect();
        self.push_changes(batch, diffs)
    }

    /// Puts rows in or takes them away now, each as often as its diff says.
    ///
    /// # Errors
    /// As [`ColumnInput::push`], and [`Error::InvalidOrder`] if there are not as many diffs as rows.
    pub fn push_changes(&mut self, batch: RecordBatch, diffs: Vec<R>) -> Result<()> {
        let times = vec![self.time().clone(); batch.num_rows()];
        self.push_timed(Changes::new(batch, times, diffs)?)
    }

    /// Puts changes in at times of their own.
    ///
    /// # Errors
    /// As [`ColumnInput::push`], and [`Error::InvalidOrder`] for a time that is over.
    pub fn push_timed(&mut self, mut changes: Changes<T, R>) -> Result<()> {
        check_schema(&self.schema, changes.batch().schema_ref())?;
        let now = self.time();
        if let Some(early) = changes.times().iter().find(|time| !now.less_equal(time)) {
            return Err(Error::InvalidOrder(format!("a change at {early:?}, and it is {now:?}")));
        }
        self.handle.send_batch(&mut changes);
        Ok(())
    }

    /// The time that it is.
    pub fn time(&self) -> &T {
        self.handle.time()
    }

    /// Ends all times that are not at or beyond `time`.
    ///
    /// # Panics
    /// If that is not at or beyond the time that it is.
    pub fn advance_to(&mut self, time: T) {
        self.handle.advance_to(time);
    }
}
