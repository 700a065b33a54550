//! The search for the rows of changed keys, where bounds do not tell which file has a key, or positions of
//! rows are wanted.
//!
//! ```text
//!  footers   a: [1 5][7 9]   b: [3 30]     changes 4 8:  4 may be in the first row group of a, 8 in the second; both in b
//!  keys      a: 1 4 5 7 9    b: 3 8 30     4 is row 1 of a, 8 is row 1 of b
//! ```
//! The search reads the columns of key and order alone. It leaves out row groups whose bounds have no
//! changed key and, for few changes, pages whose bounds have none. Each ascending run of keys is merged with
//! the changes. Keys behind many runs are sorted in memory, some megabytes at a time.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::mem;
use std::ops::Range;
use std::sync::Mutex;

use arrow_row::Rows as Keys;

use super::changes::{Changes, Cursor};
use super::extents::{Group, TableFile, pages};
use super::homes::Homes;
use super::table::{Table, some_rows};
use crate::error::{Error, Result};
use crate::input::{Footer, Inputs};
use crate::job::share_out;
use crate::lock::{lock, unlocked};
use crate::watch::Watch;

/// Runs of a row group above which its keys are sorted: each run reads changes again. Some writers put a
/// few pieces of sorted rows in another order.
const MOST_RUNS: usize = 16;

/// Changes of a row group up to which its pages are looked at: the changes are read once more.
const FEW: u64 = 8192;

/// Bytes of keys that are sorted at a time.
const SORTED_BYTES: usize = 4 << 20;

/// A change of the key of a row.
pub(super) struct Hit {
    pub(super) change: u64,
    /// Position of the row in its file.
    pub(super) row: u64,
    /// Whether the row is newer than the change.
    pub(super) is_stale: bool,
}

/// Keys of consecutive rows of a file, their order, and the position of the first row.
type Block = (Keys, Option<Keys>, u64);

/// What takes the hits in a file, by the place of the file.
pub(super) type Take<'a> = &'a (dyn Fn(usize, &mut Vec<Hit>) -> Result<()> + Sync);

/// The search for the rows of changed keys.
pub(super) struct Search<'a> {
    table: &'a Table,
    changes: &'a Changes,
    watch: &'a Watch,
    pub(super) files: &'a [TableFile],
    /// The changes within the bounds of each row group, for each file.
    ranges: Vec<Vec<Range<u64>>>,
}

impl<'a> Search<'a> {
    /// Finds out which row groups may have the keys of changes. Tells `each` of every change whether it is a
    /// delete.
    pub(super) fn of(
        table: &'a Table,
        changes: &'a Changes,
        files: &'a [TableFile],
        watch: &'a Watch,
        mut each: impl FnMut(bool),
    ) -> Result<Self> {
        let groups: Vec<&Group> = files.iter().flat_map(|file| &file.groups).collect();
        let mut starts: Vec<usize> = (0..groups.len()).collect();
        let mut ends = starts.clone();
        starts.sort_by_key(|group| &groups[*group].bounds.0);
        ends.sort_by_key(|group| &groups[*group].bounds.1);
        let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
        let mut ranges = vec![changes.len()..changes.len(); groups.len()];
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
                each(batch.is_delete(row));
                cursor.advance();
            }
        }
        let mut ranges = ranges.into_iter();
        let of_file = |file: &TableFile| ranges.by_ref().take(file.groups.len()).collect();
        let ranges = files.iter().map(of_file).collect();
        Ok(Self { table, changes, watch, files, ranges })
    }

    /// Returns true if a file may have the key of a change.
    pub(super) fn may_have(&self, place: usize) -> bool {
        self.ranges[place].iter().any(|range| !range.is_empty())
    }

    /// Returns the file of each change, found on some threads.
    pub(super) fn homes(&self, rows_move: bool, threads: usize) -> Result<Homes> {
        let homes = Mutex::new(Homes::new(self.changes.len(), rows_move));
        self.run(threads, &|place, hits| {
            let file = &self.files[place];
            let hidden = self.table.hidden.of_file(file.ordinal);
            let mut homes = lock(&homes);
            for hit in hits.drain(..) {
                if hidden.is_some_and(|hidden| hidden.contains(hit.row)) {
                    continue;
                }
                if homes.get(hit.change).is_some() {
                    return Err(repeated(self.table, file));
                }
                match hit.is_stale {
                    true => homes.keep(hit.change, place),
                    false => homes.set(hit.change, place),
                }
            }
            Ok(())
        })?;
        Ok(unlocked(homes))
    }

    /// Searches all files on some threads.
    pub(super) fn run(&self, threads: usize, take: Take<'_>) -> Result<()> {
        share_out(self.files, threads, |place, _| self.file(place, take))
    }

    fn file(&self, place: usize, take: Take<'_>) -> Result<()> {
        let (file, ranges) = (&self.files[place], &self.ranges[place]);
        let groups = || file.groups.iter().zip(ranges).filter(|(_, range)| !range.is_empty());
        let Some(start) = groups().map(|(_, range)| range.start).min() else { return Ok(()) };
        let end = groups().map(|(_, range)| range.end).max().unwrap_or(start);
        let inputs = self.table.keys_of(file.ordinal)?;
        let footer = inputs.content(0).page_index()?;
        let mut changes = self.cursor(start..end);
        // The greatest bound so far: the changes before it may have been passed.
        let mut passed: &[u8] = &[];
        for (group, range) in groups() {
            if *group.bounds.0 <= *passed {
                changes = self.cursor(range.start..end);
            }
            let take = |hits: &mut Vec<Hit>| take(place, hits);
            let file = (&inputs, footer.as_ref());
            self.group(file, group, range.start..range.end, &mut changes, &take)?;
            passed = passed.max(&group.bounds.1);
        }
        Ok(())
    }

    fn cursor(&self, range: Range<u64>) -> Cursor<'a> {
        self.changes.cursor(self.table, range, None, self.watch)
    }

    /// Returns the rows of a row group that may have changed keys, by its page index; `None` for all of them.
    fn kept(
        &self,
        footer: Option<&Footer>,
        group: &Group,
        range: &Range<u64>,
    ) -> Result<Option<Vec<Range<u64>>>> {
        let few = range.end - range.start <= FEW;
        let Some(footer) = footer.filter(|_| few) else { return Ok(None) };
        let Some(pages) = pages(footer, self.table, group.index)? else { return Ok(None) };
        let (mut kept, mut changes): (Vec<Range<u64>>, _) =
            (Vec::new(), self.cursor(range.clone()));
        for (rows, (least, most)) in pages {
            while changes.settle()?
                && changes.row().is_some_and(|(batch, row)| *batch.keys.row(row).as_ref() < *least)
            {
                changes.advance();
            }
            if changes.row().is_none_or(|(batch, row)| *batch.keys.row(row).as_ref() > *most) {
                continue;
            }
            match kept.last_mut() {
                Some(last) if last.end == rows.start => last.end = rows.end,
                _ => kept.push(rows),
            }
        }
        Ok(Some(kept))
    }

    /// Finds the changed keys of a row group, the changes of which are in a range.
    fn group(
        &self,
        (inputs, footer): (&Inputs, Option<&Footer>),
        group: &Group,
        range: Range<u64>,
        changes: &mut Cursor<'a>,
        take: &dyn Fn(&mut Vec<Hit>) -> Result<()>,
    ) -> Result<()> {
        let (mut hits, mut last, mut runs) = (Vec::new(), Vec::<u8>::new(), 1);
        // Blocks of which the rows from a place on are to be sorted, and their bytes.
        let (mut loose, mut bytes) = (Vec::new(), 0);
        // Record batches do not go beyond a range of rows that are read.
        let kept = self.kept(footer, group, &range)?;
        let all = 0..group.rows;
        let rows = kept.clone().unwrap_or_else(|| Vec::from([all]));
        let (mut ranges, mut first) = (rows.into_iter(), group.first);
        let mut end = first;
        let rows = some_rows(inputs, group.index, kept, self.watch);
        for keys in self.table.keys_in(rows) {
            self.watch.pause()?;
            let (keys, order) = keys?;
            let (rows, mut start) = (keys.num_rows(), 0);
            if first == end
                && let Some(range) = ranges.next()
            {
                (first, end) = (group.first + range.start, group.first + range.end);
            }
            let block = (keys, order, first);
            let keys = &block.0;
            first += rows as u64;
            while start < rows {
                if *keys.row(start).as_ref() < *last {
                    runs += 1;
                    // The next row group goes on with it.
                    *changes = self.cursor(range.start..self.changes.len());
                }
                if runs > MOST_RUNS {
                    break;
                }
                let descends = |row: &usize| keys.row(*row) < keys.row(row - 1);
                let end = (start + 1..rows).find(descends).unwrap_or(rows);
                join(changes, (start..end).map(|row| (&block, row)), &mut hits)?;
                last.clear();
                last.extend_from_slice(keys.row(end - 1).as_ref());
                start = end;
            }
            if start < rows {
                bytes += block.0.size();
                loose.push((block, start));
            }
            if bytes > SORTED_BYTES {
                bytes = 0;
                join_sorted(&mut self.cursor(range.clone()), mem::take(&mut loose), &mut hits)?;
            }
            take(&mut hits)?;
        }
        join_sorted(&mut self.cursor(range), loose, &mut hits)?;
        take(&mut hits)
    }
}

/// Merges rows in any order with changes: those of each block from a place on.
fn join_sorted(
    changes: &mut Cursor<'_>,
    blocks: Vec<(Block, usize)>,
    hits: &mut Vec<Hit>,
) -> Result<()> {
    let of_block = |(place, (block, start)): (usize, &(Block, usize))| {
        (*start..block.0.num_rows()).map(move |row| (place as u32, row as u32))
    };
    let mut rows: Vec<(u32, u32)> = blocks.iter().enumerate().flat_map(of_block).collect();
    let key = |(block, row): (u32, u32)| blocks[block as usize].0.0.row(row as usize);
    rows.sort_unstable_by(|a, b| key(*a).cmp(&key(*b)));
    join(changes, rows.into_iter().map(|(at, row)| (&blocks[at as usize].0, row as usize)), hits)
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
                    let (change, row) = (batch.first + change as u64, first + row as u64);
                    hits.push(Hit { change, row, is_stale });
                }
                Greater => {}
            }
            break;
        }
    }
    Ok(())
}

/// The error for a changed key that two rows have.
pub(super) fn repeated(table: &Table, file: &TableFile) -> Error {
    let name = &table.inputs.files()[file.ordinal].name;
    Error::data(format!(
        "{name}: a row has the same key as another row of the table, and one of the changes has this key, too; \
         keep one row of each key first, with `dedupe`"
    ))
    .in_file(name.clone())
}
