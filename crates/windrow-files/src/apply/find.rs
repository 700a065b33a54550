//! The search for the files of changes in a table whose files overlap in their keys.
//!
//! The key columns of every file that may have a changed key are read, and merged with the changes.
//! A file whose row groups do not ascend has its keys sorted first.

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use windrow::SortColumn;

use super::changes::{Changes, Codes};
use super::extents::{Extents, TableFile, unit};
use super::figures::Counts;
use super::homes::Homes;
use super::keys::KeyColumns;
use super::plan::place_of;
use crate::error::{Error, ErrorKind, Result};
use crate::input::Inputs;
use crate::job::Job;
use crate::limits::Limits;
use crate::settings::FloatOrder;
use crate::verbs::SortSpec;
use crate::watch::Watch;

/// The key columns of a table, and the changes.
pub(super) struct Search<'a> {
    pub(super) keys: &'a KeyColumns,
    pub(super) codes: &'a Codes,
    pub(super) changes: &'a Changes,
}

impl Search<'_> {
    /// Finds the file of each change. Counts deletes of keys that no file has.
    pub(super) fn homes(
        &self,
        extents: &Extents,
        key: &[SortColumn],
        limits: &Limits,
        watch: &Watch,
        counts: &mut Counts,
    ) -> Result<Homes> {
        let (homes, inputs) = (Homes::none(self.changes.len()), self.keys.inputs()?);
        for (place, file) in extents.files.iter().enumerate() {
            if file.groups.is_empty() {
                continue;
            }
            let found = match file.ascends {
                true => self.mark(&homes, place, extents, by_groups(inputs, file, watch), watch),
                false => Err(Error::new(ErrorKind::Unsorted, "")),
            };
            match found {
                Err(error) if error.kind() == ErrorKind::Unsorted => {
                    let source = inputs.files()[file.ordinal].source.clone();
                    let inputs = Inputs::open(&[source], &self.keys.read)?;
                    let spec = SortSpec::by(key.to_vec()).float_order(FloatOrder::Sql);
                    let job = Job::sort(inputs, &spec)?.cancelled_by(&watch.cancel);
                    let rows = job.batches(limits)?;
                    let rows = rows.map(|batch| batch.map_err(|e| windrow::Error::from(e).into()));
                    self.mark(&homes, place, extents, rows, watch)?;
                }
                done => done?,
            }
        }
        let mut cursor = self.changes.cursor(0..self.changes.len(), None, self.codes, watch);
        while cursor.settle()? {
            while let Some((batch, row)) = cursor.row() {
                let change = batch.first + row as u64;
                if homes.of(change).is_none() {
                    match batch.is_delete(row) {
                        true => counts.absent += 1,
                        false => {
                            let place = place_of(&extents.files, batch.keys.row(row).as_ref());
                            // No other thread sets homes.
                            let _ = homes.set(change, place);
                        }
                    }
                }
                cursor.advance();
            }
        }
        Ok(homes)
    }

    /// Sets the file of the changes whose keys are in `rows`.
    fn mark(
        &self,
        homes: &Homes,
        place: usize,
        extents: &Extents,
        rows: impl Iterator<Item = Result<RecordBatch>>,
        watch: &Watch,
    ) -> Result<()> {
        let files = self.keys.inputs()?.files();
        let names = |place: usize| &*files[extents.files[place].ordinal].name;
        let mut cursor = self.changes.cursor(0..self.changes.len(), None, self.codes, watch);
        let mut last: Option<Vec<u8>> = None;
        for batch in rows {
            watch.pause()?;
            let keys = self.codes.key.codes(&batch?)?;
            let Some(end) = keys.num_rows().checked_sub(1) else { continue };
            let follows = last.as_ref().is_none_or(|last| **last <= *keys.row(0).as_ref());
            if !follows || !(1..=end).all(|row| keys.row(row - 1) <= keys.row(row)) {
                return Err(Error::new(ErrorKind::Unsorted, ""));
            }
            last = Some(keys.row(end).as_ref().to_vec());
            for key in &keys {
                while cursor.settle()? {
                    let Some((changes, row)) = cursor.row() else { break };
                    match changes.keys.row(row).as_ref().cmp(key.as_ref()) {
                        Ordering::Less => {}
                        Ordering::Equal => {
                            let set = homes.set(changes.first + row as u64, place);
                            set.or_else(|other| match other == place {
                                true => Ok(()),
                                false => Err(repeated(names(other), names(place))),
                            })?;
                        }
                        Ordering::Greater => break,
                    }
                    cursor.advance();
                }
            }
        }
        Ok(())
    }
}

/// Reads the keys of a file, in its order.
fn by_groups<'a>(
    inputs: &'a Inputs,
    file: &'a TableFile,
    watch: &'a Watch,
) -> impl Iterator<Item = Result<RecordBatch>> + 'a {
    file.groups.iter().flat_map(move |group| {
        let read = unit(inputs, file.ordinal, group.index).and_then(|unit| unit.read(watch));
        match read {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    })
}

fn repeated(one: &str, other: &str) -> Error {
    Error::data(format!(
        "{one} and {other} have a row of the same key, and one of the changes has this key, too; keep one row \
         of each key first, with `dedupe`"
    ))
}
