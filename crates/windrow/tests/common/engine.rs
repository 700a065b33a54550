//! Ways through the engine: budget, number of pushers, size of input record batches. Results must
//! not depend on the way.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::FileFailurePersistence;
use windrow::{Batch, Batcher, Budget, Codec, ForceSpill, Layout, Pool, PoolOptions, Result};

use super::arrays::Rng;
use super::model::By;
use super::tables;

/// Configures `count` cases, or `PROPTEST_CASES`. Failing cases are saved beside the test and run
/// first from then on.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    let persistence = FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        failure_persistence: Some(Box::new(persistence)),
        ..ProptestConfig::with_cases(asked.unwrap_or(count))
    }
}

/// One way through the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) budget: usize,
    pub(crate) codec: Codec,
    /// Most rows of an input record batch.
    pub(crate) rows: usize,
    /// Number of pushers, interleaved at random; 0 pushes to the batcher itself.
    pub(crate) pushers: usize,
    /// Writes out all chunks, although they fit in memory.
    pub(crate) force: bool,
    /// Number of spill threads.
    pub(crate) spill_threads: usize,
}

impl Way {
    /// All in memory, in one piece.
    pub(crate) const PLAIN: Self = Self {
        budget: usize::MAX,
        codec: Codec::None,
        rows: usize::MAX - 1,
        pushers: 0,
        force: false,
        spill_threads: 1,
    };

    /// Returns a random way: memory for all rows, for some chunks, or for none.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        Self {
            budget: [usize::MAX, 1 << 20, 400_000, 1][rng.below(4)],
            codec: [Codec::None, Codec::Lz4, Codec::Zstd][rng.below(3)],
            rows: [1, 7, 300, 100_000][rng.below(4)],
            pushers: rng.below(4),
            force: rng.below(4) == 0,
            spill_threads: rng.below(3),
        }
    }

    pub(crate) fn pool(self) -> Pool {
        let options = PoolOptions::new().codec(self.codec).spill_threads(self.spill_threads);
        let options = if self.force { options.policy(ForceSpill) } else { options };
        Pool::new(Budget::bytes(self.budget), options).unwrap()
    }

    /// Arranges `input` this way.
    pub(crate) fn arrange(
        self,
        rng: &mut Rng,
        layout: &Layout,
        pool: &Pool,
        input: &RecordBatch,
    ) -> Result<Batch> {
        let pieces = tables::cut(rng, input, self.rows);
        let mut batcher = Batcher::new(layout, pool);
        if self.pushers == 0 {
            for piece in &pieces {
                batcher.push(piece)?;
            }
            return batcher.finish();
        }
        let mut pushers = batcher.pushers(self.pushers);
        // The pieces arrive in any order: sequence numbers give their positions.
        let mut next = 0;
        let mut numbered = Vec::new();
        for piece in pieces {
            let rows = piece.num_rows() as u64;
            numbered.insert(rng.below(numbered.len() + 1), (piece, next));
            next += rows;
        }
        for (piece, sequence) in numbered {
            pushers[rng.below(self.pushers)].push(&piece, sequence)?;
        }
        for pusher in &mut pushers {
            pusher.flush()?;
        }
        batcher.finish()
    }
}

/// Returns random directions for the columns `names`, for the engine and for the model.
pub(crate) fn order(
    rng: &mut Rng,
    names: &[&str],
    first: usize,
) -> (Vec<windrow::SortColumn>, Vec<By>) {
    let columns = names.iter().enumerate().map(|(index, name)| {
        let (descending, nulls_first) = (rng.flip(), rng.flip());
        let column = windrow::SortColumn { name: (*name).into(), descending, nulls_first };
        (column, By { column: first + index, descending, nulls_first })
    });
    columns.unzip()
}

pub(crate) fn collect(batch: Result<windrow::RecordBatches>) -> Result<Vec<RecordBatch>> {
    Ok(batch?.collect::<Result<_, ArrowError>>()?)
}

/// Asserts that nothing is leased but buffers that are kept for reuse: the last of them may come from a spill
/// thread that wrote a page which was taken back meanwhile.
pub(crate) fn assert_returned(pool: &Pool) {
    pool.wait_for_spills();
    pool.release();
    assert_eq!(pool.budget().used(), 0, "all leases returned");
}
