//! The batcher: takes updates in any order and returns batches up to a frontier.
//!
//! ```text
//! insert: containers --rows--> pending --64 KiB--> the engine's batcher, inside the budget
//! extract: all rows before the frontier, sorted --> RowBatch; later rows stay
//! ```
//! Pending rows are outside of the budget. The buffer is small, so an idle batcher takes little
//! memory.

use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::logging::Logger;
use timely::container::{PushInto, SizableContainer};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use windrow::{Layout, give_back_free_blocks};

use crate::context::done;
use crate::format::Format;
use crate::ledger::Ledger;
use crate::of::Of;
use crate::{Context, DiffCode, Row, RowBatch, RowCode, TimeCode, Updates};

/// Bytes of a round after which the allocator returns its free memory, in some milliseconds: a
/// hundredth of the time that arranging them takes.
const LARGE_ROUND: usize = 8 << 20;

/// Sorts updates in the memory of its context.
pub struct RowBatcher<K, V, T: TimeCode, R> {
    context: Context,
    batcher: windrow::Batcher<T::Code>,
    /// Dropped after the batcher, to report the batcher's last changes.
    ledger: Option<Ledger>,
    pending: Updates<K, V, T, R>,
    /// Bytes pushed since the last seal, or since free memory was returned.
    pushed: usize,
    /// The lower bounds of the retained updates.
    frontier: Antichain<T>,
    of: Of<(K, V, R)>,
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> RowBatcher<K, V, T, R> {
    /// Creates a batcher without updates.
    pub fn new(context: &Context) -> Self {
        Self::logging(context, None, 0)
    }

    /// Creates a batcher without updates that logs its chunk memory to `logger`, if given, as
    /// `operator`.
    pub fn logging(context: &Context, logger: Option<Logger>, operator: usize) -> Self {
        Self::of_layout(&Format::<K, V, T, R>::layout(), context, logger, operator)
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> RowBatcher<K, V, T, R> {
    /// Creates an empty batcher of rows of `layout`.
    pub(crate) fn of_layout(
        layout: &Layout,
        context: &Context,
        logger: Option<Logger>,
        operator: usize,
    ) -> Self {
        let pool = context.pool();
        let ledger = logger.map(|logger| Ledger::new(logger, operator));
        Self {
            batcher: match &ledger {
                Some(ledger) => windrow::Batcher::accounted(layout, pool, ledger.sink()),
                None => windrow::Batcher::timed(layout, pool),
            },
            ledger,
            context: context.clone(),
            pending: Updates::default(),
            pushed: 0,
            frontier: Antichain::new(),
            of: Of::default(),
        }
    }

    /// Logs the changes since the last report.
    fn report(&self) {
        self.ledger.iter().for_each(Ledger::report);
    }

    /// Moves `rows` into the engine.
    fn push_rows(&mut self, rows: &mut Updates<K, V, T, R>) {
        if !rows.is_empty() {
            done(self.batcher.push_rows(rows.bytes(), &rows.ends));
            self.pushed += rows.bytes().len();
            rows.clear();
        }
        // A large round leaves as much free memory in the allocator, of its updates as Rust values.
        if self.pushed >= LARGE_ROUND {
            self.pushed = 0;
            give_back_free_blocks();
        }
    }

    /// Moves the pending rows into the engine.
    fn push_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        self.push_rows(&mut pending);
        self.pending = pending;
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Extract for RowBatcher<K, V, T, R> {
    type Time = T;
    type Output = RowBatch<K, V, T, R>;

    fn extract<'a>(
        &'a mut self,
        upper: AntichainRef<'_, T>,
    ) -> (Option<Self::Output>, AntichainRef<'a, T>) {
        self.push_pending();
        self.pushed = 0;
        let upper = windrow::Antichain::from_iter(upper.iter().map(TimeCode::code));
        let batch = done(self.batcher.seal(&upper));
        let kept = self.batcher.frontier().elements();
        self.frontier = kept.iter().map(|&code| T::of_code(code)).collect();
        self.report();
        (RowBatch::new(&self.context, done(batch.shortened())), self.frontier.borrow())
    }
}

/// Updates as Rust values.
impl<K: Row, V: Row, T: TimeCode, R: DiffCode> Batcher<Vec<((K, V), T, R)>>
    for RowBatcher<K, V, T, R>
{
    fn insert(&mut self, container: &mut Vec<((K, V), T, R)>) {
        for update in container.drain(..) {
            self.pending.push_into(update);
            if self.pending.at_capacity() {
                self.push_pending();
            }
        }
        self.report();
    }
}

/// Updates as rows.
impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Batcher<Updates<K, V, T, R>>
    for RowBatcher<K, V, T, R>
{
    fn insert(&mut self, container: &mut Updates<K, V, T, R>) {
        if container.at_capacity() {
            self.push_rows(container);
        } else {
            container.iter().for_each(|row| self.pending.push_row(row));
            if self.pending.at_capacity() {
                self.push_pending();
            }
        }
        container.clear();
        self.report();
    }
}
