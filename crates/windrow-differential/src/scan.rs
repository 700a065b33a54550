//! The updates of an arrangement as a stream: batches are read a chunk after the other, and let go.
//!
//! ```text
//! batches, as they are sealed --> | chunk | chunk | chunk |      one of them in memory
//!                                      ^ row                     so many rows, then it is the others' turn
//! ```
//! Collections that are made by cursors of differential hold a batch as a whole while they go through it, and put out all
//! of it before anybody takes it.
//!
//! Invariant: a batch is read to its end under the times that it came with.

use std::collections::VecDeque;

use differential_dataflow::trace::Span;
use timely::ContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::operator::Operator;
use windrow::ChunkRows;

use crate::batch::ScopedBatch;
use crate::enc::Enc;
use crate::format::tail_of;

/// Batches as arrangements put them out.
type Batches<'scope, S> =
    Stream<'scope, <S as ScopedBatch>::Time, Vec<Span<<S as ScopedBatch>::Time, S>>>;

/// Rows that are read before others have their turn: what they make of them is a megabyte or so.
const ROWS_A_TURN: usize = 1 << 14;

/// A batch, and what of it is still to be read.
struct Reading<S: ScopedBatch> {
    times: CapabilitySet<S::Time>,
    batch: S,
    /// The chunk that is read, or is next, and the row in it.
    chunk: usize,
    row: usize,
    rows: Option<ChunkRows>,
}

impl<S: ScopedBatch> Reading<S> {
    /// Calls `each` with the updates that come next, as many of them as `turn` says, which is less by them then; true if
    /// there are no more.
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

/// What `logic` puts into a container builder of every update of `batches`.
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
