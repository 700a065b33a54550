//! The positions of the rows with changed keys, for tables that hide rows in place of rewriting files.
//!
//! Each change takes 9 bytes of memory, and hidden rows the size of their bitmap.

use std::sync::Mutex;

use roaring::RoaringTreemap;

use super::changes::Changes;
use super::extents::{Extents, TableFile};
use super::figures::{Applied, Counts, HiddenRows, WriteMode};
use super::find::{Hit, Search, repeated};
use super::homes::Homes;
use super::table::Table;
use crate::error::{Error, Result};
use crate::lock::{lock, unlocked};
use crate::watch::Watch;

/// What is known of a change: whether it is a delete, whether a row has its key, and whether this row is
/// newer than the change.
const DELETE: u8 = 1;
const FOUND: u8 = 2;
const STALE: u8 = 4;

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

impl Found {
    /// Finds the rows of changed keys on some threads; `None` if their files are to be rewritten by
    /// `mode`.
    pub(super) fn of(
        mode: WriteMode,
        table: &Table,
        changes: &Changes,
        threads: usize,
        watch: &Watch,
    ) -> Result<Option<Self>> {
        if mode == WriteMode::Copy {
            return Ok(None);
        }
        let files = Extents::by_footers(table, watch)?;
        let mut states = Vec::new();
        let each = |is_delete| states.push(if is_delete { DELETE } else { 0 });
        let search = Search::of(table, changes, &files, watch, each)?;
        if mode == WriteMode::Auto && !writes_less(&search, table, changes.len()) {
            return Ok(None);
        }
        let rows = vec![RoaringTreemap::new(); table.names.len()];
        let shared = Mutex::new((states, rows));
        search.run(threads, &|place, hits| {
            let file = &files[place];
            let hidden = table.hidden.of_file(file.ordinal);
            let (states, rows) = &mut *lock(&shared);
            for Hit { change, row, is_stale } in hits.drain(..) {
                if hidden.is_some_and(|hidden| hidden.contains(row)) {
                    continue;
                }
                let state = &mut states[change as usize];
                if *state & FOUND > 0 {
                    return Err(repeated(table, file));
                }
                *state |= FOUND;
                match is_stale {
                    true => *state |= STALE,
                    false => drop(rows[file.ordinal].insert(row)),
                }
            }
            Ok(())
        })?;
        let (states, rows) = unlocked(shared);
        let (mut counts, mut homes) = (Counts::default(), Homes::new(changes.len(), true));
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
        let groups = files.iter().map(|file| file.groups.len()).sum();
        Ok(Some(Self { counts, rows, homes: Some(homes), groups }))
    }

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

/// Returns true if new rows and positions take fewer bytes than the files with changes, of which one
/// grows at least, if rows have the usual size.
fn writes_less(search: &Search<'_>, table: &Table, changes: u64) -> bool {
    let bytes = |file: &TableFile| table.inputs.files()[file.ordinal].bytes.unwrap_or(0);
    let all: u64 = search.files.iter().map(bytes).sum();
    let rows: u64 = search.files.iter().map(TableFile::rows).sum();
    let row = all.checked_div(rows).unwrap_or(0) + size_of::<u16>() as u64;
    let files = search.files.iter().enumerate().filter(|(place, _)| search.may_have(*place));
    let copied: u64 = files.map(|(_, file)| bytes(file)).sum();
    changes.saturating_mul(row) < copied.max(all / search.files.len().max(1) as u64)
}
