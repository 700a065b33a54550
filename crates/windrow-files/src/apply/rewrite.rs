//! The rewriting of one file: row groups without a change are copied as they are, the others are
//! merged with their changes and encoded. Hidden rows are left out of a new file.
//!
//! ```text
//!  row groups    0     1     2     3     4         1 has a change, 2 is small
//!  segments    [copy][ encode    ][copy][copy]
//!  new file      0     a     b     3     4         cut into row groups of about the same size
//! ```
//! A first pass looks for a change that changes something, and stops at it. A file without such a
//! change is not opened for writing. A file whose rows are not sorted by the key is sorted as a
//! whole.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::changes::Changes;
use super::extents::{Extents, TableFile};
use super::figures::{AddedFile, Counts};
use super::hidden::Rows;
use super::homes::Homes;
use super::merge::Merger;
use super::outputs::{Outputs, Versioned};
use super::plan::FilePlan;
use super::table::{Table, conformed, group_rows};
use crate::error::{Error, ErrorKind, Result};
use crate::input::{DeclaredColumn, common_order};
use crate::limits::Limits;
use crate::output::{Encoder, OutputOptions};
use crate::store;
use crate::verbs::sort_columns;
use crate::watch::Watch;

/// A table and its changes.
pub(super) struct Rewriting {
    pub(super) table: Table,
    pub(super) changes: Changes,
    pub(super) extents: Extents,
    /// The file of each change, if the bounds of files do not tell it.
    pub(super) homes: Option<Homes>,
    pub(super) options: OutputOptions,
    /// Rows of a row group, by the limits of rows and bytes.
    pub(super) part_rows: u64,
    /// The directory of new files; `None` to only count.
    pub(super) folder: Option<PathBuf>,
    /// The version in the names of new files; the next one unless given.
    pub(super) version: Option<u64>,
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

impl Rewriting {
    /// Applies the changes of `plan` to its file.
    pub(super) fn file(&self, plan: &FilePlan) -> Result<Rewritten> {
        let file = &self.extents.files[plan.place];
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
        let looked_at = |place| self.looked_at(plan, file, place);
        let clean = (0..file.groups.len()).map(looked_at).collect::<Result<Vec<_>>>()?;
        if clean.iter().all(Option::is_some) {
            clean.iter().flatten().for_each(|counts| done.counts.add(counts));
            return Ok(done);
        }
        let mut outputs = self.outputs(file, None)?;
        let encoded = match outputs.as_ref().is_none_or(|outputs| outputs.takes_row_groups) {
            true => self.encoded(file, &clean),
            false => vec![true; file.groups.len()],
        };
        let places: Vec<usize> = (0..encoded.len()).collect();
        for places in places.chunk_by(|a, b| encoded[*a] && encoded[*b]) {
            self.watch.pause()?;
            let (first, count) = (places[0], places.len());
            if let (false, Some(counts)) = (encoded[first], &clean[first]) {
                done.counts.add(counts);
                done.groups_copied += 1;
                if let Some(outputs) = &mut outputs {
                    outputs.copy(file.groups[first].index)?;
                }
                continue;
            }
            done.groups_rewritten += count as u64;
            let changes = plan.groups[first..first + count].iter().filter(|all| !all.is_empty());
            let changes = changes.cloned().reduce(|a, b| a.start..b.end).unwrap_or(0..0);
            let rows: u64 = places.iter().map(|place| file.groups[*place].rows).sum();
            let most = rows + (changes.end - changes.start);
            let merger = self.merger(plan, file, self.rows(file, first..first + count), changes);
            done.counts.add(&self.encode(merger, most, outputs.as_mut())?);
        }
        done.outputs = Some(outputs.map_or(Ok(Vec::new()), Outputs::finish)?);
        Ok(done)
    }

    /// Looks for a change in a row group that changes something. Returns the counts of the changes
    /// if there is none.
    fn looked_at(&self, plan: &FilePlan, file: &TableFile, place: usize) -> Result<Option<Counts>> {
        let changes = plan.groups[place].clone();
        if changes.is_empty() {
            return Ok(Some(Counts::default()));
        }
        let mut merger = self.merger(plan, file, self.rows(file, place..place + 1), changes);
        while merger.counts.changed() == 0 {
            if merger.next().transpose()?.is_none() {
                return Ok((merger.counts.changed() == 0).then_some(merger.counts));
            }
        }
        Ok(None)
    }

    /// Rewrites a file whose rows are not sorted by the key, or writes a file for a new partition.
    fn sorted(&self, plan: &FilePlan, file: &TableFile) -> Result<Rewritten> {
        let limits = file
            .fresh
            .is_none()
            .then(|| self.sort_limits.lock().unwrap_or_else(PoisonError::into_inner));
        let rows: Rows<'_> = match &limits {
            None => Box::new(std::iter::empty()),
            Some(limits) => {
                let one = self.table.one(file.ordinal, None)?;
                let rows = self.table.sorted(file.ordinal, one, limits, &self.watch)?;
                conformed(rows, self.table.schema())
            }
        };
        let merger = self.merger(plan, file, rows, plan.changes.clone());
        let mut sorting = sort_columns(&self.table.key);
        sorting.retain(|column| self.table.stored_schema.index_of(&column.name).is_ok());
        let mut outputs = self.outputs(file, Some(sorting))?;
        let counts = self.encode(merger, file.rows() + plan.count, outputs.as_mut())?;
        if counts.changed() == 0 {
            return Ok(Rewritten { counts, ..Rewritten::default() });
        }
        let outputs = Some(outputs.map_or(Ok(Vec::new()), Outputs::finish)?);
        let groups_rewritten = file.groups.len() as u64;
        Ok(Rewritten { counts, outputs, groups_rewritten, groups_copied: 0 })
    }

    /// Writes a file without rows in the place of a file.
    pub(super) fn empty(&self, plan: &FilePlan) -> Result<Option<Vec<AddedFile>>> {
        let file = &self.extents.files[plan.place];
        let outputs = self.outputs(file, None)?;
        let written = |mut outputs: Outputs| outputs.encoder().and_then(|_| outputs.finish());
        outputs.map(written).transpose()
    }

    fn merger<'a>(
        &'a self,
        plan: &FilePlan,
        file: &TableFile,
        rows: Rows<'a>,
        changes: Range<u64>,
    ) -> Merger<'a> {
        let home = self.homes.as_ref().map(|homes| (homes, plan.place));
        let cursor = self.changes.cursor(&self.table, changes, home, &self.watch);
        Merger::new(rows, cursor, &self.table, file.ordinal, &self.watch)
    }

    /// Reads row groups of a file.
    fn rows(&self, file: &TableFile, places: Range<usize>) -> Rows<'_> {
        let groups = &file.groups[places];
        let first = groups.first().map_or(0, |group| group.first);
        let groups: Vec<usize> = groups.iter().map(|group| group.index).collect();
        let rows = group_rows(&self.table.inputs, file.ordinal, groups.into_iter(), &self.watch);
        self.table.hidden.without(file.ordinal, rows, first)
    }

    /// Opens the files that replace `file`; `None` to only count. Without `sorting` they declare the
    /// order of the old file, as far as it is an order by the key.
    fn outputs(
        &self,
        file: &TableFile,
        sorting: Option<Vec<DeclaredColumn>>,
    ) -> Result<Option<Outputs>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let names = &self.table.names;
        let name = match &file.fresh {
            None => Versioned::next(names, file.ordinal, self.version),
            Some(path) => Versioned::beside(names, path, &[], self.version),
        };
        let path = self.table.inputs.files()[file.ordinal].path().unwrap_or(Path::new(""));
        let old = (!store::is_far(path)).then(|| fs::metadata(path)).transpose();
        let old = old.map_err(|error| Error::input(path, error))?;
        let like = self.table.row_groups(file.ordinal)?;
        // Rows with unique keys that are sorted by the key are in any order that begins with it.
        let (key, mut order) =
            (sort_columns(&self.table.key), common_order(like.footer.metadata()));
        if !order.starts_with(&key) && !key.starts_with(&order) {
            order.clear();
        }
        // The rows of a new partition are encoded as those of the file that it is like.
        let is_like = |other: &&TableFile| other.ordinal == file.ordinal && other.fresh.is_none();
        let alike = self.extents.files.iter().find(is_like).unwrap_or(file);
        let first = self.rows(alike, 0..1.min(alike.groups.len())).next().transpose()?;
        let schema = &self.table.stored_schema;
        let none = || Ok(RecordBatch::new_empty(SchemaRef::clone(schema)));
        let sample = first.map_or_else(none, |rows| self.table.to_store(&rows))?;
        let sorting = sorting.unwrap_or(order);
        let options = OutputOptions { sorting, ..self.options.clone() };
        Outputs::open(folder, name, schema, sample, options, like, old).map(Some)
    }

    /// Encodes up to `most` rows in row groups of about the same size; only counts without `outputs`.
    fn encode(
        &self,
        mut merger: Merger<'_>,
        most: u64,
        outputs: Option<&mut Outputs>,
    ) -> Result<Counts> {
        let Some(outputs) = outputs else {
            merger.by_ref().try_for_each(|batch| batch.map(drop))?;
            return Ok(merger.counts);
        };
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
            let mut left = rows;
            let mut part = std::iter::from_fn(|| {
                if left == 0 {
                    return None;
                }
                let batch = match rest.take() {
                    Some(batch) => batch,
                    None => match merger.next()? {
                        Ok(batch) => batch,
                        failed => return Some(failed),
                    },
                };
                let rows = batch.num_rows().min(left);
                rest =
                    (rows < batch.num_rows()).then(|| batch.slice(rows, batch.num_rows() - rows));
                left -= rows;
                Some(self.table.to_store(&batch.slice(0, rows)))
            });
            let part = encoder.encode(&mut part)?;
            outputs.append(part)?;
        }
    }

    /// Returns which row groups of a file are encoded: those with a change, which have no entry in
    /// `clean`, those with hidden rows, and neighbours that are small among those of the file, so that
    /// they do not pile up.
    fn encoded(&self, file: &TableFile, clean: &[Option<Counts>]) -> Vec<bool> {
        let hides = |place: usize| {
            let group = &file.groups[place];
            self.table.hidden.has(file.ordinal, group.first..group.first + group.rows)
        };
        let mut encoded: Vec<bool> =
            (0..clean.len()).map(|place| clean[place].is_none() || hides(place)).collect();
        let most = file.groups.iter().map(|group| group.rows).max().unwrap_or(0);
        let is_small = |place: usize| file.groups[place].rows < most.min(self.part_rows) / 4;
        for place in 1..encoded.len() {
            encoded[place] |= encoded[place - 1] && is_small(place);
        }
        for place in (1..encoded.len()).rev() {
            encoded[place - 1] |= encoded[place] && is_small(place - 1);
        }
        encoded
    }
}
