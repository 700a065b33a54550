//! Changes and a table, brought together: the plan of each file, and the run of all of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::changes::{Changes, Codes};
use super::extents::{Extents, TableFile};
use super::figures::{Applied, Counts};
use super::find::Search;
use super::homes::Homes;
use super::keys::{KeyCode, KeyColumns, OrderCode};
use super::plan::{FilePlan, assign};
use super::rewrite::{Rewriting, Rewritten};
use super::table::{Bound, Table};
use crate::error::Result;
use crate::input::CsvOptions;
use crate::job::{Rewrites, side_by_side};
use crate::limits::Limits;
use crate::output::{OutputOptions, WriteOptions};
use crate::progress::{Moment, Phase, Progress};
use crate::settings::Format;
use crate::size::{Limit, Size};
use crate::system;
use crate::verbs::{CompactSpec, SortSpec};
use crate::watch::{Cancel, Watch};

/// Changes ready to be applied to a table.
pub(super) struct Prepared {
    table: Table,
    spec: CompactSpec,
    codes: Codes,
    changes: Changes,
    extents: Extents,
    homes: Option<Homes>,
    plans: Vec<FilePlan>,
    options: OutputOptions,
    rewrites: Rewrites,
    limits: Limits,
    watch: Watch,
    progress: Arc<dyn Progress>,
    start: Instant,
    applied: Applied,
}

impl Prepared {
    /// Reduces the changes, and finds the files and row groups that may have their keys.
    pub(super) fn new(
        table: Table,
        bound: Bound,
        write: &WriteOptions,
        limits: &Limits,
        cancel: &Cancel,
        progress: &Arc<dyn Progress>,
    ) -> Result<Self> {
        let start = Instant::now();
        let Bound { job, onto, spec } = bound;
        let schema = Arc::clone(table.inputs.schema());
        let row_bytes = table.inputs.needs().row_bytes;
        let mut options =
            write.bind(Format::Parquet, Vec::new(), CsvOptions::default(), row_bytes)?;
        let by = SortSpec::by(spec.key.clone());
        // The floor is told before any row is read.
        Rewrites::plan(&table.inputs, None, &by, &options, limits, 0)?;
        let order = onto.order.map(|(order, ranks)| OrderCode::of(&onto.table, order, ranks));
        let codes = Codes { key: KeyCode::of(&schema, &spec.key)?, order: order.transpose()? };
        let job = job.cancelled_by(cancel).watched_by(Arc::clone(progress));
        let (changes, stats) = Changes::of(job, &schema, limits)?;
        windrow::give_back_free_blocks();
        let mut applied = Applied::new(&stats, changes.len());
        let mut watch = Watch::new(cancel, limits.memory_bytes()?, limits.alone);
        let keys = KeyColumns::of(&table.inputs, &spec.key, &table.read);
        let extents = Extents::of(&table.inputs, &keys, &codes.key, &watch)?;
        let homes = match extents.are_apart {
            true => None,
            false => {
                let search = Search { keys: &keys, codes: &codes, changes: &changes };
                Some(search.homes(&extents, &spec.key, limits, &watch, &mut applied.counts)?)
            }
        };
        let plans = assign(&extents, &changes, &codes, homes.as_ref(), &watch)?;
        let more = homes.as_ref().map_or(0, Homes::bytes);
        let rewrites =
            Rewrites::plan(&table.inputs, Some(&changes.inputs), &by, &options, limits, more)?;
        options.columns_in_turn = rewrites.columns_in_turn;
        watch = Watch::new(cancel, rewrites.limit, limits.alone);
        options.watch = watch.clone();
        let (limits, progress) = (limits.clone(), Arc::clone(progress));
        Ok(Self {
            table,
            spec,
            codes,
            changes,
            extents,
            homes,
            plans,
            options,
            rewrites,
            limits,
            watch,
            progress,
            start,
            applied,
        })
    }

    /// Returns true if no file can have a changed key.
    pub(super) fn is_idle(&self) -> bool {
        self.plans.is_empty()
    }

    /// Applies the changes: writes new files into `folder`, or only counts if it is `None`.
    pub(super) fn run(mut self, folder: Option<PathBuf>) -> Result<Applied> {
        let done = self.rewrite(folder)?;
        self.watch.kept()?;
        let inputs = &self.table.inputs;
        let applied = &mut self.applied;
        let mut of_file: Vec<Option<Rewritten>> = inputs.files().iter().map(|_| None).collect();
        for (plan, done) in self.plans.iter().zip(done) {
            of_file[self.extents.files[plan.place].ordinal] = Some(done);
        }
        for file in &self.extents.files {
            let name = self.table.names[file.ordinal].clone();
            let done = of_file[file.ordinal].take().unwrap_or_default();
            applied.counts.add(&done.counts);
            match done.outputs {
                None => {
                    applied.files_left.push(name);
                    applied.row_groups_left += file.groups.len() as u64;
                }
                Some(added) => {
                    applied.files_removed.push(name);
                    applied.row_groups_copied += done.groups_copied;
                    applied.row_groups_rewritten += done.groups_rewritten;
                    applied.bytes_out += added.iter().map(|file| file.bytes).sum::<u64>();
                    applied.files_added.extend(added);
                }
            }
        }
        let Counts { inserted, deleted, .. } = applied.counts;
        applied.rows_out = (inputs.rows().unwrap_or(0) + inserted).saturating_sub(deleted);
        applied.peak_rss_bytes = system::peak_resident();
        applied.seconds = self.start.elapsed().as_secs_f64();
        Ok(self.applied)
    }

    /// Rewrites all files with changes, on all threads.
    fn rewrite(&self, folder: Option<PathBuf>) -> Result<Vec<Rewritten>> {
        let Self { rewrites, watch, .. } = self;
        let beside = rewrites.thread_bytes.saturating_mul(rewrites.threads) as u64;
        let mut sort_limits = self.limits.clone().threads(1);
        if let Some(limit) = rewrites.limit {
            sort_limits = sort_limits.memory(Limit::Bytes(limit.saturating_sub(beside / 2)));
        }
        let rewriting = Rewriting {
            table: Arc::clone(&self.table.inputs),
            schema: Arc::clone(self.table.inputs.schema()),
            codes: &self.codes,
            changes: &self.changes,
            files: &self.extents.files,
            homes: self.homes.as_ref(),
            key: &self.spec.key,
            options: self.options.clone(),
            part_rows: rewrites.part_rows as u64,
            folder,
            names: &self.table.names,
            read: &self.table.read,
            sort_limits: Mutex::new(sort_limits),
            watch: watch.clone(),
        };
        let total: u64 = self.plans.iter().map(|plan| plan.count).sum();
        let (next, passed) = (AtomicUsize::new(0), Mutex::new(0));
        let moment = |rows| Moment {
            phase: Phase::Write,
            rows,
            total: Some(total),
            pool: None,
            network_bytes: 0,
        };
        self.progress.begins(&moment(0));
        let done: Mutex<Vec<Option<Rewritten>>> =
            Mutex::new(self.plans.iter().map(|_| None).collect());
        let work = || -> Result<()> {
            while let Some(plan) = self.plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                let place = self.plans.iter().position(|other| other.place == plan.place);
                let rewritten = rewriting.file(plan).inspect_err(|_| {
                    next.store(self.plans.len(), Ordering::Relaxed);
                })?;
                let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
                *passed += plan.count;
                self.progress.advances(&moment(*passed));
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done[place.unwrap_or(0)] = Some(rewritten);
            }
            Ok(())
        };
        let ascend = self.plans.iter().all(|plan| self.extents.files[plan.place].ascends);
        // A sort takes the memory of all threads.
        let threads = if ascend { rewrites.threads.min(self.plans.len()).max(1) } else { 1 };
        side_by_side(std::iter::repeat_n(work, threads))?;
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut done: Vec<_> = done.into_iter().map(Option::unwrap_or_default).collect();
        let is_empty = |done: &Rewritten| done.outputs.as_ref().is_some_and(Vec::is_empty);
        // A table keeps its columns in one file at least.
        if rewriting.folder.is_some()
            && done.len() == self.extents.files.len()
            && done.iter().all(is_empty)
        {
            done[0].outputs = Some(rewriting.empty(&self.plans[0])?);
        }
        Ok(done)
    }

    /// Returns the plan as lines.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let groups = |file: &TableFile| file.groups.len();
        let all: usize = self.extents.files.iter().map(groups).sum();
        let touched = |plan: &FilePlan| match self.extents.files[plan.place].ascends {
            true => plan.groups.iter().filter(|changes| !changes.is_empty()).count(),
            false => groups(&self.extents.files[plan.place]),
        };
        let touched_groups: usize = self.plans.iter().map(touched).sum();
        let of_files: usize =
            self.plans.iter().map(|plan| groups(&self.extents.files[plan.place])).sum();
        let (files, some) = (self.extents.files.len(), self.plans.len());
        let rewrites = &self.rewrites;
        let limit = rewrites.limit.map_or("none".to_owned(), |limit| Size(limit).to_string());
        vec![
            ("changes", format!("{} rows, {} keys", self.applied.rows_in, self.applied.keys)),
            (
                "files",
                format!("{files}, of which {some} have changes and {} are left", files - some),
            ),
            (
                "row groups",
                format!(
                    "{all}, of which {touched_groups} have changes, {} are copied and {} left",
                    of_files - touched_groups,
                    all - of_files
                ),
            ),
            ("memory limit", format!("{limit} (floor {})", rewrites.floor)),
            (
                "rewriting",
                format!(
                    "{} threads, {} each",
                    rewrites.threads,
                    Size(rewrites.thread_bytes as u64)
                ),
            ),
        ]
    }
}
