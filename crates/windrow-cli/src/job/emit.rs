//! Writing: sorted rows cut into parts, encoded on all threads, appended in order.
//!
//! ```text
//! thread A   [merge part 0][decode, encode 0......][append 0][merge part 2]...
//! thread B                 [merge part 1][decode, encode 1......][append 1]...
//! ```
//!
//! Merging is cheap beside encoding, so one thread at a time merges while the others encode. Where
//! parts end depends on the rows and the settings alone: the file is the same bytes whatever the
//! threads and the limit. With one thread a part is never held: its rows are encoded as they are
//! merged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use windrow::{Decoder, Slab, Slabs};

use super::ingest::join;
use super::plan::{BATCH_BYTES, BATCH_ROWS};
use super::{Arrangement, Plan, Reporter, interrupt};
use crate::error::Result;
use crate::output::{Appender, Encoder, Written};

/// The sorted rows, the first of them read ahead.
pub(super) struct Rows {
    pub(super) slabs: Slabs,
    pub(super) first: Option<Slab>,
}

/// Rows to take, and the number of the next part.
struct Cutter {
    rows: Rows,
    part: usize,
    part_rows: usize,
    part_bytes: usize,
}

/// How far the current part has come.
#[derive(Clone, Copy, Default)]
struct Extent {
    rows: usize,
    bytes: usize,
}

impl Cutter {
    /// The next slab of a part that has come as far as `extent`; `None` at its end.
    fn next(&mut self, extent: &mut Extent) -> Result<Option<Slab>> {
        if extent.rows >= self.part_rows || extent.bytes >= self.part_bytes {
            return Ok(None);
        }
        let slab = match self.rows.first.take() {
            Some(slab) => Some(slab),
            None => {
                self.rows.slabs.next(BATCH_ROWS.min(self.part_rows - extent.rows), BATCH_BYTES)?
            }
        };
        if let Some(slab) = &slab {
            extent.rows += slab.rows();
            extent.bytes += slab.bytes();
        }
        Ok(slab)
    }
}

struct Shared<'a> {
    cutter: Mutex<Cutter>,
    appender: Mutex<(usize, Box<dyn Appender>)>,
    appended: Condvar,
    failed: AtomicBool,
    encoder: &'a dyn Encoder,
    arrangement: &'a Arrangement,
    reporter: &'a Reporter,
}

/// Writes all of `rows`.
pub(super) fn emit(
    rows: Rows,
    arrangement: &Arrangement,
    plan: &Plan,
    encoder: &dyn Encoder,
    appender: Box<dyn Appender>,
    reporter: &Reporter,
) -> Result<Written> {
    let shared = Shared {
        cutter: Mutex::new(Cutter {
            rows,
            part: 0,
            part_rows: plan.part_rows,
            part_bytes: plan.part_bytes,
        }),
        appender: Mutex::new((0, appender)),
        appended: Condvar::new(),
        failed: AtomicBool::new(false),
        encoder,
        arrangement,
        reporter,
    };
    std::thread::scope(|scope| {
        let held = plan.writers > 1;
        let workers: Vec<_> = (0..plan.writers)
            .map(|_| {
                let shared = &shared;
                scope.spawn(move || {
                    let done = if held { shared.hold() } else { shared.stream() };
                    if done.is_err() {
                        shared.failed.store(true, Ordering::Relaxed);
                        // Under the lock, or a worker about to wait would miss it.
                        let _turn = lock(&shared.appender);
                        shared.appended.notify_all();
                    }
                    done
                })
            })
            .collect();
        join(workers)
    })?;
    interrupt::check()?;
    let cutter = shared.cutter.into_inner().unwrap_or_else(PoisonError::into_inner);
    reporter.deleted(cutter.rows.slabs.deleted());
    let (_, appender) = shared.appender.into_inner().unwrap_or_else(PoisonError::into_inner);
    appender.finish()
}

impl Shared<'_> {
    fn decoder(&self) -> Result<Decoder> {
        Ok(Decoder::new(&self.arrangement.layout, &self.arrangement.projection)?)
    }

    /// Takes the rows of a whole part, then encodes them while others take theirs.
    fn hold(&self) -> Result<()> {
        let mut decoder = self.decoder()?;
        loop {
            let mut slabs = Vec::new();
            let ordinal = {
                let mut cutter = lock(&self.cutter);
                let mut extent = Extent::default();
                while let Some(slab) = cutter.next(&mut extent)? {
                    self.pause()?;
                    slabs.push(slab);
                }
                let ordinal = cutter.part;
                cutter.part += 1;
                ordinal
            };
            if slabs.is_empty() || self.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            // Each slab's memory is free as soon as it is decoded.
            let mut batches = slabs.into_iter().map(|slab| Ok(decoder.decode(&slab)?));
            let part = self.encoder.encode(&mut batches)?;
            let mut turn = lock(&self.appender);
            while turn.0 != ordinal {
                if self.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                turn = self.appended.wait(turn).unwrap_or_else(PoisonError::into_inner);
            }
            let rows = part.rows();
            turn.1.append(part)?;
            turn.0 += 1;
            self.reporter.wrote(rows);
            self.appended.notify_all();
        }
    }

    /// Encodes rows as they are merged.
    fn stream(&self) -> Result<()> {
        let mut decoder = self.decoder()?;
        let mut cutter = lock(&self.cutter);
        let mut turn = lock(&self.appender);
        loop {
            let mut extent = Extent::default();
            let Some(first) = cutter.next(&mut extent)? else { return Ok(()) };
            let mut ahead = Some(first);
            let mut batches = std::iter::from_fn(|| {
                let slab = match ahead.take() {
                    Some(slab) => Ok(Some(slab)),
                    None => self.pause().and_then(|()| cutter.next(&mut extent)),
                };
                let decoded =
                    slab.and_then(|slab| slab.map(|slab| Ok(decoder.decode(&slab)?)).transpose());
                decoded.transpose()
            });
            let part = self.encoder.encode(&mut batches)?;
            let rows = part.rows();
            turn.1.append(part)?;
            turn.0 += 1;
            self.reporter.wrote(rows);
        }
    }

    fn pause(&self) -> Result<()> {
        interrupt::check()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
