//! The positions of the rows with changed keys, for tables that hide rows in place of rewriting files.
//!
//! ```text
//!  footers   a: [1 5][7 9]   b: [3 30]     changes 4 8:  4 may be in the first row group of a, 8 in the second; both in b
//!  keys      a: 1 4 5 7 9    b: 3 8 30     a hides its row 1, b its row 1; the new rows of 4 and 8 go to a new file
//! ```
//! Row groups whose bounds have no changed key are not read, and of the others only the columns of key
//! and order. Each ascending run of keys is merged with the changes; the keys of a row group with many
//! runs are sorted in memory first. Each change takes 9 bytes of memory, and hidden rows the size of their bitmap.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_row::Rows as Keys;
use roaring::RoaringTreemap;

use super::changes::{Changes, Cursor};
use super::extents::{Extents, Group, TableFile};
use super::figures::{Applied, Counts, HiddenRows, WriteMode};
use super::homes::Homes;
use super::table::{Table, group_rows};
use crate::error::{Error, Result};
use crate::input::Inputs;
use crate::job::side_by_side;
use crate::watch::Watch;

/// What is known of a change: whether it is a delete, whether a row has its key, and whether this row is
/// newer than the change.
const DELETE: u8 = 1;
const FOUND: u8 = 2;
const STALE: u8 = 4;

/// Runs of a row group above which its keys are sorted: each run reads changes again. Some writers put a
/// few pieces of sorted rows in another order.
const MOST_RUNS: usize = 16;

/// The search for the rows of changed keys.
pub(super) struct Positions<'a> {
    table: &'a Table,
    changes: &'a Changes,
    watch: &'a Watch,
    files: Vec<TableFile>,
    /// The changes within the bounds of each row group, for each file.
    ranges: Vec<Vec<Range<u64>>>,
    states: Mutex<Vec<u8>>,
}

/// The rows of changed keys.
pub(super) struct Found {
    counts: Counts,
    /// Positions in each file, by ordinal.
    rows: Vec<RoaringTreemap>,
    /// The changes without a new row are dropped here; the others have no file yet.
    pub(super) homes: Option<Homes>,
    /// Row groups of all files.
    groups: usize,
}

/// A change of the key of a row, the position of the row, and whether the row is newer.
type Hit = (u64, u64, bool);

/// Keys of consecutive rows of a file, their order, and the position of the first row.
type Block = (Keys, Option<Keys>, u64);

impl<'a> Positions<'a> {
    /// Finds the rows of changed keys on some threads; `None` if their files are to be rewritten by
    /// `mode`.
    pub(super) fn found(
        mode: WriteMode,
        table: &'a Table,
        changes: &'a Changes,
        threads: usize,
        watch: &'a Watch,
    ) -> Result<Option<Found>> {
        if mode == WriteMode::Copy {
            return Ok(None);
        }
        let search = Self::of(table, changes, watch)?;
        let hides = mode == WriteMode::Vectors || search.writes_less();
        hides.then(|| search.run(threads)).transpose()
    }

    /// Finds out which row groups may have the keys of changes.
    fn of(table: &'a Table, changes: &'a Changes, watch: &'a Watch) -> Result<Self> {
        let files = Extents::by_footers(table, watch)?;
        let groups: Vec<&Group> = files.iter().flat_map(|file| &file.groups).collect();
        let mut starts: Vec<usize> = (0..groups.len()).collect();
        let mut ends = starts.clone();
        starts.sort_by_key(|group| &groups[*group].bounds.0);
        ends.sort_by_key(|group| &groups[*group].bounds.1);
        let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
        let mut ranges = vec![changes.len()..changes.len(); groups.len()];
        let mut states = Vec::new();
        let mut cursor = changes.all(table, watch);
        while cursor.settle()? {
            watch.pause()?;
            while let Some((batch, row)) = cursor.row() {
                let (change, key) = (batch.first + row as u64, batch.keys.row(row));
                while let Some(group) = starts.next_if(|at| *groups[*at].bounds.0 <= *key.as_ref())
                {
                    ranges[group].start = change;
                }
                while let Some(group) = ends.next_if(|at| *groups[*at].bounds.1 < *key.as_ref()) {
                    ranges[group].end = change;
                }
                states.push(if batch.is_delete(row) { DELETE } else { 0 });
                cursor.advance();
            }
        }
        let mut ranges = ranges.into_iter();
        let of_file = |file: &TableFile| ranges.by_ref().take(file.groups.len()).collect();
        let ranges = files.iter().map(of_file).collect();
        Ok(Self { table, changes, watch, files, ranges, states: Mutex::new(states) })
    }

    /// Returns true if new rows and positions take fewer bytes than the files with changes, of which one
    /// grows at least, if rows have the usual size.
    fn writes_less(&self) -> bool {
        let bytes = |file: &TableFile| self.table.inputs.files()[file.ordinal].bytes.unwrap_or(0);
        let all: u64 = self.files.iter().map(bytes).sum();
        let rows: u64 = self.files.iter().map(TableFile::rows).sum();
        let row = all.checked_div(rows).unwrap_or(0) + size_of::<u16>() as u64;
        let has_changes = |ranges: &Vec<Range<u64>>| ranges.iter().any(|range| !range.is_empty());
        let files = self.files.iter().zip(&self.ranges).filter(|(_, ranges)| has_changes(ranges));
        let copied: u64 = files.map(|(file, _)| bytes(file)).sum();
        self.changes.len().saturating_mul(row) < copied.max(all / self.files.len().max(1) as u64)
    }

    fn run(self, threads: usize) -> Result<Found> {
        let next = AtomicUsize::new(0);
        let rows = Mutex::new(vec![RoaringTreemap::new(); self.table.names.len()]);
        let work = || -> Result<()> {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = self.files.get(place) else { return Ok(()) };
                let found = self.file(file, &self.ranges[place]).inspect_err(|_| {
                    next.store(self.files.len(), Ordering::Relaxed);
                })?;
                rows.lock().unwrap_or_else(PoisonError::into_inner)[file.ordinal] = found;
            }
        };
        side_by_side(std::iter::repeat_n(work, threads.min(self.files.len()).max(1)))?;
        let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        let states = self.states.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut counts, mut homes) = (Counts::default(), Homes::new(self.changes.len(), true));
        for (state, change) in states.into_iter().zip(0..) {
            let is_delete = state & DELETE > 0;
            let count = match (state & STALE > 0, state & FOUND > 0) {
                (true, _) => &mut counts.stale,
                (_, true) if is_delete => &mut counts.deleted,
                (_, true) => &mut counts.updated,
                (_, false) if is_delete => &mut counts.absent,
                (_, false) => &mut counts.inserted,
            };
            *count += 1;
            if is_delete || state & STALE > 0 {
                homes.drop(change);
            }
        }
        let groups = self.files.iter().map(|file| file.groups.len()).sum();
        Ok(Found { counts, rows, homes: Some(homes), groups })
    }

    /// Returns the positions of rows with changed keys in a file.
    fn file(&self, file: &TableFile, ranges: &[Range<u64>]) -> Result<RoaringTreemap> {
        let mut found = RoaringTreemap::new();
        let groups = || file.groups.iter().zip(ranges).filter(|(_, range)| !range.is_empty());
        let Some(start) = groups().map(|(_, range)| range.start).min() else { return Ok(found) };
        let end = groups().map(|(_, range)| range.end).max().unwrap_or(start);
        let inputs = self.table.keys_of(file.ordinal)?;
        let mut changes = self.cursor(start..end);
        // The greatest bound so far: the changes before it may have been passed.
        let (mut passed, mut hits): (&[u8], _) = (&[], Vec::new());
        for (group, range) in groups() {
            if *group.bounds.0 <= *passed {
                changes = self.cursor(range.start..end);
            }
            if !self.by_runs(&inputs, group, range.start..end, &mut changes, &mut hits)? {
                hits.clear();
                changes = self.cursor(range.start..end);
                self.out_of_order(&inputs, group, &mut changes, &mut hits)?;
            }
            passed = passed.max(&group.bounds.1);
            self.record(file, hits.drain(..), &mut found)?;
        }
        Ok(found)
    }

    fn cursor(&self, range: Range<u64>) -> Cursor<'a> {
        self.changes.cursor(self.table, range, None, self.watch)
    }

    /// Records what was found of changes, and the positions of rows that are not hidden yet.
    fn record(
        &self,
        file: &TableFile,
        hits: impl Iterator<Item = Hit>,
        found: &mut RoaringTreemap,
    ) -> Result<()> {
        let hidden = self.table.hidden.of_file(file.ordinal);
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        for (change, row, is_stale) in hits {
            if hidden.is_some_and(|hidden| hidden.contains(row)) {
                continue;
            }
            let state = &mut states[change as usize];
            if *state & FOUND > 0 {
                let name = &self.table.inputs.files()[file.ordinal].name;
                return Err(Error::data(format!(
                    "{name}: a row has the same key as another row of the table, and one of the changes has this \
                     key, too; keep one row of each key first, with `dedupe`"
                ))
                .in_file(name.clone()));
            }
            *state |= FOUND;
            match is_stale {
                true => *state |= STALE,
                false => drop(found.insert(row)),
            }
        }
        Ok(())
    }

    /// Returns the keys of a row group, a record batch at a time.
    fn blocks<'b>(
        &'b self,
        inputs: &'b Inputs,
        group: &Group,
    ) -> impl Iterator<Item = Result<Block>> + 'b {
        let mut next = group.first;
        let rows = group_rows(inputs, 0, std::iter::once(group.index), self.watch);
        self.table.keys_in(rows).map(move |keys| {
            self.watch.pause()?;
            let ((keys, order), first) = (keys?, next);
            next += keys.num_rows() as u64;
            Ok((keys, order, first))
        })
    }

    /// Finds the changed keys of a row group, the changes of which are in a range. Returns false if the keys
    /// have many runs.
    fn by_runs(
        &self,
        inputs: &Inputs,
        group: &Group,
        range: Range<u64>,
        changes: &mut Cursor<'a>,
        hits: &mut Vec<Hit>,
    ) -> Result<bool> {
        let (mut last, mut runs): (Vec<u8>, _) = (Vec::new(), 1);
        for block in self.blocks(inputs, group) {
            let (block, mut start) = (block?, 0);
            let (keys, rows) = (&block.0, block.0.num_rows());
            while start < rows {
                if *keys.row(start).as_ref() < *last {
                    runs += 1;
                    *changes = self.cursor(range.clone());
                }
                if runs > MOST_RUNS {
                    return Ok(false);
                }
                let descends = |row: &usize| keys.row(*row) < keys.row(row - 1);
                let end = (start + 1..rows).find(descends).unwrap_or(rows);
                join(changes, (start..end).map(|row| (&block, row)), hits)?;
                last.clear();
                last.extend_from_slice(keys.row(end - 1).as_ref());
                start = end;
            }
        }
        Ok(true)
    }

    /// Finds the changed keys of a row group whose keys are in any order.
    fn out_of_order(
        &self,
        inputs: &Inputs,
        group: &Group,
        changes: &mut Cursor<'_>,
        hits: &mut Vec<Hit>,
    ) -> Result<()> {
        let blocks = self.blocks(inputs, group).collect::<Result<Vec<_>>>()?;
        let rows = |(place, block): (usize, &Block)| {
            (0..block.0.num_rows()).map(move |row| (place as u32, row as u32))
        };
        let mut rows: Vec<(u32, u32)> = blocks.iter().enumerate().flat_map(rows).collect();
        let key = |(block, row): (u32, u32)| blocks[block as usize].0.row(row as usize);
        rows.sort_unstable_by(|a, b| key(*a).cmp(&key(*b)));
        join(changes, rows.into_iter().map(|(at, row)| (&blocks[at as usize], row as usize)), hits)
    }
}

/// Merges rows, sorted by key, with changes.
fn join<'b>(
    changes: &mut Cursor<'_>,
    rows: impl Iterator<Item = (&'b Block, usize)>,
    hits: &mut Vec<Hit>,
) -> Result<()> {
    for ((keys, order, first), row) in rows {
        let key = keys.row(row);
        while changes.settle()? {
            let Some((batch, change)) = changes.row() else { break };
            match batch.keys.row(change).cmp(&key) {
                Less => {
                    changes.advance();
                    continue;
                }
                Equal => {
                    let orders = order.as_ref().zip(batch.order.as_ref());
                    let is_stale =
                        orders.is_some_and(|(ours, theirs)| theirs.row(change) < ours.row(row));
                    hits.push((batch.first + change as u64, first + row as u64, is_stale));
                }
                Greater => {}
            }
            break;
        }
    }
    Ok(())
}

impl Found {
    /// Adds the hidden rows to the result. A file without another row is removed. The last file has no
    /// rows.
    pub(super) fn tell(self, table: &Table, applied: &mut Applied) -> Result<()> {
        (applied.counts, applied.write_mode) = (self.counts, WriteMode::Vectors);
        applied.row_groups_left = self.groups as u64;
        let files = table.names.iter().zip(table.inputs.files()).zip(self.rows);
        for (ordinal, ((path, file), new)) in files.enumerate() {
            let (path, of, rows, mut all) = (path.clone(), file.rows.unwrap_or(0), new.len(), new);
            if let Some(hidden) = table.hidden.of_file(ordinal) {
                all |= &**hidden;
            }
            if rows > 0 && all.len() == of {
                applied.files_removed.push(path);
                continue;
            }
            applied.files_left.push(path.clone());
            if rows > 0 {
                let mut bitmap = Vec::with_capacity(all.serialized_size());
                all.serialize_into(&mut bitmap).map_err(|error| Error::data(error.to_string()))?;
                applied.vectors.push(HiddenRows { path, of, rows, hidden: all.len(), bitmap });
            }
        }
        Ok(())
    }
}
