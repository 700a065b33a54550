//! The plan: how many threads, and how the memory limit is divided. Made before anything is read.
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
//! Threads are given up before the budget gets too small for sorting: one thread with memory beats
//! two that spill small runs. What one thread cannot do without is the floor; under it the job is
//! refused at once.

mod costs;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;

pub(super) use costs::{Costs, Output};

use crate::error::{Error, Result};
use crate::input::Inputs;
use crate::limits::{Limits, Space};
use crate::size::Size;
use crate::verbs::{Arrangement, Way};

/// Rows of a record batch, in and out.
pub(super) const BATCH_ROWS: usize = 8192;
/// A record batch of wide rows ends once it has this many bytes.
pub(super) const BATCH_BYTES: usize = 2 << 20;
/// Bytes of rows that a sift sees at a time, at the most or one row: it has several such batches at once, beside all
/// that a writer has.
pub(super) const SIFTED_BYTES: usize = 256 << 10;

/// The most that what nobody counts grows by with the limit.
const MORE_SLACK: usize = 6 << 20;
/// Up to this limit the slack is all that there is to spare.
const SMALL_LIMIT: usize = 64 << 20;
/// Of what is beyond, one part in so many is kept for what nobody counts.
const UNCOUNTED: usize = 48;
/// Sorted files that are open at one time, if the system allows as many.
const MOST_FILES: usize = 512;
/// Open files that are none of the inputs: output, temporary files, streams.
pub(super) const OTHER_FILES: usize = 24;
/// Resident memory that nobody plans to use when there is no limit.
pub(super) const UNLIMITED: usize = usize::MAX / 4;
/// By how much a limit is raised to find one that is enough.
const STEP: usize = 1 << 20;

/// What the job may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) limit: Option<u64>,
    /// Threads that read, and threads that write, or decode for who takes the rows.
    pub(super) readers: usize,
    pub(super) writers: usize,
    /// What the limit comes from, if not from who called.
    pub(super) space: Option<Space>,
}

impl Terms {
    fn of(limits: &Limits) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = limits.threads.map_or(cores, NonZeroUsize::get);
        let (limit, space) = limits.within_space(threads)?;
        Ok(Self { limit, readers: threads, writers: threads, space })
    }

    fn available(&self) -> usize {
        self.limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED))
    }

    /// What nobody counts grows a little with what there is.
    fn more(&self) -> usize {
        (self.available().saturating_sub(SMALL_LIMIT) / UNCOUNTED).min(MORE_SLACK)
    }

    /// What is left of it beside so much.
    fn spare(&self, needed: usize) -> usize {
        self.available().saturating_sub(self.more()).saturating_sub(needed)
    }

    /// The most threads, or files, that leave half of what there is, or `least`.
    fn most(&self, most: usize, base: usize, least: usize, need: impl Fn(usize) -> usize) -> usize {
        let kept = least.max(self.spare(base) / 3);
        (1..=most).rev().find(|&n| self.spare(need(n)) >= kept).unwrap_or(1)
    }
}

/// A plan, and what it was made of.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) costs: Costs,
    pub(super) terms: Terms,
    pub(super) plan: Plan,
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
        let terms = Terms::of(limits)?;
        let costs = Costs::of(inputs, arrangement, output, limits.spill_codec, terms.readers);
        let plan = Plan::choose(&costs, &terms).map_err(|floor| floor.error(&costs, &terms))?;
        Ok(Self { costs, terms, plan })
    }
}

/// Threads and budgets of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) limit: Option<u64>,
    pub(super) readers: usize,
    pub(super) writers: usize,
    /// Bytes for rows while reading; where all sorted files are merged as they are read, beside the
    /// writers.
    pub(super) ingest_budget: usize,
    /// Bytes for chunks and windows while writing.
    pub(super) settle_budget: usize,
    /// Rows and row bytes that a part has at the most.
    pub(super) part_rows: usize,
    pub(super) part_bytes: usize,
    /// Whether the columns of a part are encoded one after the other.
    pub(super) columns_in_turn: bool,
    /// Sorted files that are merged at one time: all of them, or so many by each reader.
    pub(super) open_files: usize,
    /// Whether all of them are merged as they are written out.
    pub(super) direct: bool,
    /// The least limit, as messages name it.
    pub(super) floor: Size,
    pub(super) reader_bytes: usize,
    pub(super) writer_bytes: usize,
}

/// Who reads, and how much rows may take meanwhile.
struct Reading {
    readers: usize,
    /// Writers at the same time, if files are merged as they are written out.
    beside: Option<usize>,
    open_files: usize,
    budget: usize,
}

impl Plan {
    /// Divides the limit.
    ///
    /// # Errors
    /// The floor, where the limit is below.
    pub(super) fn choose(costs: &Costs, terms: &Terms) -> Result<Self, Floor> {
        let in_turn = in_turn(costs, terms);
        let floor = Floor::of(costs);
        if terms.available() < floor.bytes {
            return Err(floor);
        }
        let writing = |n: usize| costs.writing(in_turn, n);
        let writers = terms.most(terms.writers, costs.process(1), costs.least_sorting(), writing);
        let Reading { readers, beside, open_files, budget } =
            reading(costs, terms, in_turn, writers);
        let writers = beside.unwrap_or(writers);
        Ok(Self {
            limit: terms.limit,
            readers,
            writers,
            ingest_budget: budget,
            settle_budget: terms.spare(writing(writers)),
            part_rows: costs.part().0,
            part_bytes: costs.part().1,
            columns_in_turn: in_turn,
            open_files,
            direct: beside.is_some(),
            floor: floor.named(costs),
            reader_bytes: costs.reader(),
            writer_bytes: costs.writer(in_turn),
        })
    }

    /// What rows may take from now on, if the job that goes on by this plan turns out to have these costs; none if
    /// that is too little.
    pub(super) fn admits(&self, costs: &Costs, terms: &Terms) -> Option<usize> {
        // What comes after reading is chosen again.
        Self::choose(costs, terms).ok()?;
        let (needed, least) = match costs.way {
            Way::Unordered => (costs.reading(self.readers), costs.least_sorting()),
            Way::Sorted if self.direct => {
                let writing = costs.writing(self.columns_in_turn, self.writers);
                (writing.saturating_add(costs.all_files()), costs.least_merging())
            }
            Way::Sorted => (costs.reading(self.open_files * self.readers), costs.least_sorting()),
        };
        Some(terms.spare(needed)).filter(|&budget| budget >= least)
    }

    /// What all writers take.
    pub(super) fn writing_bytes(&self) -> usize {
        self.writers.saturating_mul(self.writer_bytes)
    }
}

/// Whether columns are encoded one after the other: only where that lets the job run, or run on more threads.
fn in_turn(costs: &Costs, terms: &Terms) -> bool {
    let fits = |in_turn: bool| {
        let writing = |n: usize| costs.writing(in_turn, n);
        match terms.spare(writing(1)) >= costs.least_merging() {
            true => terms.most(terms.writers, costs.process(1), costs.least_sorting(), writing),
            false => 0,
        }
    };
    costs.writer(true) < costs.writer(false) && fits(false) < fits(true).max(1)
}

/// Who reads, where so many would write.
fn reading(costs: &Costs, terms: &Terms, in_turn: bool, writers: usize) -> Reading {
    let (process, least) = (costs.process(1), costs.least_sorting());
    if costs.way == Way::Unordered {
        let readers = terms.most(terms.readers, process, least, |n| costs.reading(n));
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
    let readers = terms.most(readers, process, least, |n| costs.reading(n));
    let group = costs.files.min(costs.allowed / readers);
    let group = terms.most(group, process, least, |n| costs.reading(n * readers));
    let budget = terms.spare(costs.reading(group * readers));
    Reading { readers, beside: None, open_files: group, budget }
}

/// The least that a job needs, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) bytes: usize,
    reading: usize,
    sorting: usize,
    writing: usize,
    merging: usize,
    /// Whether most of it is for footers.
    footers: bool,
    /// A row that is a part of all this.
    long: usize,
}

impl Floor {
    /// That of the way to write that needs less, which is the one that is chosen there.
    fn of(costs: &Costs) -> Self {
        let (together, in_turn) = (Self::if_written(costs, false), Self::if_written(costs, true));
        if in_turn.bytes < together.bytes { in_turn } else { together }
    }

    fn if_written(costs: &Costs, in_turn: bool) -> Self {
        let (reading, writing) = (costs.reading(1), costs.writing(in_turn, 1));
        let (sorting, merging) = (costs.least_sorting(), costs.least_merging());
        let needed = reading.saturating_add(sorting).max(writing.saturating_add(merging));
        // At the floor itself there is as much more as the floor has above a small limit.
        let more = (needed.saturating_sub(SMALL_LIMIT) / (UNCOUNTED - 1)).min(MORE_SLACK);
        let bytes = needed.saturating_add(more);
        let footers = costs.writing.footers > costs.writer(in_turn);
        let long = costs.long();
        Self { bytes, reading, sorting, writing, merging, footers, long }
    }

    /// As a limit it is to be enough also for a process that is a little larger from the start.
    pub(super) fn named(&self, costs: &Costs) -> Size {
        Size(self.bytes.saturating_add(costs.sway) as u64).rounded_up()
    }

    /// The error of a job that has less.
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
            // Smaller row groups are more of them, and the footer has all.
            if self.footers { "raise" } else { "lower" },
        );
        let floor = self.bytes.saturating_add(costs.sway) as u64;
        Error::memory_floor(message, floor, terms.available() as u64)
    }
}

/// A limit at which a job that is planned with the costs that are `known` goes on when it meets the row that is in
/// `met`.
pub(super) fn enough_for(known: &Costs, met: &Costs, terms: &Terms) -> Size {
    let goes_on = |limit: usize| {
        let terms = Terms { limit: Some(limit as u64), ..*terms };
        Plan::choose(known, &terms).is_ok_and(|plan| plan.admits(met, &terms).is_some())
    };
    let first = Floor::of(met).bytes;
    // With a limit that is much higher there are all threads, and room for each of them.
    let limits = (0..1 << 14).map(|steps| first.saturating_add(steps * STEP));
    let limit = limits.into_iter().find(|&limit| goes_on(limit)).unwrap_or(first);
    Size(limit.saturating_add(met.sway) as u64).rounded_up()
}
