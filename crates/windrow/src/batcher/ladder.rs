//! The ladder: runs by size, merged many at a time, so that few are there and no row is merged often.
//!
//! ```text
//! rung 0   [c] [c] [c] [c] ...   chunks            \  RUNG of them make one run,
//! rung 1   [ 64 chunks ] [ 64 chunks ] ...          > which goes to the rung of its own size
//! rung 2   [ 64 * 64 chunks ] ...                  /
//! ```
//!
//! What is pushed in order makes one run, whatever its length: it is never merged with itself.
//!
//! Invariant: with memory to merge in, a rung has less than RUNG runs, and a rung follows from bytes,
//! so the runs are logarithmic in the bytes; what cancels in a merge stays on a low rung.

use super::accounting::{Held, Sink};
use crate::batch::merger;
use crate::chunk::Wraps;
use crate::error::Result;
use crate::merge::Run;
use crate::order::Layout;
use crate::pool::Pool;

/// Runs that are merged at once: the k-way merge is about as fast for 64 runs as for 8.
const RUNG: usize = 64;

/// What runs are merged with.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) layout: &'a Layout,
    pub(super) pool: &'a Pool,
    pub(super) wraps: &'a Wraps,
    pub(super) sink: &'a Sink,
}

/// Runs in memory, few of each size.
#[derive(Default)]
pub(super) struct Ladder {
    rungs: Vec<Vec<Held>>,
    /// The rung on which the run that was pushed last stands, as the last one.
    last: Option<usize>,
    resident: usize,
}

impl Ladder {
    /// Bytes of memory that the runs take.
    pub(super) fn resident_bytes(&self) -> usize {
        self.resident
    }

    /// Takes a run in, and merges rungs that are full, unless the runs and what comes out of the merge
    /// would take more than `room` bytes of memory together: the caller spills them soon.
    pub(super) fn push(&mut self, means: Means<'_>, run: Run, room: usize) -> Result<()> {
        let mut next = self.behind_last(means, run);
        loop {
            let rung = rung_of(means.pool, next.bytes());
            while self.rungs.len() <= rung {
                self.rungs.push(Vec::new());
            }
            self.resident += next.resident_bytes();
            self.rungs[rung].push(next);
            let resident: usize = self.rungs[rung].iter().map(Held::resident_bytes).sum();
            if self.rungs[rung].len() < RUNG || self.resident.saturating_add(resident) > room {
                self.last = Some(rung);
                return Ok(());
            }
            self.last = None;
            let full = std::mem::take(&mut self.rungs[rung]);
            self.resident -= resident;
            let runs: Vec<Run> = full.into_iter().filter_map(Held::take).collect();
            let merged = Run::after(&runs);
            let mut merger = merger(means.layout, means.pool, means.wraps, runs);
            next = Held::new(merged.merged(means.pool, &mut merger)?, means.sink);
        }
    }

    /// The run that was pushed last with `run` behind it, taken out, if the rows go on; else `run`.
    fn behind_last(&mut self, means: Means<'_>, run: Run) -> Held {
        let rung = self.last.take().and_then(|rung| self.rungs.get_mut(rung));
        if let Some(rung) = rung
            && let Some(mut held) =
                rung.pop_if(|held| held.goes_on_with(means.layout, means.pool, &run))
        {
            self.resident -= held.resident_bytes();
            held.append(run);
            return held;
        }
        Held::new(run, means.sink)
    }

    /// All runs; the ladder is empty.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Held> {
        self.last = None;
        self.resident = 0;
        self.rungs.drain(..).flatten()
    }
}

/// The rung of a run of so many bytes: a merge of full runs of one rung gives a run of the next, even if a part of
/// it cancels.
fn rung_of(pool: &Pool, bytes: usize) -> usize {
    let (mut rung, mut most) = (0, pool.chunk_bytes().saturating_mul(RUNG / 2));
    while bytes >= most && most < usize::MAX {
        rung += 1;
        most = most.saturating_mul(RUNG);
    }
    rung
}
