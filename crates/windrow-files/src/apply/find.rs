//! The search for the files of changes, where more than one file can have a key: files overlap in their
//! keys, or rows move between partitions.
//!
//! The key columns of row groups whose bounds have a changed key are read and merged with the changes.
//! A file that is not sorted has its keys sorted.

use std::cmp::Ordering;

use super::changes::{Changes, Cursor};
use super::extents::{Extents, TableFile};
use super::hidden::Rows;
use super::homes::Homes;
use super::table::{Table, group_rows};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::watch::Watch;

/// The search for the keys of changes.
pub(super) struct Search<'a> {
    pub(super) table: &'a Table,
    pub(super) changes: &'a Changes,
    pub(super) extents: &'a Extents,
    pub(super) limits: &'a Limits,
    pub(super) watch: &'a Watch,
}

impl Search<'_> {
    /// Finds the file with the key of each change.
    pub(super) fn homes(&self, rows_move: bool) -> Result<Homes> {
        let mut homes = Homes::new(self.changes.len(), rows_move);
        for (place, file) in self.extents.files.iter().enumerate() {
            match self.by_groups(place, file, &mut homes) {
                Err(error) if error.kind() == ErrorKind::Unsorted => {
                    self.sorted(place, file, &mut homes)?
                }
                done => done?,
            }
        }
        Ok(homes)
    }

    /// Searches the row groups of a sorted file.
    fn by_groups(&self, place: usize, file: &TableFile, homes: &mut Homes) -> Result<()> {
        let Some((least, most)) = file.bounds() else { return Ok(()) };
        let mut changes = self.changes.all(self.table, self.watch);
        if !reaches(&mut changes, least, most)? {
            return Ok(());
        }
        if !file.ascends {
            return Err(unsorted());
        }
        let keys = self.table.keys_of(file.ordinal)?;
        for group in &file.groups {
            if reaches(&mut changes, &group.bounds.0, &group.bounds.1)? {
                let rows = group_rows(&keys, 0, std::iter::once(group.index), self.watch);
                let rows = self.table.hidden.without(file.ordinal, rows, group.first);
                self.meet(place, rows, &mut changes, homes)?;
            }
        }
        Ok(())
    }

    /// Searches a file that is not sorted.
    fn sorted(&self, place: usize, file: &TableFile, homes: &mut Homes) -> Result<()> {
        let keys = self.table.keys_of(file.ordinal)?;
        let rows = self.table.sorted(file.ordinal, keys, self.limits, self.watch)?;
        self.meet(place, rows, &mut self.changes.all(self.table, self.watch), homes)
    }

    /// Notes the changes that have the key of a row of a file.
    fn meet(
        &self,
        place: usize,
        rows: Rows<'_>,
        changes: &mut Cursor<'_>,
        homes: &mut Homes,
    ) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        for keys in self.table.keys_in(rows) {
            self.watch.pause()?;
            let (keys, orders) = keys?;
            let follows = |last: &Vec<u8>| last.as_slice() <= keys.row(0).as_ref();
            let rows = keys.num_rows();
            if rows == 0 {
                continue;
            }
            if !last.as_ref().is_none_or(follows)
                || !(1..rows).all(|row| keys.row(row - 1) <= keys.row(row))
            {
                return Err(unsorted());
            }
            last = Some(keys.row(rows - 1).as_ref().to_vec());
            for (key, row) in keys.iter().zip(0..) {
                while changes.settle()? {
                    let Some((batch, change)) = changes.row() else { break };
                    match batch.keys.row(change).as_ref().cmp(key.as_ref()) {
                        Ordering::Less => changes.advance(),
                        Ordering::Greater => break,
                        Ordering::Equal => {
                            let number = batch.first + change as u64;
                            if let Some(other) = homes.get(number).filter(|other| *other != place) {
                                return Err(self.repeated(other, place));
                            }
                            let orders = orders.as_ref().zip(batch.order.as_ref());
                            match orders
                                .is_some_and(|(ours, theirs)| theirs.row(change) < ours.row(row))
                            {
                                true => homes.keep(number, place),
                                false => homes.set(number, place),
                            }
                            changes.advance();
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn repeated(&self, one: usize, other: usize) -> Error {
        let of = |place: usize| self.extents.files[place].ordinal;
        let [one, other] = [one, other].map(|place| &self.table.inputs.files()[of(place)].name);
        Error::data(format!(
            "{one} and {other} have a row of the same key, and one of the changes has this key, too; keep one row \
             of each key first, with `dedupe`"
        ))
    }
}

/// Goes to the first change that is not before `least`. Returns true if there is one up to `most`.
fn reaches(changes: &mut Cursor<'_>, least: &[u8], most: &[u8]) -> Result<bool> {
    while changes.settle()? {
        let Some((batch, change)) = changes.row() else { break };
        let key = batch.keys.row(change);
        if key.as_ref() >= least {
            return Ok(key.as_ref() <= most);
        }
        changes.advance();
    }
    Ok(false)
}

fn unsorted() -> Error {
    Error::new(ErrorKind::Unsorted, "the rows of a file are not sorted by the key")
}
