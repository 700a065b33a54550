//! The rewriting of one file: row groups without a change are copied as they are, the others are
//! merged with their changes and encoded. Hidden rows are left out of a new file.
//!
//! ```text
//!  row groups    0     1     2     3     4         1 has a change, 2 is small
//!  segments    [copy][ encode    ][copy][copy]
//!  new file      0     a     b     3     4         cut into row groups of about the same size
//! ```
//! Each row group is looked at before it is written: a look stops at the first change that changes
//! something. A file without such a
//! change is not opened for writing. A file whose rows are not sorted by the key is sorted as a
//! whole.

use std::fs;
use std::iter::from_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::extents::{Extents, TableFile};
use super::figures::{AddedFile, Counts};
use super::hidden::Rows;
use super::outputs::{Outputs, Versioned};
use super::plan::FilePlan;
use super::segment::{Segment, Sides};
use super::table::conformed;
use crate::error::{Error, ErrorKind, Result};
use crate::input::{DeclaredColumn, common_order};
use crate::limits::Limits;
use crate::lock::lock;
use crate::output::{Encoder, OutputOptions};
use crate::store;
use crate::verbs::sort_columns;

/// The rewriting of the files of a table.
pub(super) struct Rewriting {
    pub(super) sides: Sides,
    pub(super) extents: Extents,
    pub(super) options: OutputOptions,
    /// The directory of new files; `None` to only count.
    pub(super) folder: Option<PathBuf>,
    /// The version in the names of new files; the next one unless given.
    pub(super) version: Option<u64>,
    /// The limits of a sort beside the rewriting of one file; one file at a time is sorted.
    pub(super) sort_limits: Mutex<Limits>,
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
                Err(error) if error.kind() == ErrorKind::Unsorted => {
                    self.sides.table.inputs.content(file.ordinal).forget();
                }
                done => return done,
            }
        }
        self.sorted(plan, file)
    }

    /// Rewrites the row groups with changes.
    fn by_groups(&self, plan: &FilePlan, file: &TableFile) -> Result<Rewritten> {
        let mut done = Rewritten::default();
        // Row groups from `first` on that were found to be without a change, and are not in the new file.
        let (mut first, mut clean) = (0, Vec::new());
        let mut opened = None;
        while first + clean.len() < file.groups.len() {
            let place = first + clean.len();
            if let Some(counts) = self.sides.looked_at(plan, file, place)? {
                clean.push(counts);
                continue;
            }
            let outputs = match &mut opened {
                Some(outputs) => outputs,
                none => none.insert(self.outputs(file, None, place)?),
            };
            let takes = outputs.as_ref().is_none_or(|outputs| outputs.takes_row_groups);
            let mut segment = Segment::new(&self.sides, plan, file, first..place, takes);
            clean.truncate(segment.next - first);
            self.pass_on(file, first, &mut clean, outputs, &mut done)?;
            let (begin, most) = (segment.next, segment.most());
            let mut rows = from_fn(|| segment.advance().transpose());
            self.encode(&mut rows, most, outputs.as_mut())?;
            done.counts.add(&segment.counts);
            done.groups_rewritten += (segment.next - begin) as u64;
            first = segment.next;
            clean.extend(segment.clean);
        }
        match &mut opened {
            Some(outputs) => self.pass_on(file, first, &mut clean, outputs, &mut done)?,
            None => clean.iter().for_each(|counts| done.counts.add(counts)),
        }
        let finished = |outputs: Option<Outputs>| outputs.map_or(Ok(Vec::new()), Outputs::finish);
        done.outputs = opened.map(finished).transpose()?;
        Ok(done)
    }

    /// Copies row groups without a change, `first` and those behind it. Encodes one of them only if it has
    /// hidden rows.
    fn pass_on(
        &self,
        file: &TableFile,
        first: usize,
        clean: &mut Vec<Counts>,
        outputs: &mut Option<Outputs>,
        done: &mut Rewritten,
    ) -> Result<()> {
        for (place, counts) in (first..).zip(clean.drain(..)) {
            self.sides.watch.pause()?;
            done.counts.add(&counts);
            let group = &file.groups[place];
            if self.sides.hides(file, place) {
                done.groups_rewritten += 1;
                self.encode(&mut self.sides.rows(file, place), group.rows, outputs.as_mut())?;
                continue;
            }
            done.groups_copied += 1;
            outputs.as_mut().map_or(Ok(()), |outputs| outputs.copy(group.index))?;
        }
        Ok(())
    }

    /// Rewrites a file whose rows are not sorted by the key, or writes a file for a new partition.
    fn sorted(&self, plan: &FilePlan, file: &TableFile) -> Result<Rewritten> {
        let limits = file.fresh.is_none().then(|| lock(&self.sort_limits));
        let rows: Rows<'_> = match &limits {
            None => Box::new(std::iter::empty()),
            Some(limits) => {
                let one = self.sides.table.one(file.ordinal, None)?;
                let rows = self.sides.table.sorted(file.ordinal, one, limits, &self.sides.watch)?;
                conformed(rows, self.sides.table.schema())
            }
        };
        let mut merger = self.sides.merger(plan, file, rows, plan.changes.clone());
        let mut sorting = sort_columns(&self.sides.table.key);
        sorting.retain(|column| self.sides.table.stored_schema.index_of(&column.name).is_ok());
        let mut outputs = self.outputs(file, Some(sorting), 0)?;
        let mut rows = from_fn(|| merger.advance().transpose());
        self.encode(&mut rows, file.rows() + plan.count, outputs.as_mut())?;
        let counts = merger.counts;
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
        let outputs = self.outputs(file, None, 0)?;
        let written = |mut outputs: Outputs| outputs.encoder().and_then(|_| outputs.finish());
        outputs.map(written).transpose()
    }

    /// Opens the files that replace `file`; `None` to only count. Without `sorting` they declare the
    /// order of the old file, as far as it is an order by the key. The row group `place` is the sample by
    /// which columns are encoded.
    fn outputs(
        &self,
        file: &TableFile,
        sorting: Option<Vec<DeclaredColumn>>,
        place: usize,
    ) -> Result<Option<Outputs>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let names = &self.sides.table.names;
        let name = match &file.fresh {
            None => Versioned::next(names, file.ordinal, self.version),
            Some(path) => Versioned::beside(names, path, &[], self.version),
        };
        let path = self.sides.table.inputs.files()[file.ordinal].path().unwrap_or(Path::new(""));
        let old = (!store::is_far(path)).then(|| fs::metadata(path)).transpose();
        let old = old.map_err(|error| Error::input(path, error))?;
        let like = self.sides.table.row_groups(file.ordinal)?;
        // Rows with unique keys that are sorted by the key are in any order that begins with it.
        let (key, mut order) =
            (sort_columns(&self.sides.table.key), common_order(like.footer.metadata()));
        if !order.starts_with(&key) && !key.starts_with(&order) {
            order.clear();
        }
        // The rows of a new partition are encoded as those of the file that it is like.
        let is_like = |other: &&TableFile| other.ordinal == file.ordinal && other.fresh.is_none();
        let alike = self.extents.files.iter().find(is_like).unwrap_or(file);
        let first = self.sides.rows(alike, place).next().transpose()?;
        let schema = &self.sides.table.stored_schema;
        let none = || Ok(RecordBatch::new_empty(SchemaRef::clone(schema)));
        let sample = first.map_or_else(none, |rows| self.sides.table.to_store(&rows))?;
        let sorting = sorting.unwrap_or(order);
        let options = OutputOptions { sorting, ..self.options.clone() };
        Outputs::open(folder, name, schema, sample, options, like, old).map(Some)
    }

    /// Encodes up to `most` rows in row groups of about the same size; only reads them without `outputs`.
    fn encode(
        &self,
        all: &mut impl Iterator<Item = Result<RecordBatch>>,
        most: u64,
        outputs: Option<&mut Outputs>,
    ) -> Result<()> {
        let Some(outputs) = outputs else {
            return all.try_for_each(|batch| batch.map(drop));
        };
        // Up to a quarter more than usual, so that a full row group with some new rows is not split.
        let parts = most.div_ceil(self.sides.part_rows + self.sides.part_rows / 4).max(1);
        let rows = usize::try_from(most.div_ceil(parts)).unwrap_or(usize::MAX);
        let mut rest = None;
        loop {
            if rest.is_none() {
                rest = all.next().transpose()?;
            }
            if rest.is_none() {
                return Ok(());
            }
            let encoder: Arc<dyn Encoder> = outputs.encoder()?;
            let mut left = rows;
            let mut part = std::iter::from_fn(|| {
                if left == 0 {
                    return None;
                }
                let batch = match rest.take() {
                    Some(batch) => batch,
                    None => match all.next()? {
                        Ok(batch) => batch,
                        failed => return Some(failed),
                    },
                };
                let rows = batch.num_rows().min(left);
                rest =
                    (rows < batch.num_rows()).then(|| batch.slice(rows, batch.num_rows() - rows));
                left -= rows;
                Some(self.sides.table.to_store(&batch.slice(0, rows)))
            });
            let part = encoder.encode(&mut part)?;
            outputs.append(part)?;
        }
    }
}
