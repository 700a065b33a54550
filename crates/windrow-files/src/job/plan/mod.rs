//! The plan of a job: the number of threads and the division of the memory limit. Made before any
//! row is read.
//!
//! ```text
//! limit = base (resident when planning) + slack
//!       + while reading: readers x (decoder + batch) + ingest budget (rows)
//!       | while writing: writers x (encoder + part)  + settle budget (chunks in memory, windows)
//!
//! Costs, Terms --choose--> Plan          a function of these alone
//!                   ^        |
//!                   |        admits(longer costs)?    a row that nobody knew of: a smaller budget, or the end
//!                   \________ after reading           the writers are chosen again, by the longest row met
//! ```
//!
//! The plan reduces threads before the budget gets too small for sorting: one thread with memory is
//! faster than two that spill small runs. The floor is the need of a single thread; a job with a
//! lower limit fails at once.

mod costs;
#[cfg(test)]
mod tests;

use std::time::Instant;

pub(super) use costs::{Costs, Output};

use crate::error::{Error, Result};
use crate::input::Inputs;
use crate::limits::{Limits, Space};
use crate::size::Size;
use crate::verbs::{Arrangement, Way};

/// Rows of a record batch, for input and output.
pub(super) const BATCH_ROWS: usize = 8192;
/// Bytes at which a record batch of wide rows ends.
pub(super) const BATCH_BYTES: usize = 2 << 20;
/// Maximum bytes of rows passed to a sift at a time, unless a single row is longer: a sift holds
/// several such batches, in addition to the memory of a writer.
pub(super) const SIFTED_BYTES: usize = 256 << 10;

/// Largest reserve for allocations that are not accounted for.
const MORE_SLACK: usize = 6 << 20;
/// Up to this limit the slack is the only reserve.
const SMALL_LIMIT: usize = 64 << 20;
/// Above `SMALL_LIMIT`, 1/48 of the limit is reserved for allocations that are not accounted for.
const UNCOUNTED: usize = 48;
/// Sorted files open at one time, if the system allows as many.
pub(super) const MOST_FILES: usize = 512;
/// Open files other than inputs: output, temporary files, streams.
pub(super) const OTHER_FILES: usize = 24;
/// Available memory assumed for a job without a limit.
pub(super) const UNLIMITED: usize = usize::MAX / 4;
/// Step of the search for a sufficient limit.
const STEP: usize = 1 << 20;

/// The resources granted to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) limit: Option<u64>,
    /// Reading threads, and threads that write or decode for the caller.
    pub(super) readers: usize,
    pub(super) writers: usize,
    /// The source of the limit, if the caller did not set it.
    pub(super) space: Option<Space>,
}

impl Terms {
    /// Returns what `limits` grant to a job that reads and writes.
    pub(super) fn of(limits: &Limits) -> Result<Self> {
        let threads = limits.cores();
        let (limit, space) = limits.within_space(threads)?;
        Ok(Self { limit, readers: threads, writers: threads, space })
    }

    pub(super) fn available(&self) -> usize {
        self.limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED))
    }

    /// Returns the reserve for allocations that are not accounted for, which grows with the limit.
    fn more(&self) -> usize {
        (self.available().saturating_sub(SMALL_LIMIT) / UNCOUNTED).min(MORE_SLACK)
    }

    /// Returns the memory left after `needed` bytes and the reserve.
    pub(super) fn spare(&self, needed: usize) -> usize {
        self.available().saturating_sub(self.more()).saturating_sub(needed)
    }

    /// Returns the largest number of readers or files, up to `most`, whose need leaves at least
    /// `least` bytes and a share of the memory left by `base`; at least 1.
    fn most(
        &self,
        share: usize,
        most: usize,
        base: usize,
        least: usize,
        need: impl Fn(usize) -> usize,
    ) -> usize {
        let kept = least.max(self.spare(base) / share);
        (1..=most).rev().find(|&n| self.spare(need(n)) >= kept).unwrap_or(1)
    }

    /// Returns the number of writers: most jobs spend more time on encoding than on merging, so a
    /// quarter of the memory suffices for the runs.
    fn writers(&self, costs: &Costs, in_turn: bool) -> usize {
        let need = |n: usize| costs.writing(in_turn, n);
        self.most(4, self.writers, costs.process(1), costs.least_sorting(), need)
    }
}

/// A plan and its inputs.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) costs: Costs,
    pub(super) terms: Terms,
    pub(super) plan: Plan,
    /// The start of planning, after the inputs were opened.
    pub(super) began: Instant,
}

impl Planned {
    /// Plans a job.
    ///
    /// # Errors
    /// `MemoryFloor` if the limit is below the floor.
    pub(super) fn of(
        inputs: &Inputs,
        arrangement: &Arrangement,
        output: &Output<'_>,
        limits: &Limits,
    ) -> Result<Self> {
        let began = Instant::now();
        let terms = Terms::of(limits)?;
        let costs = Costs::of(inputs, arrangement, output, limits.spill_codec, terms.readers);
        let plan = Plan::choose(&costs, &terms).map_err(|floor| floor.error(&costs, &terms))?;
        Ok(Self { costs, terms, plan, began })
    }
}

/// Threads and budgets of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) limit: Option<u64>,
    pub(super) readers: usize,
    pub(super) writers: usize,
    /// Bytes for rows while reading. If `direct`, the writers' memory comes in addition.
    pub(super) ingest_budget: usize,
    /// Bytes for chunks and windows while writing.
    pub(super) settle_budget: usize,
    /// Maximum rows and row bytes of a part.
    pub(super) part: (usize, usize),
    /// Whether the columns of a part are encoded one after the other.
    pub(super) columns_in_turn: bool,
    /// Sorted files merged at one time: all files, or this many by each reader.
    pub(super) open_files: usize,
    /// Whether all files are merged while the output is written.
    pub(super) direct: bool,
    /// Whether a merge of all files may hold their record batches until the rows are written.
    pub(super) by_columns: bool,
    /// The smallest possible limit, as shown in messages.
    pub(super) floor: Size,
    pub(super) reader_bytes: usize,
    pub(super) writer_bytes: usize,
}

/// The reading phase: threads, and the budget for rows.
struct Reading {
    readers: usize,
    /// The number of concurrent writers, if files are merged while the output is written.
    beside: Option<usize>,
    open_files: usize,
    budget: usize,
}

impl Plan {
    /// Divides the limit.
    ///
    /// # Errors
    /// Returns the floor if the limit is lower.
    pub(super) fn choose(costs: &Costs, terms: &Terms) -> Result<Self, Floor> {
        let in_turn = in_turn(costs, terms);
        let floor = Floor::of(costs);
        if terms.available() < floor.bytes {
            return Err(floor);
        }
        let writers = terms.writers(costs, in_turn);
        let Reading { readers, beside, open_files, budget } =
            reading(costs, terms, in_turn, writers);
        let writers = beside.unwrap_or(writers);
        Ok(Self {
            limit: terms.limit,
            readers,
            writers,
            ingest_budget: budget,
            settle_budget: terms.spare(costs.writing(in_turn, writers)),
            part: (costs.writing.part_rows, costs.writing.part_bytes),
            columns_in_turn: in_turn,
            open_files,
            direct: beside.is_some(),
            by_columns: costs.by_columns && beside.is_some() && budget >= costs.picked(writers),
            floor: floor.named(costs),
            reader_bytes: costs.reader(),
            writer_bytes: costs.writer(in_turn),
        })
    }

    /// Returns the budget for rows if a job already running by this plan turns out to have `costs`;
    /// `None` if the budget would be too small.
    pub(super) fn admits(&self, costs: &Costs, terms: &Terms) -> Option<usize> {
        // The plan for the time after reading is made again later.
        Self::choose(costs, terms).ok()?;
        let (needed, least) = match costs.way {
            Way::Unordered => (costs.reading(self.readers), costs.least_sorting()),
            Way::Sorted if self.direct => {
                let writing = costs.writing(self.columns_in_turn, self.writers);
                let least = if self.by_columns { costs.picked(self.writers) } else { 0 };
                (writing.saturating_add(costs.all_files()), least.max(costs.least_merging()))
            }
            Way::Sorted => (costs.reading(self.open_files * self.readers), costs.least_sorting()),
        };
        Some(terms.spare(needed)).filter(|&budget| budget >= least)
    }

    /// Returns the memory of all writers.
    pub(super) fn writing_bytes(&self) -> usize {
        self.writers.saturating_mul(self.writer_bytes)
    }
}

/// Returns true if columns are to be encoded one after the other: only where the job could not run
/// otherwise, or would run on fewer threads.
fn in_turn(costs: &Costs, terms: &Terms) -> bool {
    let fits = |in_turn: bool| match terms.spare(costs.writing(in_turn, 1)) >= costs.least_merging()
    {
        true => terms.writers(costs, in_turn),
        false => 0,
    };
    costs.writer(true) < costs.writer(false) && fits(false) < fits(true).max(1)
}

/// Plans the reading phase, for a job with up to `writers` writers.
fn reading(costs: &Costs, terms: &Terms, in_turn: bool, writers: usize) -> Reading {
    let (process, least) = (costs.process(1), costs.least_sorting());
    if costs.way == Way::Unordered {
        let readers = terms.most(3, terms.readers, process, least, |n| costs.reading(n));
        let budget = terms.spare(costs.reading(readers));
        return Reading { readers, beside: None, open_files: 0, budget };
    }
    let beside = |writers: usize| {
        terms.spare(costs.writing(in_turn, writers).saturating_add(costs.all_files()))
    };
    let direct = (1..=writers).rev().find(|&n| beside(n) >= costs.least_merging());
    if let Some(writers) = direct.filter(|_| costs.files <= costs.allowed) {
        let budget = beside(writers);
        let (readers, open_files) = (terms.readers, costs.files);
        return Reading { readers, beside: Some(writers), open_files, budget };
    }
    let readers = terms.readers.min(costs.allowed);
    let readers = terms.most(3, readers, process, least, |n| costs.reading(n));
    let group = costs.files.min(costs.allowed / readers);
    let group = terms.most(3, group, process, least, |n| costs.reading(n * readers));
    let budget = terms.spare(costs.reading(group * readers));
    Reading { readers, beside: None, open_files: group, budget }
}

/// The smallest possible limit of a job, and its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) bytes: usize,
    reading: usize,
    sorting: usize,
    writing: usize,
    merging: usize,
    /// Whether footers take the largest share.
    footers: bool,
    /// Length of the longest row, if it contributes to the other figures.
    long: usize,
}

impl Floor {
    /// Returns the floor of the cheaper way to write. `in_turn` chooses the same way.
    fn of(costs: &Costs) -> Self {
        let (together, in_turn) = (Self::if_written(costs, false), Self::if_written(costs, true));
        if in_turn.bytes < together.bytes { in_turn } else { together }
    }

    /// Returns the floor of rewrites; see [`Costs::rewriting`].
    pub(super) fn of_rewrites(costs: &Costs, merging: usize, more: usize) -> Self {
        let [together, one] =
            [false, true].map(|in_turn| costs.rewriting(in_turn, 1, merging, more));
        let (needed, writing) = (together.min(one), costs.writing(one < together, 1));
        let bytes = needed.saturating_add(reserve(needed));
        let reading = costs.file().saturating_add(costs.process(1));
        let (merging, long) = (merging.saturating_add(more), costs.long());
        Self { bytes, reading, sorting: 0, writing, merging, footers: false, long }
    }

    fn if_written(costs: &Costs, in_turn: bool) -> Self {
        let (reading, writing) = (costs.reading(1), costs.writing(in_turn, 1));
        let (sorting, merging) = (costs.least_sorting(), costs.least_merging());
        let needed = reading.saturating_add(sorting).max(writing.saturating_add(merging));
        let bytes = needed.saturating_add(reserve(needed));
        let footers = costs.writing.footers > costs.writer(in_turn);
        let long = costs.long();
        Self { bytes, reading, sorting, writing, merging, footers, long }
    }

    /// Returns the floor as a rounded limit, which also suffices for a process that starts a little
    /// larger.
    pub(super) fn named(&self, costs: &Costs) -> Size {
        Size(self.bytes.saturating_add(costs.sway) as u64).rounded_up()
    }

    /// Returns the error of a job whose limit is too low.
    pub(super) fn error(&self, costs: &Costs, terms: &Terms) -> Error {
        let size = |bytes: usize| Size(bytes as u64);
        let message = format!(
            "a memory limit of {} is below the floor of this job, {}: {} for reading and {} for \
             sorting, then {} for writing and {} for merging{}; {}, or {} `row_group_size`",
            size(terms.available()).exactly(),
            self.named(costs),
            size(self.reading),
            size(self.sorting),
            size(self.writing),
            size(self.merging),
            match self.long {
                0 => String::new(),
                long => format!(", with rows of up to {}", size(long)),
            },
            terms.space.map_or("raise `memory_limit`".to_owned(), |space| space.remedy()),
            // Smaller row groups are more numerous, and the footer describes all of them.
            if self.footers { "raise" } else { "lower" },
        );
        let floor = self.bytes.saturating_add(costs.sway) as u64;
        Error::memory_floor(message, floor, terms.available() as u64)
    }
}

/// Returns the reserve for a floor of `needed` bytes, which equals `Terms::more` at the floor itself.
fn reserve(needed: usize) -> usize {
    (needed.saturating_sub(SMALL_LIMIT) / (UNCOUNTED - 1)).min(MORE_SLACK)
}

/// Returns a limit at which a job planned with the costs `known` can continue after it meets the
/// row in `met`.
pub(super) fn enough_for(known: &Costs, met: &Costs, terms: &Terms) -> Size {
    let goes_on = |limit: usize| {
        let terms = Terms { limit: Some(limit as u64), ..*terms };
        Plan::choose(known, &terms).is_ok_and(|plan| plan.admits(met, &terms).is_some())
    };
    let first = Floor::of(met).bytes;
    // At a much higher limit, all threads run and each has enough memory.
    let limits = (0..1 << 14).map(|steps| first.saturating_add(steps * STEP));
    let limit = limits.into_iter().find(|&limit| goes_on(limit)).unwrap_or(first);
    Size(limit.saturating_add(met.sway) as u64).rounded_up()
}
