//! Rows of one key under `last_known`: the needed rows, and the folded row.
//!
//! ```text
//! newest first    a  b  c  d            kept: a row with a column that is null in all rows before
//!   7             -  x  -  -            kept
//!   5             -  y  z  -            kept, for c
//!   4             -  -  w  -            adds nothing
//!   3  deleted                          kept, and nothing after it
//!   2             v  -  -  -
//! read            -  x  z  -
//! ```
//! Rows of other chunks may sort between the rows of a key, so folding waits until all rows of the
//! key are present, at the final read. Until then, rows are dropped but never changed.
//!
//! Invariant: dropping a row early never affects the choice of the remaining rows.

use std::ops::Range;

use super::builder::Builder;
use super::view::View;
use windrow_rows::engine::Payload;
use windrow_rows::{Layout, Result, Rule, key_len};

/// The rows of the current key so far.
#[derive(Debug)]
pub(super) struct Group {
    layout: Layout,
    payload: Payload,
    /// The rows of a key fold into one row, since no more rows can sort between them.
    pub(super) folds: bool,
    key: Option<Vec<u8>>,
    /// The columns with known values, as a bit mask.
    known: Vec<u8>,
    /// No later row of the key is needed.
    is_closed: bool,
    /// The folded row while older rows may still fill it, else empty.
    row: Vec<u8>,
    scratch: Vec<u8>,
}

/// What a row adds to the earlier rows of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    First,
    Needed,
    Tombstone,
    NotNeeded,
}

impl Group {
    /// Returns the group of a builder under [`Rule::LastKnown`].
    pub(super) fn of(layout: &Layout) -> Option<Box<Self>> {
        (layout.rule() == Rule::LastKnown).then(|| {
            Box::new(Self {
                layout: layout.clone(),
                payload: Payload::of(layout),
                folds: false,
                key: None,
                known: Vec::new(),
                is_closed: false,
                row: Vec::new(),
                scratch: Vec::new(),
            })
        })
    }

    /// Forgets the current key.
    pub(super) fn restart(&mut self) {
        self.key = None;
    }

    fn has(&self, row: &[u8]) -> bool {
        self.key.as_ref().is_some_and(|key| row.starts_with(key))
    }

    /// Adds a row and returns its role.
    fn add(&mut self, row: &[u8]) -> Role {
        let is_first = !self.has(row);
        if !is_first && self.is_closed {
            return Role::NotNeeded;
        }
        let is_tombstone = self.payload.is_tombstone(row);
        let role = if is_first {
            row[..key_len(&self.layout, row)].clone_into(self.key.get_or_insert_default());
            self.payload.note(row, &mut self.known);
            Role::First
        } else if is_tombstone {
            Role::Tombstone
        } else {
            self.payload.note(row, &mut self.scratch);
            let mut is_needed = false;
            for (known, next) in self.known.iter_mut().zip(&self.scratch) {
                is_needed |= next & !*known != 0;
                *known |= next;
            }
            if is_needed { Role::Needed } else { Role::NotNeeded }
        };
        self.is_closed = is_tombstone || self.payload.is_all(&self.known);
        role
    }

    /// Fills unknown columns of the folded row from an older row.
    fn fill(&mut self, older: &[u8]) {
        self.payload.fill(&self.row, older, &mut self.scratch);
        std::mem::swap(&mut self.row, &mut self.scratch);
    }
}

impl Builder {
    /// Folds the rows of each key into one from now on: all rows are present, and readers of the
    /// chunks need the folded rows.
    pub(crate) fn fold_keys(&mut self) {
        if let Some(group) = &mut self.group {
            group.folds = true;
        }
    }

    /// Appends the needed rows of `rows`, or the folded rows.
    pub(super) fn push_known<'a>(
        &mut self,
        mut rows: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let pushed = rows.try_for_each(|row| self.push_one(&mut group, row));
        self.group = Some(group);
        pushed
    }

    fn push_one(&mut self, group: &mut Group, row: &[u8]) -> Result<()> {
        match group.add(row) {
            Role::NotNeeded => Ok(()),
            _ if !group.folds => self.output.append(row),
            Role::First => {
                self.end(group)?;
                if group.is_closed {
                    return self.append_winner(group.payload.is_tombstone(row), row);
                }
                group.row.extend_from_slice(row);
                Ok(())
            }
            Role::Needed => {
                group.fill(row);
                Ok(())
            }
            Role::Tombstone => Ok(()),
        }
    }

    /// Appends the folded row of the current key.
    fn end(&mut self, group: &mut Group) -> Result<()> {
        if !group.row.is_empty() {
            // A tombstone is appended at once, so the row here is not one.
            self.append_winner(false, &group.row)?;
            group.row.clear();
        }
        Ok(())
    }

    /// Appends the pending folded row.
    pub(crate) fn end_key(&mut self) -> Result<()> {
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let ended = self.end(&mut group);
        self.group = Some(group);
        ended
    }

    /// Notes the rows of one run, which the caller appends unchanged. Appends needed rows at the
    /// start with the current key. Returns the remaining range.
    pub(super) fn start_known_run(
        &mut self,
        rows: View<'_>,
        mut range: Range<usize>,
    ) -> Result<Range<usize>> {
        let Some(mut group) = self.group.take() else { return Ok(range) };
        let mut pushed = Ok(());
        while pushed.is_ok() && !range.is_empty() && group.has(rows.row(range.start)) {
            pushed = self.push_one(&mut group, rows.row(range.start));
            range.start += 1;
        }
        if !range.is_empty() {
            let last = rows.row(range.end - 1);
            let key = &last[..key_len(&self.layout, last)];
            let of_last = rows.partition_point(range.clone(), |row| row < key);
            (of_last..range.end).for_each(|index| _ = group.add(rows.row(index)));
        }
        self.group = Some(group);
        pushed.map(|()| range)
    }

    /// Returns the needed rows of `rows`, which are all rows of a key so far.
    pub(crate) fn needed<'a>(&mut self, rows: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
        let Some(group) = &mut self.group else { return Vec::new() };
        group.restart();
        let needed = rows.filter(|row| group.add(row) != Role::NotNeeded);
        let needed = needed.map(<[u8]>::to_vec).collect();
        group.restart();
        needed
    }
}
