//! Merges of two batches, driven by the fuel of a spine.

use differential_dataflow::trace::implementations::spine_fueled::Merger;
use timely::progress::frontier::AntichainRef;
use windrow::{Antichain, Merging};

use super::RowBatch;
use crate::context::done;
use crate::of::Of;
use crate::{Context, DiffCode, RowCode, TimeCode};

/// An incremental merge of two batches, a few rows at a time.
pub struct RowMerger<K, V, T: TimeCode, R> {
    context: Context,
    merging: Merging<T::Code>,
    done: bool,
    of: Of<(K, V, R)>,
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Merger<RowBatch<K, V, T, R>>
    for RowMerger<K, V, T, R>
{
    fn new(a: &RowBatch<K, V, T, R>, b: &RowBatch<K, V, T, R>, since: AntichainRef<'_, T>) -> Self {
        let inputs = [a, b].map(|batch| batch.batch().try_clone().expect("batches are settled"));
        let context = a.context().clone();
        // While memory is ample, chunks are as small as those of an index, so that no round waits
        // for the end of a large one. Chunks that will leave memory are larger: stores are read
        // faster.
        let (pool, budget) = (context.pool(), context.pool().budget());
        let is_ample = budget.used() < budget.limit() / 2;
        let pool = if is_ample { pool.for_index() } else { pool.clone() };
        let mut merging = Merging::new(a.batch().layout(), &pool, inputs);
        // At the minimum, advancing changes no time.
        if since[..] != [T::minimum()] {
            let since = Antichain::from_iter(since.iter().map(TimeCode::code));
            merging = done(merging.advancing(&since));
        }
        Self { context, merging, done: false, of: Of::default() }
    }

    fn work(&mut self, _a: &RowBatch<K, V, T, R>, _b: &RowBatch<K, V, T, R>, fuel: &mut isize) {
        // A spine that is dropped completes its merges. During a panic, another error would abort.
        if !self.done && !std::thread::panicking() {
            let mut left = *fuel as i64;
            self.done = done(self.merging.work(&mut left));
            *fuel = left as isize;
        }
    }

    fn done(self) -> Option<RowBatch<K, V, T, R>> {
        if std::thread::panicking() {
            return None;
        }
        RowBatch::new(&self.context, done(self.merging.finish()))
    }
}
