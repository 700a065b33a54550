//! Read-ahead: batches wait for the reads of their look-ups, while other operators run.
//!
//! ```text
//! arrangement --batch--> nothing was ever spilled, or the threads are busy: on at once
//!                |
//!                +--> waiting, until a spill thread has looked the keys up --> on, in order
//! ```
//! Invariant: a waiting batch has the capabilities of its arrival, and a spill thread will end its
//! reads.

use std::collections::VecDeque;
use std::sync::Arc;

use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::TraceReader;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::Antichain;
use timely::scheduling::SyncActivator;
use windrow::ReadAhead;

use crate::tactic::{look_up_in, look_up_in_all};
use crate::{ScopedBatch, TimeCode};

/// Delays the batches of an arrangement until their keys were looked up in `other`.
pub(crate) fn read_ahead<'scope, T: TimeCode, Tr, Tr2>(
    Arranged { stream, trace }: Arranged<'scope, Tr>,
    mut other: Tr2,
) -> Arranged<'scope, Tr>
where
    Tr: TraceReader<Time = T, Batch: ScopedBatch<Time = T>> + 'static,
    Tr2: TraceReader<Time = T, Batch: ScopedBatch<Time = T>> + 'static,
{
    // Any cut of the trace serves, and any times.
    other.set_physical_compaction(Antichain::new().borrow());
    other.set_logical_compaction(Antichain::new().borrow());
    let mut other = Some(other);
    type Builder<S> = CapacityContainerBuilder<Vec<S>>;
    let (scope, name) = (stream.scope(), "ReadAhead");
    let stream = stream.unary_frontier::<Builder<_>, _, _, _>(Pipeline, name, move |_, info| {
        let activator = scope.worker().sync_activator_for(info.address.to_vec());
        let mut waiting = VecDeque::new();
        move |(input, frontier), output| {
            input.for_each(|stamp, spans| {
                let times = stamp.retain_stamp(0);
                for span in spans.drain(..) {
                    let batch = span.inner.as_ref().zip(other.as_mut());
                    let reads = batch.and_then(|(batch, other)| reads_of(batch, other, &activator));
                    waiting.push_back((times.clone(), span, reads));
                }
            });
            while let Some((.., reads)) = waiting.front()
                && reads.as_ref().is_none_or(|reads| reads.is_done())
                && let Some((times, span, _)) = waiting.pop_front()
            {
                output.session(&times).give(span);
            }
            if frontier.is_empty() {
                other = None;
            }
        }
    });
    Arranged { stream, trace }
}

/// Starts the look-ups of a batch's first keys in `other`, unless nothing was ever spilled.
fn reads_of<S: ScopedBatch, Tr: TraceReader<Batch: ScopedBatch>>(
    batch: &S,
    other: &mut Tr,
    activator: &SyncActivator,
) -> Option<Arc<ReadAhead>> {
    let pool = batch.rows().context().pool();
    if pool.stats().spills == 0 {
        return None;
    }
    let (keys, activator) = (look_up_in(std::slice::from_ref(batch))?, activator.clone());
    look_up_in_all(other)?.read_ahead(keys, pool, move || {
        // A worker that has ended needs no activation.
        let _ended = activator.activate();
    })
}
