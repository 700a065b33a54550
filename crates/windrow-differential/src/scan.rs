//! Scans: the updates of an arrangement as a stream, read chunk by chunk and released at once.
//!
//! ```text
//! sealed batches --> | chunk | chunk | chunk |      one of them in memory
//!                         ^ row                     some rows, then other operators run
//! ```
//! Collections made by differential's cursors hold a whole batch in memory during a scan, and emit
//! all of its updates before any consumer runs.
//!
//! Invariant: a batch is read to its end with the capabilities it arrived with.

use std::collections::VecDeque;

use differential_dataflow::trace::Span;
use timely::ContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::operator::Operator;
use windrow::ChunkRows;

use crate::format::tail_of;
use crate::{Enc, ScopedBatch};

/// The batches that an arrangement emits.
type Batches<'scope, S> =
    Stream<'scope, <S as ScopedBatch>::Time, Vec<Span<<S as ScopedBatch>::Time, S>>>;

/// Rows read before yielding to other operators: their results take about a megabyte.
pub(crate) const ROWS_A_TURN: usize = 1 << 14;

/// A batch and the position of the scan in it.
struct Reading<S: ScopedBatch> {
    times: CapabilitySet<S::Time>,
    batch: S,
    /// Number of the current or next chunk, and the next row in it.
    chunk: usize,
    row: usize,
    rows: Option<ChunkRows>,
}

impl<S: ScopedBatch> Reading<S> {
    /// Calls `each` with up to `turn` further updates and subtracts their number from `turn`.
    /// Returns true at the end of the batch.
    fn go_on(
        &mut self,
        turn: &mut usize,
        mut each: impl FnMut(Enc<'_, S::Key>, Enc<'_, S::Value>, S::Time, S::Diff),
    ) -> bool {
        let batch = self.batch.rows();
        while *turn > 0 {
            if self.chunk == batch.chunks() {
                return true;
            }
            let rows = self.rows.get_or_insert_with(|| batch.read(self.chunk));
            let end = rows.len().min(self.row + *turn);
            for row in self.row..end {
                let body = rows.body(row);
                let (key, value) = body.split_at(batch.key_of(body).len());
                let (time, diff) = tail_of(rows.end(row));
                each(Enc::new(key), Enc::new(value), S::scoped(time), diff);
            }
            *turn -= end - self.row;
            self.row = end;
            if end == rows.len() {
                (self.rows, self.chunk, self.row) = (None, self.chunk + 1, 0);
            }
        }
        self.chunk == batch.chunks()
    }
}

/// Calls `logic` with every update of `batches` and a container builder for the results.
pub(crate) fn scan<'scope, S: ScopedBatch, B: ContainerBuilder>(
    batches: Batches<'scope, S>,
    name: &str,
    mut logic: impl FnMut(Enc<'_, S::Key>, Enc<'_, S::Value>, S::Time, S::Diff, &mut B) + 'static,
) -> Stream<'scope, S::Time, B::Container> {
    let scope = batches.scope();
    batches.unary::<B, _, _, _>(Pipeline, name, move |_, info| {
        let activator = scope.activator_for(info.address);
        let mut waiting = VecDeque::new();
        move |input, output| {
            input.for_each(|times, spans| {
                let times = times.retain_stamp(0);
                for batch in spans.drain(..).filter_map(|span| span.inner) {
                    let times = times.clone();
                    waiting.push_back(Reading { times, batch, chunk: 0, row: 0, rows: None });
                }
            });
            let mut turn = ROWS_A_TURN;
            while let Some(reading) = waiting.front_mut()
                && turn > 0
            {
                let times = reading.times.clone();
                let mut session = output.session_with_builder(&times);
                let is_done = reading.go_on(&mut turn, |key, value, time, diff| {
                    logic(key, value, time, diff, session.builder());
                    session.extract_and_send();
                });
                drop(session);
                if is_done {
                    waiting.pop_front();
                }
            }
            if !waiting.is_empty() {
                activator.activate();
            }
        }
    })
}
