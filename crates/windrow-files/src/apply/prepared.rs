//! Changes and a table, brought together: the plan of each file, and the run of all of them.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use super::changes::Changes;
use super::extents::Extents;
use super::figures::{Applied, Counts, WriteMode};
use super::find::Search;
use super::homes::Homes;
use super::plan::{Assign, FilePlan};
use super::positions::Found;
use super::rewrite::{Rewriting, Rewritten};
use super::segment::Sides;
use super::table::Table;
use crate::error::Result;
use crate::input::CsvOptions;
use crate::job::{Explain, Job, Rewrites, share_out};
use crate::limits::Limits;
use crate::lock::lock;
use crate::output::WriteOptions;
use crate::progress::{Moment, Phase, Progress};
use crate::settings::Format;
use crate::size::{Limit, Size};
use crate::system;
use crate::watch::{Cancel, Watch};

/// Changes ready to be applied to a table.
pub(super) struct Prepared {
    rewriting: Rewriting,
    pub(super) plans: Vec<FilePlan>,
    /// The rows to hide, unless their files are rewritten.
    found: Option<Found>,
    rewrites: Rewrites,
    start: Instant,
    applied: Applied,
}

impl Prepared {
    /// Reduces the changes by `job`, and finds the files and row groups that may have their keys; or
    /// the rows that have them, by `mode`.
    pub(super) fn new(
        mut table: Table,
        mode: WriteMode,
        job: Job,
        write: &WriteOptions,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        let start = Instant::now();
        let row_bytes = table.inputs.needs.row_bytes;
        let mut options =
            write.bind(Format::Parquet, Vec::new(), CsvOptions::default(), row_bytes)?;
        // The floor is told before any row is read.
        let threads = Rewrites::plan(&table.inputs, None, &table.key, &options, limits, 0)?.threads;
        let (changes, stats) = Changes::of(job, table.schema(), limits)?;
        windrow::give_back_free_blocks();
        let mut applied = Applied {
            rows_in: stats.rows_in,
            keys: changes.len(),
            bytes_of_changes: stats.bytes_out,
            spilled_bytes: stats.spilled_bytes,
            memory_limit_bytes: stats.memory_limit_bytes,
            ..Applied::default()
        };
        let watch = Watch::new(cancel, limits.memory_bytes()?, limits.alone);
        let mut found = Found::of(mode, &table, &changes, threads, &watch)?;
        let mut extents = match found {
            Some(_) => Extents::fresh(&table),
            None => Extents::of(&mut table, &watch)?,
        };
        let partitions = table.partitions.take();
        let rows_move = partitions.as_ref().is_some_and(|partitions| !partitions.is_local);
        let are_searched = rows_move || !extents.are_apart || found.is_some();
        let homes = match &mut found {
            Some(found) => found.homes.take(),
            None if are_searched => {
                let search = Search::of(&table, &changes, &extents.files, &watch, drop)?;
                Some(search.homes(rows_move, threads)?)
            }
            None => partitions.is_some().then(|| Homes::new(changes.len(), false)),
        };
        let mut assign = Assign {
            table: &table,
            changes: &changes,
            partitions,
            homes,
            are_searched,
            extents: &mut extents,
            counts: &mut applied.counts,
        };
        let plans = assign.plans(&watch)?;
        let Assign { partitions, homes, .. } = assign;
        table.partitions = partitions;
        let more = homes.as_ref().map_or(0, Homes::bytes);
        let all = Some(&changes.inputs);
        let rewrites = Rewrites::plan(&table.inputs, all, &table.key, &options, limits, more)?;
        let watch = Watch::new(cancel, rewrites.limit, limits.alone);
        options.columns_in_turn = rewrites.columns_in_turn;
        options.watch = watch.clone();
        // The rows of one file are sorted beside the rewriting of others.
        let beside = rewrites.thread_bytes.saturating_mul(rewrites.threads) as u64;
        let mut sort_limits = limits.clone().threads(1);
        if let Some(limit) = rewrites.limit {
            sort_limits = sort_limits.memory(Limit::Bytes(limit.saturating_sub(beside / 2)));
        }
        let part_rows = rewrites.part_rows as u64;
        let rewriting = Rewriting {
            sides: Sides { table, changes, homes, part_rows, watch },
            extents,
            options,
            folder: None,
            version: None,
            sort_limits: Mutex::new(sort_limits),
        };
        Ok(Self { rewriting, plans, found, rewrites, start, applied })
    }

    /// Applies the changes: writes new files of `version` into `folder`, or only counts if it is `None`.
    pub(super) fn run(
        mut self,
        folder: Option<PathBuf>,
        version: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Applied> {
        (self.rewriting.folder, self.rewriting.version) = (folder, version);
        let mut done = self.rewrite(progress)?.into_iter();
        let Rewriting { sides: Sides { table, watch, .. }, extents, .. } = &self.rewriting;
        watch.kept()?;
        let applied = &mut self.applied;
        let mut plans = self.plans.iter().peekable();
        for (place, file) in extents.files.iter().enumerate() {
            let name = file.fresh.is_none().then(|| table.names[file.ordinal].clone());
            let done = plans.next_if(|plan| plan.place == place).and_then(|_| done.next());
            let done = done.unwrap_or_default();
            applied.counts.add(&done.counts);
            match done.outputs {
                None => {
                    applied.files_left.extend(name);
                    applied.row_groups_left += file.groups.len() as u64;
                }
                Some(mut added) => {
                    if let Some(partitions) = &table.partitions {
                        let texts = &partitions.texts[file.partition];
                        added.iter_mut().for_each(|added| added.partition.clone_from(texts));
                    }
                    applied.files_removed.extend(name);
                    applied.row_groups_copied += done.groups_copied;
                    applied.row_groups_rewritten += done.groups_rewritten;
                    applied.bytes_out += added.iter().map(|file| file.bytes).sum::<u64>();
                    applied.files_added.extend(added);
                }
            }
        }
        if let Some(found) = self.found {
            found.tell(table, applied)?;
        }
        let Counts { inserted, deleted, .. } = applied.counts;
        applied.rows_out = (table.rows() + inserted).saturating_sub(deleted);
        applied.peak_rss_bytes = system::peak_resident();
        applied.seconds = self.start.elapsed().as_secs_f64();
        Ok(self.applied)
    }

    /// Rewrites all files with changes, on all threads.
    fn rewrite(&self, progress: &dyn Progress) -> Result<Vec<Rewritten>> {
        let (rewriting, files) = (&self.rewriting, &self.rewriting.extents.files);
        let total = Some(self.plans.iter().map(|plan| plan.count).sum());
        let moment =
            |rows| Moment { phase: Phase::Write, rows, total, pool: None, network_bytes: 0 };
        progress.begins(&moment(0));
        let (mut passed, mut done) = (0, Vec::new());
        done.resize_with(self.plans.len(), Rewritten::default);
        let shared = Mutex::new((&mut passed, &mut done));
        let work = |place: usize, plan: &FilePlan| {
            let rewritten = rewriting.file(plan)?;
            let (passed, done) = &mut *lock(&shared);
            **passed += plan.count;
            progress.advances(&moment(**passed));
            done[place] = rewritten;
            Ok(())
        };
        // A sort takes the memory of all threads.
        let ascend = self.plans.iter().all(|plan| files[plan.place].ascends);
        share_out(&self.plans, if ascend { self.rewrites.threads } else { 1 }, work)?;
        let is_empty = |done: &Rewritten| done.outputs.as_ref().is_some_and(Vec::is_empty);
        // A table keeps its columns in one file at least.
        if done.len() == files.len() && done.iter().all(is_empty) {
            done[0].outputs = rewriting.empty(&self.plans[0])?.or(done[0].outputs.take());
        }
        Ok(done)
    }

    /// Describes the plan.
    pub(super) fn explain(&self) -> Explain {
        let (mut all, mut in_files, mut changed) = (0, 0, 0);
        let mut plans = self.plans.iter().peekable();
        let files = &self.rewriting.extents.files;
        for (place, file) in files.iter().enumerate() {
            all += file.groups.len();
            let Some(plan) = plans.next_if(|plan| plan.place == place) else { continue };
            in_files += file.groups.len();
            let has_changes = plan.groups.iter().filter(|changes| !changes.is_empty());
            changed += if file.ascends { has_changes.count() } else { file.groups.len() };
        }
        let fresh = files.iter().filter(|file| file.fresh.is_some()).count();
        let (files, some) = (files.len() - fresh, self.plans.len() - fresh);
        let (copied, left) = (in_files - changed, all - in_files);
        let (rewrites, applied) = (&self.rewrites, &self.applied);
        let limit = rewrites.limit.map_or("none".to_owned(), |limit| Size(limit).to_string());
        let thread = Size(rewrites.thread_bytes as u64);
        let lines = vec![
            ("changes", format!("{} rows, {} keys", applied.rows_in, applied.keys)),
            (
                "files",
                format!("{files}, of which {some} have changes and {} are left", files - some),
            ),
            (
                "row groups",
                format!(
                    "{all}, of which {changed} have changes, {copied} are copied and {left} left"
                ),
            ),
            ("memory limit", format!("{limit} (floor {})", rewrites.floor)),
            ("rewriting", format!("{} threads, {thread} each", rewrites.threads)),
        ];
        Explain::of(lines, rewrites.floor.0, rewrites.limit)
    }
}
