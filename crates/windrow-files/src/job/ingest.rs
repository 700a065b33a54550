//! The reading phase: moves record batches from the inputs to the batcher, on all threads.

use std::iter::repeat_n;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use windrow::{Batch, Batcher, ColumnarMerge, KeyedBatches, KeyedRun, Pusher, merge_in};

use super::Plan;
use super::best::Best;
use super::file_rows::{Batches, FileRows, prepared, read_ahead};
use super::replan::make_room;
use super::running::{Job, Running};
use super::source::{ROW_BITS, Reader, Step, Units};
use super::tally::timed;
use crate::error::{Error, Result};
use crate::lock::{lock, unlocked};
use crate::progress::Phase;
use crate::verbs::FirstRow;

/// Pushes all rows of the inputs into `batcher`.
pub(super) fn ingest(job: &Job, batcher: &Batcher, plan: &Plan, running: &Running) -> Result<()> {
    let units = Units::new(&job.inputs, &running.watch);
    // One thread defines which rows are the first.
    let readers = if job.arrangement.head.is_some() { 1 } else { plan.readers };
    let shared = &units;
    let push_all = batcher.pushers(readers).into_iter().map(|pusher| {
        move || {
            let mut reader = shared.reader();
            work(job, &mut reader, pusher, running).or_else(|error| {
                shared.fail(&reader, error);
                Ok(())
            })
        }
    });
    timed(&running.tally.together, || side_by_side(push_all))?;
    units.outcome()
}

fn work(job: &Job, reader: &mut Reader<'_>, mut pusher: Pusher, running: &Running) -> Result<()> {
    let Job { inputs, arrangement, .. } = job;
    let mut best = arrangement.best.map(|rows| Best::new(&arrangement.layout, rows)).transpose()?;
    let preparation = arrangement.preparation();
    let mut pushed = 0;
    while let Some(step) = reader.next()? {
        running.watch.pause()?;
        let Step::Rows(batch, sequence) = step else {
            make_room(&mut pusher, &running.pool)?;
            continue;
        };
        running.tally.read(&batch);
        let name = || &*inputs.files()[file_of(sequence)].name;
        let first = FirstRow { file: file_of(sequence), row: sequence & ((1 << ROW_BITS) - 1) };
        let batch = prepared(inputs, &preparation, batch, first);
        let batch = batch.map_err(|error| error.in_input(name()))?;
        if batch.num_rows() == 0 {
            continue;
        }
        let batch = match &mut best {
            Some(best) => best.keep(&batch)?,
            None => batch,
        };
        pushed += batch.num_rows() as u64;
        pusher.push(&batch, PLACES * sequence).map_err(|error| match error {
            error @ windrow::Error::Value { .. } => Error::from(error).in_input(name()),
            error => error.into(),
        })?;
        if arrangement.head.is_some_and(|head| pushed >= head) {
            break;
        }
    }
    Ok(pusher.flush()?)
}

/// Positions in the input for each row: an update that changes its key becomes two rows, and no row
/// of the next record batch may precede them.
const PLACES: u64 = 2;

/// Returns the ordinal of the file.
fn file_of(sequence: u64) -> usize {
    (sequence >> ROW_BITS) as usize
}

/// Runs each of `works` on a thread of its own, and returns the first failure in their order.
pub(crate) fn side_by_side<W: FnOnce() -> Result<()> + Send>(
    works: impl IntoIterator<Item = W>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = works.into_iter().map(|work| scope.spawn(work)).collect();
        let panicked = |_| Err(Error::data("a worker failed unexpectedly; please report this"));
        let ends = workers.into_iter().map(|worker| worker.join().unwrap_or_else(panicked));
        // All threads end before the first failure is returned.
        ends.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Does `work` with the place and the content of each of `items`, on `threads` threads, until one
/// fails.
pub(crate) fn share_out<T: Sync>(
    items: &[T],
    threads: usize,
    work: impl Fn(usize, &T) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let share = || loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(place) else { return Ok(()) };
        work(place, item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
    };
    side_by_side(repeat_n(&share, threads.min(items.len()).max(1)))
}

/// Maximum number of sorted files with a reading thread each; the merge reads further files itself.
const MOST_THREADS: usize = 64;

/// Returns true if each of `files` files has a thread that reads ahead of the merge.
fn reads_ahead(plan: &Plan, files: usize) -> bool {
    plan.readers > 1 && plan.direct && files <= MOST_THREADS
}

/// Merges sorted files by their keys alone, while they are read.
pub(super) fn merge_columns(job: &Job, plan: &Plan, running: &Running) -> ColumnarMerge {
    let layout = &job.arrangement.layout;
    let files = 0..job.inputs.files().len();
    let ahead = reads_ahead(plan, files.len());
    let runs = files.map(|file| {
        let run = KeyedRun::new(layout, file, FileRows::of(job, file, running));
        if ahead { read_ahead(run) } else { Box::new(run) as KeyedBatches }
    });
    ColumnarMerge::new(layout, runs)
}

/// Merges sorted files. If the limit does not allow all files to be open at once, each reader first
/// merges groups of files into runs on disk.
pub(super) fn merge(job: &Job, plan: &Plan, running: &Running) -> Result<(Batch, Plan)> {
    let (layout, pool) = (&job.arrangement.layout, &running.pool);
    let files: Vec<usize> = (0..job.inputs.files().len()).collect();
    let open = |files: &[usize]| {
        // Readers of groups are threads enough.
        let ahead = reads_ahead(plan, files.len());
        let runs = files.iter().map(|&file| {
            let rows = FileRows::of(job, file, running);
            (file, if ahead { read_ahead(rows) } else { Box::new(rows) as Batches })
        });
        merge_in(layout, pool, runs)
    };
    if plan.direct {
        return Ok((open(&files), plan.clone()));
    }
    running.tally.enter(Phase::Read);
    let groups: Vec<&[usize]> = files.chunks(plan.open_files).collect();
    let runs = Mutex::new(Vec::new());
    let work = |_, group: &&[usize]| {
        let run = open(group).spill()?;
        lock(&runs).push(run);
        Ok(())
    };
    timed(&running.tally.together, || share_out(&groups, plan.readers, work))?;
    let plan = running.met.replan()?;
    pool.budget().set_limit(plan.settle_budget);
    let runs = unlocked(runs);
    Ok((Batch::union(layout, pool, runs), plan))
}
