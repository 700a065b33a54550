//! Consecutive row groups of a file that are encoded together: those with a change, and neighbours that
//! are small among those of the file, so that they do not pile up.
//!
//! ```text
//!  row groups   0       1      2       3       4         1 and 3 have a change, 2 is small
//!  looked at    clean   change clean   change  clean
//!  segment              [ merge  rows   merge ]          ends at 4, which is copied
//! ```
//! Invariant: a row group is looked at right before its rows are read, so that the bytes that the look
//! fetched from a store are used again.

use std::ops::Range;

use arrow_array::RecordBatch;

use super::changes::Changes;
use super::extents::TableFile;
use super::figures::Counts;
use super::hidden::Rows;
use super::homes::Homes;
use super::merge::Merger;
use super::plan::FilePlan;
use super::table::{Table, group_rows};
use crate::error::Result;
use crate::watch::Watch;

/// A table and its changes.
pub(super) struct Sides {
    pub(super) table: Table,
    pub(super) changes: Changes,
    /// The file of each change, if the bounds of files do not tell it.
    pub(super) homes: Option<Homes>,
    /// Rows of a row group, by the limits of rows and bytes.
    pub(super) part_rows: u64,
    pub(super) watch: Watch,
}

impl Sides {
    /// Merges rows of a file with changes in a range.
    pub(super) fn merger<'a>(
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

    /// Reads a row group of a file, if it has one at this place.
    pub(super) fn rows(&self, file: &TableFile, place: usize) -> Rows<'_> {
        let group = file.groups.get(place);
        let first = group.map_or(0, |group| group.first);
        let group = group.map(|group| group.index);
        let rows = group_rows(&self.table.inputs, file.ordinal, group.into_iter(), &self.watch);
        self.table.hidden.without(file.ordinal, rows, first)
    }

    /// Returns true if some rows of a row group are hidden.
    pub(super) fn hides(&self, file: &TableFile, place: usize) -> bool {
        let group = &file.groups[place];
        self.table.hidden.has(file.ordinal, group.first..group.first + group.rows)
    }

    /// Looks for a change in a row group that changes something. Returns the counts of the changes if
    /// there is none.
    pub(super) fn looked_at(
        &self,
        plan: &FilePlan,
        file: &TableFile,
        place: usize,
    ) -> Result<Option<Counts>> {
        let changes = plan.groups[place].clone();
        if changes.is_empty() {
            return Ok(Some(Counts::default()));
        }
        let mut merger = self.merger(plan, file, self.rows(file, place), changes);
        while merger.counts.changed() == 0 {
            if merger.advance()?.is_none() {
                return Ok((merger.counts.changed() == 0).then_some(merger.counts));
            }
        }
        Ok(None)
    }
}

/// The rows of row groups with their changes.
pub(super) struct Segment<'a> {
    sides: &'a Sides,
    plan: &'a FilePlan,
    file: &'a TableFile,
    /// The row group that is read, or the next one.
    pub(super) next: usize,
    /// The first row group that is to be looked at.
    unseen: usize,
    /// Whether row groups can be copied.
    takes: bool,
    merger: Option<Merger<'a>>,
    pub(super) counts: Counts,
    /// The counts of the row group behind the segment, if it was looked at.
    pub(super) clean: Option<Counts>,
}

impl<'a> Segment<'a> {
    /// Begins with the row group at the end of `clean`, which has a change, and with its small neighbours
    /// in `clean`.
    pub(super) fn new(
        sides: &'a Sides,
        plan: &'a FilePlan,
        file: &'a TableFile,
        clean: Range<usize>,
        takes: bool,
    ) -> Self {
        let (merger, counts, unseen) = (None, Counts::default(), clean.end + 1);
        let mut segment =
            Self { sides, plan, file, next: clean.end, unseen, takes, merger, counts, clean: None };
        while segment.next > clean.start && segment.joins(segment.next - 1) {
            segment.next -= 1;
        }
        segment
    }

    /// Returns true if a row group without a change is encoded with a neighbour.
    fn joins(&self, place: usize) -> bool {
        let most = self.file.groups.iter().map(|group| group.rows).max().unwrap_or(0);
        let is_small = self.file.groups[place].rows < most.min(self.sides.part_rows) / 4;
        is_small || !self.takes || self.sides.hides(self.file, place)
    }

    /// Returns the number of rows if all changes change something.
    pub(super) fn most(&self) -> u64 {
        let groups = self.next..self.file.groups.len();
        let may_follow = |place: &usize| {
            *place < self.unseen || !self.plan.groups[*place].is_empty() || self.joins(*place)
        };
        let rows = |place: usize| {
            let changes = &self.plan.groups[place];
            self.file.groups[place].rows + (changes.end - changes.start)
        };
        groups.take_while(may_follow).map(rows).sum()
    }

    /// Returns the next rows.
    pub(super) fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(merger) = &mut self.merger {
                if let Some(rows) = merger.advance()? {
                    return Ok(Some(rows));
                }
                self.counts.add(&merger.counts);
                self.merger = None;
                self.next += 1;
            }
            let place = self.next;
            if place == self.file.groups.len() || self.clean.is_some() {
                return Ok(None);
            }
            if place >= self.unseen && !self.joins(place) {
                self.clean = self.sides.looked_at(self.plan, self.file, place)?;
                if self.clean.is_some() {
                    return Ok(None);
                }
            }
            let (rows, changes) = (self.sides.rows(self.file, place), &self.plan.groups[place]);
            self.merger = Some(self.sides.merger(self.plan, self.file, rows, changes.clone()));
        }
    }
}
