//! Writing: sorted rows cut into parts, encoded on all threads, appended in order.
//!
//! ```text
//! thread A   [merge ahead][take part 0][decode, encode 0......][append 0][merge ahead][take part 2]...
//! thread B   [merge ahead.....][take part 1][decode, encode 1......][append 1]...
//! ```
//!
//! Every thread merges a share of the rows before it takes a part. The thread that takes the part
//! merges the rest. Without a memory limit, a part encoded before its turn waits in a queue; with a
//! limit, the thread waits instead. The boundaries of parts depend on the rows and the settings
//! alone, so the bytes of the file do not depend on the threads or the limit. A single thread never
//! holds a part, but encodes rows as they are merged.

use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use windrow::MergeHelper;

use super::cut::{Cutter, Extent, NewPart};
use super::finish::Out;
use super::ingest::side_by_side;
use super::opening::Opened;
use super::piece::Decoders;
use super::running::{Job, Running};
use super::tally::timed;
use crate::error::Result;
use crate::lock::{lock, unlocked};
use crate::output::{Part, Written};
use crate::stats::Spread;

/// Limits for rows merged ahead: in parts, and in bytes.
const PARTS_AHEAD: usize = 2;
const MOST_AHEAD: usize = 64 << 20;

struct Shared<'a> {
    cutter: Mutex<Cutter<'a>>,
    helper: Option<MergeHelper>,
    /// Bytes of rows to merge ahead.
    ahead: usize,
    line: Mutex<Line<'a>>,
    appended: Condvar,
    /// Maximum number of encoded parts that may wait in the queue.
    waiting: usize,
    failed: AtomicBool,
    job: &'a Job,
    /// Columns that separate rows of different files.
    keys: Option<Vec<usize>>,
    running: &'a Running,
}

/// The output, and the parts encoded before their turn.
struct Line<'a> {
    out: Out<'a>,
    waiting: BTreeMap<usize, Encoded>,
}

/// An encoded part, the file if the part is its first, and whether the part's first row is the
/// first of its key.
struct Encoded {
    part: Part,
    opened: Option<Opened>,
    starts_key: bool,
}

impl Line<'_> {
    /// Appends the next part and the waiting parts after it; returns the number of rows.
    fn append(&mut self, encoded: Encoded) -> Result<u64> {
        let (mut next, mut rows) = (Some(encoded), 0);
        while let Some(Encoded { part, opened, starts_key }) = next {
            rows += part.rows;
            opened.map_or(Ok(()), |opened| self.out.open(opened))?;
            self.out.append(part, starts_key)?;
            next = self.waiting.remove(&self.out.ordinal);
        }
        Ok(rows)
    }
}

/// Encodes all rows of `cutter` on `writers` threads and writes them to `out`. Without a memory
/// limit, up to `writers` parts may wait for their turn, and no more than `most_waiting`.
pub(super) fn emit(
    cutter: Cutter<'_>,
    out: Out<'_>,
    job: &Job,
    (writers, most_waiting): (usize, usize),
    running: &Running,
) -> Result<(Written, Option<Spread>)> {
    let shared = Shared {
        keys: cutter.keys().map(<[usize]>::to_vec),
        helper: cutter.rows.helper.clone(),
        ahead: cutter.part_bytes.saturating_mul(PARTS_AHEAD).min(MOST_AHEAD),
        cutter: Mutex::new(cutter),
        line: Mutex::new(Line { out, waiting: BTreeMap::new() }),
        waiting: if running.watch.is_limited() { 0 } else { writers.min(most_waiting) },
        appended: Condvar::new(),
        failed: AtomicBool::new(false),
        job,
        running,
    };
    let work = || {
        let done = if writers > 1 { shared.hold() } else { shared.stream() };
        if done.is_err() {
            shared.failed.store(true, Ordering::Relaxed);
            // Under the lock: otherwise a worker about to wait would miss the notification.
            let _line = lock(&shared.line);
            shared.appended.notify_all();
        }
        done
    };
    timed(&running.tally.together, || side_by_side(repeat_n(work, writers)))?;
    running.watch.cancel.check()?;
    let cutter = unlocked(shared.cutter);
    running.tally.outcome().keys = cutter.rows.keys();
    running.watch.kept()?;
    unlocked(shared.line).out.finish()
}

impl<'a> Shared<'a> {
    /// Takes the rows of a whole part, then encodes the part while other threads take theirs.
    fn hold(&self) -> Result<()> {
        let mut decoders = Decoders::new(&self.job.arrangement, self.keys.as_deref())?;
        loop {
            if let Some(helper) = &self.helper {
                while !self.failed.load(Ordering::Relaxed) && helper.help(self.ahead) {
                    self.running.watch.pause()?;
                }
            }
            let taken = {
                let mut cutter = lock(&self.cutter);
                if self.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                // The next part and all its rows; `None` at the end.
                let taken: Result<_> = timed(&self.running.tally.merging, || {
                    let Some(begun) = cutter.begin(&mut decoders)? else { return Ok(None) };
                    let (mut pieces, mut extent) = (Vec::new(), Extent::default());
                    while let Some(piece) = cutter.next(&mut extent, &mut decoders)? {
                        self.running.watch.pause()?;
                        pieces.push(piece);
                    }
                    Ok(Some((begun, pieces)))
                });
                if taken.is_err() {
                    // Set before another thread takes rows: no rows follow an error.
                    self.failed.store(true, Ordering::Relaxed);
                }
                taken?
            };
            let Some((NewPart { ordinal, file, starts_key }, mut pieces)) = taken else {
                return Ok(());
            };
            let Some((encoder, opened)) = file.open(&mut pieces, &mut decoders)? else {
                return Ok(());
            };
            // The memory of each slab is released after decoding.
            let mut batches = pieces.into_iter().map(|piece| {
                self.running.watch.pause()?;
                decoders.decode(piece)
            });
            let part = encoder.encode(&mut batches)?;
            self.append(ordinal, Encoded { part, opened, starts_key })?;
        }
    }

    /// Appends a part in its turn, or queues it.
    fn append(&self, ordinal: usize, encoded: Encoded) -> Result<()> {
        let mut line = lock(&self.line);
        loop {
            if self.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            if line.out.ordinal == ordinal {
                break;
            }
            if line.waiting.len() < self.waiting {
                line.waiting.insert(ordinal, encoded);
                return Ok(());
            }
            line = self.appended.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        let appended = timed(&self.running.tally.appending, || line.append(encoded));
        if appended.is_err() {
            // Set before another thread has the turn: nothing may follow a partly written part.
            self.failed.store(true, Ordering::Relaxed);
        }
        self.running.tally.wrote(appended?);
        self.appended.notify_all();
        Ok(())
    }

    /// Encodes rows during the merge.
    fn stream(&self) -> Result<()> {
        let mut decoders = Decoders::new(&self.job.arrangement, self.keys.as_deref())?;
        let mut cutter = lock(&self.cutter);
        let mut line = lock(&self.line);
        let turn = &mut line.out;
        while let Some(NewPart { file, starts_key, .. }) = cutter.begin(&mut decoders)? {
            let mut extent = Extent::default();
            let mut next = |decoders: &mut Decoders| {
                self.running.watch.pause()?;
                timed(&self.running.tally.merging, || cutter.next(&mut extent, decoders))
            };
            let mut head = Vec::new();
            while !file.is_sampled(&head)
                && let Some(piece) = next(&mut decoders)?
            {
                head.push(piece);
            }
            let Some((encoder, opened)) = file.open(&mut head, &mut decoders)? else {
                return Ok(());
            };
            opened.map_or(Ok(()), |opened| turn.open(opened))?;
            let mut head = head.into_iter();
            let mut batches = std::iter::from_fn(|| {
                let piece =
                    head.next().map_or_else(|| next(&mut decoders), |piece| Ok(Some(piece)));
                Some(piece.transpose()?.and_then(|piece| decoders.decode(piece)))
            });
            let rows = turn.encode(&*encoder, &mut batches, starts_key)?;
            self.running.tally.wrote(rows);
        }
        Ok(())
    }
}
