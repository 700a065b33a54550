//! Oracle GoldenGate's JSON: rows in `before` and `after`, or as members of the record.
//!
//! An update has the key and the changed columns, unless GoldenGate is configured to write all
//! columns.

use super::event::{Carries, Members, What, event as put, flattened, images, without};
use super::json::{find, object, text};
use super::log::Raw;
use crate::preset::Meaning;

pub(super) fn event(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    let op_column = raw.asked.op_column.as_deref().unwrap_or("op_type");
    let word = text(record, op_column);
    let word = word.ok_or_else(|| format!("holds no change: it has no `{op_column}`"))?;
    let what = raw.what(&word, op_column, "GoldenGate", &KNOWN)?;
    // The table's name may be preceded by a database and a schema.
    let table = text(record, "table").unwrap_or_default();
    let (within, table) = match table.rsplit_once('.') {
        Some((within, table)) => (Some(within), table),
        None => (None, table.as_str()),
    };
    if what == Some(Meaning::Ignore) || !raw.tables.wants(within, Some(table))? {
        return Ok(());
    }
    if what.is_none() {
        put(out, record, None, None, Carries::All);
        return Ok(());
    }
    if find(record, "after").is_none() && find(record, "before").is_none() {
        flattened(record, what, out);
        return Ok(());
    }
    let row = |name| object(record, name).filter(|row| !row.is_empty());
    let about = without(record, "after before primary_keys");
    images(out, &about, row("after"), row("before"), what);
    Ok(())
}

const KNOWN: [(&str, What); 4] = [
    ("i insert", Some(Meaning::Insert)),
    ("u update", Some(Meaning::Update)),
    ("d delete", Some(Meaning::Delete)),
    ("t truncate", None),
];
