//! The changes of each file and row group.
//!
//! ```text
//!  files apart      a 1..5   c 8..9    changes 0 3 7 9:  a has 0 3 7, c has 9       neighbours in one range
//!  files overlap    the key columns are read: each change has the file with its key; a new key has the file
//!                   with the last least key before it
//!  partitions       the same among the files of the change's partition; a row of another one moves
//! ```
//! A change before all keys belongs to the first file, or row group, of its partition.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_row::Rows;

use super::changes::Changes;
use super::extents::{Extents, TableFile};
use super::figures::Counts;
use super::homes::Homes;
use super::partitions::Partitions;
use super::table::Table;
use crate::error::Result;
use crate::watch::Watch;

/// The changes of a file.
#[derive(Clone, Debug)]
pub(super) struct FilePlan {
    /// Place among the files.
    pub(super) place: usize,
    /// All changes of the file lie in this range.
    pub(super) changes: Range<u64>,
    /// Number of changes.
    pub(super) count: u64,
    /// For each row group of the file, a range with its changes; empty ranges have none.
    pub(super) groups: Vec<Range<u64>>,
}

impl FilePlan {
    fn new(place: usize, file: &TableFile) -> Self {
        Self { place, changes: 0..0, count: 0, groups: vec![0..0; file.groups.len()] }
    }

    /// Adds a change with this key.
    fn add(&mut self, file: &TableFile, change: u64, key: &[u8]) {
        extend(&mut self.changes, change);
        self.count += 1;
        if file.ascends && !file.groups.is_empty() {
            let after = file.groups.partition_point(|group| *group.bounds.0 <= *key);
            extend(&mut self.groups[after.saturating_sub(1)], change);
        }
    }
}

fn extend(range: &mut Range<u64>, change: u64) {
    match range.is_empty() {
        true => *range = change..change + 1,
        false => range.end = change + 1,
    }
}

/// Returns the place of the file for a new key.
pub(super) fn place_of(files: &[TableFile], key: &[u8]) -> usize {
    let after = files.partition_point(|file| file.bounds().is_none_or(|bounds| bounds.0 <= key));
    // A file without rows has no range, and is used if there is no other.
    let first = files.iter().position(|file| file.bounds().is_some()).unwrap_or(0);
    after.saturating_sub(1).max(first)
}

/// The assignment of changes to files.
pub(super) struct Assign<'a> {
    pub(super) table: &'a Table,
    pub(super) changes: &'a Changes,
    pub(super) partitions: Option<Partitions>,
    /// The files with the keys of changes, if they were searched.
    pub(super) homes: Option<Homes>,
    /// Whether a key without a file there is new.
    pub(super) are_searched: bool,
    pub(super) extents: &'a mut Extents,
    pub(super) counts: &'a mut Counts,
}

impl Assign<'_> {
    /// Assigns every change to a file. A new key gets its file in `homes`, and a new partition a file in
    /// `extents`. A delete of a key that no file has is counted.
    pub(super) fn plans(&mut self, watch: &Watch) -> Result<Vec<FilePlan>> {
        let files = self.extents.files.iter().enumerate();
        let mut plans: Vec<FilePlan> =
            files.map(|(place, file)| FilePlan::new(place, file)).collect();
        let mut cursor = self.changes.all(self.table, watch);
        // The partitions of the current record batch.
        let mut current: Option<(u64, RecordBatch, Rows)> = None;
        while cursor.settle()? {
            watch.pause()?;
            while let Some((batch, row)) = cursor.row() {
                let (change, key) = (batch.first + row as u64, batch.keys.row(row));
                if let Some(partitions) = &self.partitions
                    && current.as_ref().is_none_or(|(first, ..)| *first != batch.first)
                {
                    let values = partitions.values(&batch.rows)?;
                    let rows = partitions.rows(&values)?;
                    current = Some((batch.first, values, rows));
                }
                let of = current.as_ref().map(|(_, values, rows)| (values, rows, row));
                let found = self.file_of(change, key.as_ref(), batch.is_delete(row), of)?;
                for place in found.into_iter().flatten() {
                    while plans.len() < self.extents.files.len() {
                        plans.push(FilePlan::new(plans.len(), &self.extents.files[plans.len()]));
                    }
                    plans[place].add(&self.extents.files[place], change, key.as_ref());
                }
                cursor.advance();
            }
        }
        plans.retain(|plan| !plan.changes.is_empty());
        Ok(plans)
    }

    /// Returns the files that a change concerns: the one it goes to, and the one that its row leaves.
    fn file_of(
        &mut self,
        change: u64,
        key: &[u8],
        is_delete: bool,
        partition: Option<(&RecordBatch, &Rows, usize)>,
    ) -> Result<[Option<usize>; 2]> {
        let found = self.homes.as_ref().and_then(|homes| homes.get(change));
        let stays = self.homes.as_mut().is_some_and(|homes| homes.is_kept(change));
        if is_delete && self.are_searched || stays {
            self.counts.absent += u64::from(found.is_none());
            return Ok([found, None]);
        }
        let Some((values, rows, row)) = partition else {
            let place = found.unwrap_or_else(|| place_of(&self.extents.files, key));
            self.homes.iter_mut().for_each(|homes| homes.set(change, place));
            return Ok([Some(place), None]);
        };
        let Some(partitions) = &mut self.partitions else { return Ok([None, None]) };
        let known = partitions.known(rows, row);
        if let Some(place) =
            found.filter(|&place| Some(self.extents.files[place].partition) == known)
        {
            return Ok([Some(place), None]);
        }
        let place = match known {
            Some(number) => {
                let places = self.extents.of_partition(number);
                places.start + place_of(&self.extents.files[places], key)
            }
            None if is_delete => {
                self.counts.absent += 1;
                return Ok([None, None]);
            }
            None => {
                let number = partitions.number(rows, values, row)?;
                let name = partitions.file(number, values, row)?;
                self.extents.add(number, self.table.data_directory.join(name))
            }
        };
        match (&mut self.homes, found) {
            (Some(homes), Some(_)) => homes.move_to(change, place),
            (homes, _) => homes.iter_mut().for_each(|homes| homes.set(change, place)),
        }
        Ok([Some(place), found])
    }
}

#[cfg(test)]
mod tests {
    use super::super::extents::Group;
    use super::*;

    fn file(ordinal: usize, groups: &[(u8, u8)]) -> TableFile {
        let group = |(index, &(least, most)): (usize, &(u8, u8))| Group {
            index,
            rows: 1,
            first: index as u64,
            bounds: (vec![least], vec![most]),
        };
        TableFile::new(ordinal, groups.iter().enumerate().map(group).collect(), true)
    }

    #[test]
    fn keys_go_to_the_range_that_takes_them() {
        let files = [file(0, &[]), file(1, &[(10, 20), (30, 40)]), file(2, &[(50, 60)])];
        let places = [0, 10, 25, 45, 50, 99].map(|key| place_of(&files, &[key]));
        assert_eq!(places, [1, 1, 1, 1, 2, 2]);
        assert_eq!(place_of(&files[..1], &[7]), 0, "a table without rows");
        let mut plan = FilePlan::new(1, &files[1]);
        for (change, key) in [5, 15, 25, 35, 45].into_iter().enumerate() {
            plan.add(&files[1], change as u64, &[key]);
        }
        assert_eq!((plan.changes, plan.count, plan.groups), (0..5, 5, vec![0..3, 3..5]));
    }

    #[test]
    fn bounds_tell_whether_row_groups_and_files_are_apart() {
        assert!(file(0, &[(1, 2), (3, 4)]).ascends);
        assert!(!file(0, &[(1, 3), (3, 4)]).ascends, "a key in two row groups");
        assert!(!file(0, &[(3, 4), (1, 2)]).ascends);
    }
}
