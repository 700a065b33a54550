//! The changes of each file and row group.
//!
//! ```text
//!  files apart      a 1..5   c 8..9    changes 0 3 7 9:  a has 0 3 7, c has 9       neighbours in one range
//!  files overlap    the key columns are read: each change has the file with its key; a new key has the file
//!                   with the last least key before it
//! ```
//! A change before all keys belongs to the first file, or row group.

use std::ops::Range;

use super::changes::Changes;
use super::extents::TableFile;
use super::figures::Counts;
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

/// No file.
pub(super) const NONE: u32 = u32::MAX;

/// Assigns every change to a file. `homes` are the files with the keys of changes, if files overlap; a
/// new key gets its file there, and a delete of a key that no file has is counted.
pub(super) fn assign(
    table: &Table,
    files: &[TableFile],
    changes: &Changes,
    mut homes: Option<&mut [u32]>,
    counts: &mut Counts,
    watch: &Watch,
) -> Result<Vec<FilePlan>> {
    let mut plans: Vec<FilePlan> =
        files.iter().enumerate().map(|(place, file)| FilePlan::new(place, file)).collect();
    let mut cursor = changes.all(table, watch);
    while cursor.settle()? {
        watch.pause()?;
        while let Some((batch, row)) = cursor.row() {
            let (change, key) = (batch.first + row as u64, batch.keys.row(row));
            let place = match &mut homes {
                None => place_of(files, key.as_ref()),
                Some(homes) => {
                    let home = &mut homes[change as usize];
                    if *home == NONE && !batch.is_delete(row) {
                        *home = place_of(files, key.as_ref()) as u32;
                    }
                    *home as usize
                }
            };
            match plans.get_mut(place) {
                Some(plan) => plan.add(&files[place], change, key.as_ref()),
                None => counts.absent += 1,
            }
            cursor.advance();
        }
    }
    plans.retain(|plan| !plan.changes.is_empty());
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::super::extents::Group;
    use super::*;

    fn file(ordinal: usize, groups: &[(u8, u8)]) -> TableFile {
        let group = |(index, &(least, most)): (usize, &(u8, u8))| Group {
            index,
            rows: 1,
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
