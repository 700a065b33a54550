//! The changes between two frontiers, as record batches.

use std::error::Error;
use std::rc::Rc;

use differential_dataflow::trace::Span;
use timely::container::{CapacityContainerBuilder, ContainerBuilder};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{ProbeHandle, Stream};
use timely::progress::frontier::AntichainRef;

use super::build::{ChangesBuilder, Plan};
use super::{Changes, Columns};
use crate::batch::RowBatch;
use crate::diff::DiffCode;
use crate::format::tail_of;
use crate::time::TimeCode;

type Batch<T, R> = RowBatch<Columns, Columns, T, R>;

/// The result of a callback over changes.
pub(super) type Outcome = Result<(), Box<dyn Error>>;

/// The changes of a batch, in order. Loads one chunk at a time.
pub struct ChangesOf<'a, T: TimeCode, R: DiffCode> {
    plan: &'a Rc<Plan>,
    /// `None` if nothing changed.
    batch: Option<&'a Batch<T, R>>,
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

/// The batches of an arrangement, as they are sealed.
type Batches<'scope, T, R> = Stream<'scope, T, Vec<Span<T, Batch<T, R>>>>;

/// Calls `logic` with each frontier, and the changes before it.
pub(super) fn for_each_frontier<'scope, T: TimeCode, R: DiffCode>(
    batches: Batches<'scope, T, R>,
    plan: Rc<Plan>,
    mut logic: impl FnMut(AntichainRef<'_, T>, ChangesOf<'_, T, R>) -> Outcome + 'static,
) -> ProbeHandle<T> {
    let shown = batches.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
        Pipeline,
        "EachFrontier",
        |_, _| {
            move |input, _output| {
                input.for_each(|_, spans| {
                    for span in spans.drain(..) {
                        let changes = ChangesOf {
                            plan: &plan,
                            batch: span.inner.as_ref(),
                            chunk: 0,
                            builder: ChangesBuilder::default(),
                        };
                        if let Err(error) = logic(span.desc.upper().borrow(), changes) {
                            panic!("windrow: {error}");
                        }
                    }
                });
            }
        },
    );
    shown.probe().0
}
