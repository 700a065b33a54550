//! The rewriting of one file: row groups without a change are copied as they are, the others are
//! merged with their changes and encoded.
//!
//! ```text
//!  row groups    0     1     2     3     4         1 has a change, 2 is small
//!  segments    [copy][ encode    ][copy][copy]
//!  new file      0     a     b     3     4         cut into row groups of about the same size
//! ```
//! A first pass looks for a change that changes something, and stops at it. A file without such a
//! change is not opened for writing. A file whose rows are not sorted by the key is sorted as a
//! whole.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use windrow::SortColumn;

use super::changes::{Changes, Codes, Cursor};
use super::extents::{TableFile, unit};
use super::figures::{AddedFile, Counts};
use super::homes::Homes;
use super::merge::{Merger, TableRows};
use super::outputs::Outputs;
use super::plan::FilePlan;
use crate::error::{Error, ErrorKind, Result};
use crate::input::{DeclaredColumn, Inputs, ReadOptions, RowGroups, common_order};
use crate::job::Job;
use crate::limits::Limits;
use crate::output::{Encoder, Incoming, OutputOptions, Part, takes_row_groups};
use crate::settings::FloatOrder;
use crate::verbs::{SortSpec, sort_columns};
use crate::watch::Watch;

/// What the rewriting of all files has in common.
pub(super) struct Rewriting<'a> {
    pub(super) table: Arc<Inputs>,
    pub(super) schema: SchemaRef,
    pub(super) codes: &'a Codes,
    pub(super) changes: &'a Changes,
    pub(super) files: &'a [TableFile],
    pub(super) homes: Option<&'a Homes>,
    pub(super) key: &'a [SortColumn],
    pub(super) options: OutputOptions,
    /// Rows of a row group, by the limits of rows and bytes.
    pub(super) part_rows: u64,
    /// The directory of new files; `None` to only count.
    pub(super) folder: Option<PathBuf>,
    /// Paths of the files of the table below its directory.
    pub(super) names: &'a [PathBuf],
    pub(super) read: &'a ReadOptions,
    /// The limits of a sort beside the rewriting of one file; one file at a time is sorted.
    pub(super) sort_limits: Mutex<Limits>,
    pub(super) watch: Watch,
}

/// A file after its changes.
#[derive(Default)]
pub(super) struct Rewritten {
    pub(super) counts: Counts,
    /// The new files; `None` if the old one stays.
    pub(super) outputs: Option<Vec<AddedFile>>,
    pub(super) groups_rewritten: u64,
    pub(super) groups_copied: u64,
}

/// Neighbouring row groups.
enum Segment {
    Copy(usize),
    Encode(Range<usize>),
}

impl<'a> Rewriting<'a> {
    /// Applies the changes of `plan` to its file.
    pub(super) fn file(&self, plan: &FilePlan) -> Result<Rewritten> {
        let file = &self.files[plan.place];
        if file.ascends && !file.groups.is_empty() {
            match self.by_groups(plan, file) {
                Err(error) if error.kind() == ErrorKind::Unsorted => {}
                done => return done,
            }
        }
        self.sorted(plan, file)
    }

    /// Rewrites the row groups with changes.
    fn by_groups(&self, plan: &FilePlan, file: &TableFile) -> Result<Rewritten> {
        let mut done = Rewritten::default();
        let mut clean: Vec<Option<Counts>> = vec![None; file.groups.len()];
        for (place, changes) in plan.groups.iter().enumerate() {
            clean[place] = match changes.is_empty() {
                true => Some(Counts::default()),
                false => self.looked_at(plan, file, place, &mut done)?,
            };
        }
        let has_changes = done.counts.changed() > 0 || clean.contains(&None);
        if !has_changes || self.folder.is_none() {
            clean.iter().flatten().for_each(|counts| done.counts.add(counts));
            done.groups_rewritten = clean.iter().filter(|counts| counts.is_none()).count() as u64;
            if has_changes {
                done.groups_copied = clean.len() as u64 - done.groups_rewritten;
                done.outputs = Some(Vec::new());
            }
            return Ok(done);
        }
        let groups = self.table.whole_row_groups(file.ordinal)?;
        let groups = Arc::new(groups.ok_or_else(|| Error::data("a file cannot be copied from"))?);
        let copies = takes_row_groups(groups.footer(), &self.schema);
        let segments = match copies {
            true => segments(file, &clean, self.part_rows),
            false => vec![Segment::Encode(0..file.groups.len())],
        };
        let order = common_order(groups.footer().metadata());
        let sorting = if is_by_key(&order, self.key) { order } else { Vec::new() };
        let mut outputs = self.outputs(file, Some(&groups), sorting)?;
        for segment in segments {
            match segment {
                Segment::Copy(place) => {
                    self.watch.pause()?;
                    if let Some(counts) = &clean[place] {
                        done.counts.add(counts);
                    }
                    done.groups_copied += 1;
                    outputs.append(Part::of_row_group(&groups, file.groups[place].index))?;
                }
                Segment::Encode(places) => {
                    done.groups_rewritten += places.len() as u64;
                    let changes = plan.groups[places.clone()].iter().filter(|all| !all.is_empty());
                    let changes = changes.cloned().reduce(|a, b| a.start..b.end).unwrap_or(0..0);
                    let rows: u64 =
                        file.groups[places.clone()].iter().map(|group| group.rows).sum();
                    let most = rows + (changes.end - changes.start);
                    let merger = self.merger(plan, file, self.rows(file, places), changes);
                    done.counts.add(&self.encode(merger, most, &mut outputs)?);
                }
            }
        }
        done.outputs = Some(outputs.finish()?);
        Ok(done)
    }

    /// Looks for a change in a row group that changes something. Returns the counts of the changes
    /// if there is none.
    fn looked_at(
        &self,
        plan: &FilePlan,
        file: &TableFile,
        place: usize,
        done: &mut Rewritten,
    ) -> Result<Option<Counts>> {
        let rows = self.rows(file, place..place + 1);
        let mut merger = self.merger(plan, file, rows, plan.groups[place].clone());
        while let Some(batch) = merger.next() {
            batch?;
            if merger.counts.changed() > 0 && self.folder.is_some() {
                return Ok(None);
            }
        }
        if merger.counts.changed() == 0 {
            return Ok(Some(merger.counts));
        }
        if self.folder.is_none() {
            done.counts.add(&merger.counts);
        }
        Ok(None)
    }

    /// Rewrites a file whose rows are not sorted by the key.
    fn sorted(&self, plan: &FilePlan, file: &TableFile) -> Result<Rewritten> {
        let mut done = Rewritten::default();
        let source = self.table.files()[file.ordinal].source.clone();
        let inputs = Inputs::open(&[source], self.read)?;
        let spec = SortSpec::by(self.key.to_vec()).float_order(FloatOrder::Sql);
        let job = Job::sort(inputs, &spec)?.cancelled_by(&self.watch.cancel);
        let limits = self.sort_limits.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = job.batches(&limits)?;
        let rows =
            rows.map(|batch| batch.map_err(|error| Error::from(windrow::Error::from(error))));
        let merger = self.merger(plan, file, Box::new(rows), plan.changes.clone());
        let groups = file.groups.len() as u64;
        if self.folder.is_none() {
            let mut merger = merger;
            merger.by_ref().try_for_each(|batch| batch.map(drop))?;
            done.counts = merger.counts;
            if done.counts.changed() > 0 {
                (done.groups_rewritten, done.outputs) = (groups, Some(Vec::new()));
            }
            return Ok(done);
        }
        let copied = self.table.whole_row_groups(file.ordinal)?.map(Arc::new);
        let mut outputs = self.outputs(file, copied.as_ref(), sort_columns(self.key))?;
        let rows: u64 = file.groups.iter().map(|group| group.rows).sum();
        done.counts = self.encode(merger, rows + plan.count, &mut outputs)?;
        if done.counts.changed() > 0 {
            (done.groups_rewritten, done.outputs) = (groups, Some(outputs.finish()?));
        } else {
            outputs.discard()?;
        }
        Ok(done)
    }

    /// Writes a file without rows in the place of a file.
    pub(super) fn empty(&self, plan: &FilePlan) -> Result<Vec<AddedFile>> {
        let file = &self.files[plan.place];
        let like = self.table.whole_row_groups(file.ordinal)?.map(Arc::new);
        let mut outputs = self.outputs(file, like.as_ref(), Vec::new())?;
        outputs.encoder()?;
        outputs.finish()
    }

    fn merger(
        &'a self,
        plan: &FilePlan,
        file: &TableFile,
        rows: TableRows,
        changes: Range<u64>,
    ) -> Merger<'a> {
        let home = self.homes.map(|homes| (homes, plan.place));
        let cursor: Cursor<'a> = self.changes.cursor(changes, home, self.codes, &self.watch);
        let name = &self.table.files()[file.ordinal].name;
        Merger::new(rows, cursor, self.codes, &self.schema, name, &self.watch)
    }

    /// Reads row groups of a file.
    fn rows(&self, file: &TableFile, places: Range<usize>) -> TableRows {
        let groups = file.groups[places].iter().map(|group| group.index).collect();
        let (inputs, watch) = (Arc::clone(&self.table), self.watch.clone());
        Box::new(GroupRows { inputs, file: file.ordinal, groups, batches: None, watch })
    }

    fn outputs(
        &self,
        file: &TableFile,
        like: Option<&Arc<RowGroups>>,
        sorting: Vec<DeclaredColumn>,
    ) -> Result<Outputs> {
        let folder = self.folder.clone().unwrap_or_default();
        let name = (self.names, file.ordinal);
        let first = self.rows(file, 0..1.min(file.groups.len())).next().transpose()?;
        let sample =
            first.unwrap_or_else(|| RecordBatch::new_empty(SchemaRef::clone(&self.schema)));
        let options = OutputOptions { sorting, ..self.options.clone() };
        Outputs::open(folder, name, &self.schema, sample, options, like.map(Arc::clone))
    }

    /// Encodes up to `most` rows in row groups of about the same size.
    fn encode(&self, mut merger: Merger<'_>, most: u64, outputs: &mut Outputs) -> Result<Counts> {
        // Up to a quarter more than usual, so that a full row group with some new rows is not split.
        let parts = most.div_ceil(self.part_rows + self.part_rows / 4).max(1);
        let rows = usize::try_from(most.div_ceil(parts)).unwrap_or(usize::MAX);
        let mut rest = None;
        loop {
            if rest.is_none() {
                rest = merger.next().transpose()?;
            }
            if rest.is_none() {
                return Ok(merger.counts);
            }
            let encoder: Arc<dyn Encoder> = outputs.encoder()?;
            let mut part = UpTo { merger: &mut merger, rest: &mut rest, left: rows };
            let incoming: Incoming<'_> = &mut part;
            let part = encoder.encode(incoming)?;
            outputs.append(part)?;
        }
    }
}

/// Returns true if rows with unique keys that are sorted by `key` are in the order that a file
/// declares.
fn is_by_key(declared: &[DeclaredColumn], key: &[SortColumn]) -> bool {
    let key = sort_columns(key);
    declared.starts_with(&key) || key.starts_with(declared)
}

/// Divides the row groups of a file. `clean` has an entry for row groups without a change. Row groups
/// beside one with a change that are small among those of the file are encoded with it, so that they
/// do not pile up.
fn segments(file: &TableFile, clean: &[Option<Counts>], part_rows: u64) -> Vec<Segment> {
    let mut encoded: Vec<bool> = clean.iter().map(Option::is_none).collect();
    let most = file.groups.iter().map(|group| group.rows).max().unwrap_or(0);
    let is_small = |place: usize| file.groups[place].rows < most.min(part_rows) / 4;
    for place in 1..encoded.len() {
        encoded[place] |= encoded[place - 1] && is_small(place);
    }
    for place in (1..encoded.len()).rev() {
        encoded[place - 1] |= encoded[place] && is_small(place - 1);
    }
    let mut segments: Vec<Segment> = Vec::new();
    for (place, encoded) in encoded.into_iter().enumerate() {
        match (encoded, segments.last_mut()) {
            (false, _) => segments.push(Segment::Copy(place)),
            (true, Some(Segment::Encode(places))) => places.end = place + 1,
            (true, _) => segments.push(Segment::Encode(place..place + 1)),
        }
    }
    segments
}

/// The rows of neighbouring row groups.
struct GroupRows {
    inputs: Arc<Inputs>,
    file: usize,
    groups: VecDeque<usize>,
    batches: Option<TableRows>,
    watch: Watch,
}

impl Iterator for GroupRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.batches.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            let group = self.groups.pop_front()?;
            let read = unit(&self.inputs, self.file, group).and_then(|unit| unit.read(&self.watch));
            match read {
                Ok(batches) => self.batches = Some(batches),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The next rows of a merge, up to a number.
struct UpTo<'m, 'a> {
    merger: &'m mut Merger<'a>,
    rest: &'m mut Option<RecordBatch>,
    left: usize,
}

impl Iterator for UpTo<'_, '_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match self.merger.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            },
        };
        let rows = batch.num_rows().min(self.left);
        if rows < batch.num_rows() {
            *self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.left -= rows;
        Some(Ok(batch.slice(0, rows)))
    }
}
