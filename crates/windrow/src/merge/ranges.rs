//! Parallel merge of runs in memory: one key range per thread.
//!
//! ```text
//! run 0   [chunk] [chu|nk] [chunk]      a chunk with a splitter inside is copied, in two parts
//! run 1   [chunk] [chunk] | [chunk]
//!         range 0         | range 1
//!         thread 0          thread 1    -->  one run: the chunks of range 0, then those of range 1
//! ```
//!
//! Splitters are keys, or rows without their tail, so all rows that a rule relates fall into one
//! range. Rows are totally ordered, so the merged ranges together are the merge of all rows,
//! wherever the splitters fall.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::merger::Merger;
use super::run::Run;
use super::source::Source;
use crate::chunk::{Builder, Finish, Wraps};
use windrow_pool::Pool;
use windrow_rows::{Layout, Result, Rule, key_len};

/// Samples per chunk, the candidates for splitters.
const SAMPLES: usize = 16;
/// Least chunks per range: a thread takes as long to start as to merge one chunk.
const LEAST_CHUNKS: usize = 4;

/// Merges `runs` into one without pauses: on up to `threads` threads if all rows are in memory,
/// otherwise on the calling thread.
///
/// # Errors
/// Errors of merging and of allocating memory.
pub(crate) fn merge_ranges(
    layout: &Layout,
    pool: &Pool,
    wraps: &Wraps,
    runs: Vec<Run>,
    threads: usize,
) -> Result<Run> {
    let merged = |runs: Vec<Run>| {
        let out = Run::after(&runs);
        let sources = runs.into_iter().map(Source::Run).collect();
        let mut merger = Merger::new(layout, pool, Finish::Log, wraps, sources);
        out.merged(pool, &mut merger)
    };
    let bytes: usize = runs.iter().map(Run::bytes).sum();
    let most = bytes / (LEAST_CHUNKS * pool.chunk_bytes());
    let splitters = splitters(layout, &runs, threads.min(most));
    if splitters.is_empty() {
        return merged(runs);
    }
    let mut ranges: Vec<Vec<Run>> = vec![Vec::new(); splitters.len() + 1];
    for run in runs {
        for (range, part) in ranges.iter_mut().zip(cut(layout, pool, run, &splitters)?) {
            range.push(part);
        }
    }
    let mut done = thread::scope(|scope| {
        let others = ranges.split_off(1);
        let others = others.into_iter().map(|range| scope.spawn(|| merged(range)));
        let others: Vec<_> = others.collect();
        let first = ranges.into_iter().map(merged);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(merged) => merged,
            Err(panic) => resume_unwind(panic),
        };
        first.chain(others.into_iter().map(join)).collect::<Result<Vec<Run>>>()
    })?;
    done.retain(|run| !run.is_empty());
    let Some((whole, others)) = done.split_first_mut() else { return Ok(Run::default()) };
    whole.chain(others);
    Ok(std::mem::take(whole))
}

/// Returns up to `ranges - 1` ascending keys that cut `runs` into ranges of similar size; empty if
/// a run is not in memory.
fn splitters(layout: &Layout, runs: &[Run], ranges: usize) -> Vec<Vec<u8>> {
    let mut samples: Vec<(&[u8], usize)> = Vec::new();
    for run in runs {
        let Some(chunks) = run.resident() else { return Vec::new() };
        for chunk in chunks {
            let rows = chunk.rows();
            // Key and value of a shortened row are a valid splitter: a prefix of all related rows.
            let key = |row| if chunk.is_short() { chunk.split(row, 0).0 } else { key(layout, row) };
            let sample = |at: usize| (key(rows.row(at * rows.len() / SAMPLES)), chunk.bytes());
            samples.extend((0..SAMPLES).map(sample));
        }
    }
    samples.sort_unstable();
    let total: usize = samples.iter().map(|sample| sample.1).sum();
    let (mut out, mut bytes) = (Vec::<Vec<u8>>::new(), 0);
    for (key, weight) in samples {
        if out.len() + 1 < ranges && bytes * ranges >= total * (out.len() + 1) {
            // A key of many samples is only one splitter.
            if out.last().is_none_or(|last| last[..] < *key) {
                out.push(key.to_vec());
            }
        }
        bytes += weight;
    }
    out
}

/// Returns the prefix shared by all rows that the rule relates to `row`.
pub(super) fn key<'a>(layout: &Layout, row: &'a [u8]) -> &'a [u8] {
    match layout.rule() {
        Rule::First | Rule::Last | Rule::LastKnown => &row[..key_len(layout, row)],
        Rule::Keep | Rule::Sum => &row[..row.len() - layout.tail().len()],
    }
}

/// Cuts a run in memory into the parts before, between and after the splitters.
fn cut(layout: &Layout, pool: &Pool, mut run: Run, splitters: &[Vec<u8>]) -> Result<Vec<Run>> {
    let mut parts = vec![run.emptied(); splitters.len() + 1];
    let mut range = 0;
    while let Some(piece) = run.pieces.pop_front() {
        let chunk = piece.take()?;
        let rows = chunk.rows();
        let mut start = 0;
        while start < rows.len() {
            // Splitters are prefixes of rows, so comparing the whole row is enough.
            let end = splitters.get(range).map_or(rows.len(), |splitter| {
                rows.partition_point(start..rows.len(), |row| row < &splitter[..])
            });
            if start == 0 && end == rows.len() {
                parts[range].push(Arc::clone(&chunk));
            } else if end > start {
                let mut builder = Builder::new(layout, pool, Finish::Log, &Wraps::default());
                builder.push_run(&chunk, start..end)?;
                builder.flush();
                std::iter::from_fn(|| builder.take()).for_each(|part| parts[range].push(part));
            }
            start = end;
            range += usize::from(start < rows.len());
        }
    }
    Ok(parts)
}
