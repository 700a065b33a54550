//! The ladder: runs in tiers by size, called rungs. A full rung is merged at once, so runs stay few
//! and each row is merged seldom.
//!
//! ```text
//! rung 0   [c] [c] [c] [c] ...   chunks            \  RUNG of them make one run,
//! rung 1   [ 64 chunks ] [ 64 chunks ] ...          > pushed to the rung of its size
//! rung 2   [ 64 * 64 chunks ] ...                  /
//! ```
//!
//! Sorted input makes one run of any length, which is never merged with itself.
//!
//! Invariant: if memory suffices for merging, a rung has fewer than RUNG runs. A rung follows from
//! bytes, so the number of runs is logarithmic in the bytes. Output that shrank because rows
//! cancelled stays on a low rung.

use super::accounting::{Held, Sink};
use crate::batch::merger;
use crate::chunk::Wraps;
use crate::merge::Run;
use windrow_pool::Pool;
use windrow_rows::{Layout, Result};

/// Runs merged at once: the k-way merge is about as fast for 64 runs as for 8.
const RUNG: usize = 64;

/// The context of a merge of runs.
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
    /// The rung whose last run was pushed last.
    last: Option<usize>,
    /// The bytes of memory of the runs.
    pub(super) resident: usize,
}

impl Ladder {
    /// Adds a run and merges full rungs, unless runs and merge output together would exceed `room`
    /// bytes of memory: the caller then spills the runs soon.
    pub(super) fn push(&mut self, means: Means<'_>, run: Run, room: usize) -> Result<()> {
        let mut next = self.behind_last(means, run);
        loop {
            let rung = rung_of(means.pool, next.bytes);
            while self.rungs.len() <= rung {
                self.rungs.push(Vec::new());
            }
            self.resident += next.resident;
            self.rungs[rung].push(next);
            let resident: usize = self.rungs[rung].iter().map(|held| held.resident).sum();
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

    /// Removes the last pushed run and appends `run` if the rows continue in order; otherwise
    /// returns `run`.
    fn behind_last(&mut self, means: Means<'_>, run: Run) -> Held {
        let rung = self.last.take().and_then(|rung| self.rungs.get_mut(rung));
        if let Some(rung) = rung
            && let Some(mut held) =
                rung.pop_if(|held| held.goes_on_with(means.layout, means.pool, &run))
        {
            self.resident -= held.resident;
            held.append(run);
            return held;
        }
        Held::new(run, means.sink)
    }

    /// Removes and returns all runs.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Held> {
        self.last = None;
        self.resident = 0;
        self.rungs.drain(..).flatten()
    }
}

/// Returns the rung of a run of `bytes` bytes. Merging the full runs of one rung yields a run of
/// the next, even if a part of the rows cancels.
fn rung_of(pool: &Pool, bytes: usize) -> usize {
    let (mut rung, mut most) = (0, pool.chunk_bytes().saturating_mul(RUNG / 2));
    while bytes >= most && most < usize::MAX {
        rung += 1;
        most = most.saturating_mul(RUNG);
    }
    rung
}
