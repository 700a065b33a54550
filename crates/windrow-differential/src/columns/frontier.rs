//! The changes between two frontiers, as record batches.

use std::error::Error;
use std::rc::Rc;

use timely::container::{CapacityContainerBuilder, ContainerBuilder};
use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::frontier::AntichainRef;

use super::build::{ChangesBuilder, Plan};
use super::{Changes, ColumnArranged, Columns};
use crate::format::tail_of;
use crate::{DiffCode, RowBatch, TimeCode};

/// The result of a callback over changes.
type Outcome = Result<(), Box<dyn Error>>;

/// The changes of a batch, in order. Loads one chunk at a time.
pub struct ChangesOf<'a, T: TimeCode, R: DiffCode> {
    plan: &'a Rc<Plan>,
    /// `None` if nothing changed.
    batch: Option<&'a RowBatch<Columns, Columns, T, R>>,
    /// The next chunk.
    chunk: usize,
    builder: ChangesBuilder<T, R>,
}

impl<T: TimeCode, R: DiffCode> Iterator for ChangesOf<'_, T, R> {
    type Item = Changes<T, R>;

    fn next(&mut self) -> Option<Changes<T, R>> {
        let batch = self.batch?;
        loop {
            if let Some(changes) = self.builder.extract() {
                return Some(std::mem::take(changes));
            }
            if self.chunk == batch.chunks() {
                return self.builder.finish().map(std::mem::take);
            }
            let rows = batch.read(self.chunk);
            self.chunk += 1;
            for row in 0..rows.len() {
                let (time, diff) = tail_of(rows.end(row));
                self.builder.push(self.plan, [(rows.body(row), &[])], time, diff);
            }
        }
    }
}

impl<T: TimeCode, R: DiffCode> ColumnArranged<'_, T, R> {
    /// Calls `logic` whenever the frontier advances, with the frontier and all changes before it
    /// that were not reported yet: each row once per time, ordered by key, remaining columns and
    /// time. Each worker reports its own keys. An error returned by `logic` ends the dataflow. The
    /// probe handle follows the calls of `logic`.
    pub fn for_each_frontier(
        self,
        mut logic: impl FnMut(AntichainRef<'_, T>, ChangesOf<'_, T, R>) -> Outcome + 'static,
    ) -> ProbeHandle<T> {
        type Nothing = CapacityContainerBuilder<Vec<()>>;
        let plan = Plan::whole(&self.shape);
        let batches = self.arranged.stream;
        let shown = batches.unary::<Nothing, _, _, _>(Pipeline, "EachFrontier", |_, _| {
            move |input, _output| {
                input.for_each(|_, spans| {
                    for span in spans.drain(..) {
                        let (batch, builder) = (span.inner.as_ref(), ChangesBuilder::default());
                        let changes = ChangesOf { plan: &plan, batch, chunk: 0, builder };
                        if let Err(error) = logic(span.desc.upper().borrow(), changes) {
                            panic!("windrow: {error}");
                        }
                    }
                });
            }
        });
        shown.probe().0
    }
}
