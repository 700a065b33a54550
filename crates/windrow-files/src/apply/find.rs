//! The search for the files of changes in a table whose files overlap in their keys.
//!
//! The key columns of every file are read, sorted, and merged with the changes.

use std::cmp::Ordering;

use super::changes::Changes;
use super::extents::Extents;
use super::plan::NONE;
use super::table::Table;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::watch::Watch;

/// Finds the file with the key of each change.
pub(super) fn homes(
    table: &Table,
    changes: &Changes,
    extents: &Extents,
    limits: &Limits,
    watch: &Watch,
) -> Result<Vec<u32>> {
    let name = |place: u32| &table.inputs.files()[extents.files[place as usize].ordinal].name;
    let mut homes = vec![NONE; usize::try_from(changes.len()).unwrap_or(usize::MAX)];
    for (file, place) in extents.files.iter().zip(0_u32..) {
        if file.groups.is_empty() {
            continue;
        }
        let mut cursor = changes.all(table, watch);
        let rows = table.sorted(table.one(file.ordinal, true)?, limits, watch)?;
        for keys in table.keys_in(rows) {
            watch.pause()?;
            for key in &keys? {
                while cursor.settle()? {
                    let Some((changes, row)) = cursor.row() else { break };
                    match changes.keys.row(row).as_ref().cmp(key.as_ref()) {
                        Ordering::Less => cursor.advance(),
                        Ordering::Greater => break,
                        Ordering::Equal => {
                            let home = &mut homes[changes.first as usize + row];
                            if *home != NONE && *home != place {
                                return Err(repeated(name(*home), name(place)));
                            }
                            *home = place;
                            cursor.advance();
                        }
                    }
                }
            }
        }
    }
    Ok(homes)
}

fn repeated(one: &str, other: &str) -> Error {
    Error::data(format!(
        "{one} and {other} have a row of the same key, and one of the changes has this key, too; keep one row \
         of each key first, with `dedupe`"
    ))
}
