//! Reduces runs to as many as can be merged at once within the budget.
//!
//! ```text
//! fits       all runs are merged at once: a window of one chunk per spilled run, and own chunks
//! too many   the shortest runs are merged into one, just as many as necessary
//! ```
//!
//! A chunk of one long row is as large as the row, so window sizes are taken from the runs.

use crate::chunk::{Finish, Wraps};
use crate::merge::{Merger, Run, Source};
use windrow_pool::Pool;
use windrow_rows::{Layout, Result};

/// Most runs of one merge: the heads of their windows stay in the cache.
const MOST_RUNS: usize = 512;
/// Chunks of the merge itself: write buffer, chunk being built, output.
const OWN_CHUNKS: usize = 4;
/// Chunks reserved for reading ahead. Without the reserve, chunks read ahead take the merge's own
/// memory and are evicted before they are merged.
const AHEAD_CHUNKS: usize = 8;

/// Returns the most bytes of a chunk: its buffer, and row starts for rows of at least 16 bytes.
pub(crate) fn held_by_chunk(pool: &Pool) -> usize {
    pool.chunk_bytes() + pool.chunk_bytes().div_ceil(4)
}

/// Returns the bytes of a merge's own chunks and compression workspace.
pub(crate) fn own_bytes(pool: &Pool) -> usize {
    OWN_CHUNKS * held_by_chunk(pool) + pool.scratch_bytes()
}

/// Returns the number of runs that can be merged at once within the budget of `pool`, for rows up
/// to the size of a chunk.
pub fn fan_in(pool: &Pool) -> usize {
    let windows = pool.limit_of_rows().saturating_sub(own_bytes(pool));
    (windows / held_by_chunk(pool)).clamp(2, MOST_RUNS)
}

/// Returns the bytes that a merge of `runs` takes.
fn merge_bytes(pool: &Pool, runs: &[Run]) -> usize {
    let chunk = held_by_chunk(pool);
    let window = |run: &Run| match run.resident_bytes() {
        0 => chunk.max(run.largest_chunk()),
        // A shortened chunk is expanded for the merge.
        resident => resident + if run.is_kept() { chunk } else { 0 },
    };
    let largest = runs.iter().map(Run::largest_chunk).max().unwrap_or(0);
    let windows: usize = runs.iter().map(window).sum();
    windows.saturating_add(own_bytes(pool) + largest.saturating_sub(chunk))
}

/// Returns true if a merge of `runs` stays within the budget or cannot be reduced: two runs of
/// normal chunks are merged in any case.
fn fits(pool: &Pool, runs: &[Run]) -> bool {
    let usual = runs.iter().all(|run| run.largest_chunk() <= pool.chunk_bytes());
    runs.len() <= if usual { 2 } else { 1 }
        || runs.len() <= MOST_RUNS && merge_bytes(pool, runs) <= pool.limit_of_rows()
}

/// Returns a merge of runs that keeps deletions and diffs.
pub(crate) fn merger(layout: &Layout, pool: &Pool, wraps: &Wraps, runs: Vec<Run>) -> Merger {
    let sources = runs.into_iter().map(Source::Run).collect();
    Merger::new(layout, pool, Finish::Log, wraps, sources)
}

/// Reduces the runs to as many as can be merged at once.
pub(crate) fn settle(
    layout: &Layout,
    pool: &Pool,
    wraps: &Wraps,
    mut runs: Vec<Run>,
) -> Result<Vec<Run>> {
    let limit = pool.limit_of_rows();
    let in_memory = runs.iter().all(|run| run.resident_bytes() > 0);
    if in_memory && runs.len() <= 2 && !pool.budget().is_limited() {
        return Ok(runs);
    }
    let chunk = held_by_chunk(pool);
    let resident: usize = runs.iter().map(Run::resident_bytes).sum();
    let windows = runs.iter().filter(|run| run.resident_bytes() == 0).count() * chunk;
    let own = own_bytes(pool);
    if resident > 0 && resident.saturating_add(windows).saturating_add(own) > limit {
        // Keeps the largest runs that leave memory for the windows of the rest: few runs, few bytes
        // written.
        runs.sort_by_key(|run| std::cmp::Reverse(run.resident_bytes()));
        let mut room = limit.saturating_sub(windows + own + (1 + AHEAD_CHUNKS) * chunk);
        let (mut leaving, mut settled) = (Vec::new(), Vec::new());
        for run in runs {
            match run.resident_bytes() {
                0 => settled.push(run),
                bytes if bytes <= room => {
                    room -= bytes;
                    settled.push(run);
                }
                _ => leaving.push(run),
            }
        }
        let out = Run::after(&leaving);
        settled.push(out.spilled(pool, &mut merger(layout, pool, wraps, leaving))?);
        runs = settled;
    }
    if runs.iter().any(|run| run.resident_bytes() == 0) {
        // Spilled runs are read through buffers of their own.
        pool.release_recycled();
    }
    while !fits(pool, &runs) {
        // Merges the shortest runs first, and no more than needed, to write few bytes twice.
        runs.sort_by_key(Run::rows);
        let group = (2..runs.len())
            .find(|&group| !fits(pool, &runs[..=group]) || fits(pool, &runs[group - 1..]))
            .unwrap_or(runs.len());
        let merged: Vec<Run> = runs.drain(..group).collect();
        let in_memory = merged.iter().all(|run| run.resident_bytes() > 0);
        let out = Run::after(&merged);
        let mut merger = merger(layout, pool, wraps, merged);
        runs.push(if in_memory {
            out.merged(pool, &mut merger)?
        } else {
            out.spilled(pool, &mut merger)?
        });
    }
    runs.retain(|run| !run.is_empty());
    Ok(runs)
}

/// Does the same as [`settle`] for sources that may be streams: streams are merged first.
pub(super) fn within_budget(
    layout: &Layout,
    pool: &Pool,
    wraps: &Wraps,
    sources: Vec<Source>,
) -> Result<Vec<Source>> {
    let most = fan_in(pool);
    if sources.len() <= most {
        return Ok(sources);
    }
    let (mut runs, mut streams) = (Vec::new(), Vec::new());
    for source in sources {
        match source {
            Source::Run(run) => runs.push(run),
            stream => streams.push(stream),
        }
    }
    while !streams.is_empty() && runs.len() + streams.len() > most {
        let group = streams.split_off(streams.len().saturating_sub(most));
        let out = Run::after(group.iter().filter_map(Source::run));
        let mut merger = Merger::new(layout, pool, Finish::Log, wraps, group);
        runs.push(out.spilled(pool, &mut merger)?);
    }
    let runs = settle(layout, pool, wraps, runs)?;
    Ok(runs.into_iter().map(Source::Run).chain(streams).collect())
}
