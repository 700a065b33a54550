//! Maxwell, a daemon that reads MySQL's binlog: the row in `data`, the old values of changed
//! columns in `old`.

use super::event::{Carries, Members, What, event as put, without};
use super::json::{by_name, object, text};
use super::log::Raw;
use crate::preset::Meaning;

pub(super) fn event(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    let word = text(record, "type").ok_or("holds no change: it has no `type`")?;
    let what = raw.what(&word, "type", "Maxwell", &KNOWN)?;
    let (within, table) = (text(record, "database"), text(record, "table"));
    if what == Some(Meaning::Ignore) || !raw.tables.wants(within.as_deref(), table.as_deref())? {
        return Ok(());
    }
    let about = without(record, "data old");
    let data = object(record, "data");
    match what {
        Some(Meaning::Insert | Meaning::Snapshot) => {
            put(out, &about, data.as_deref(), None, Carries::All)
        }
        Some(Meaning::Update) => {
            let before =
                data.as_deref().zip(object(record, "old")).map(|(new, old)| before(new, &old));
            put(out, &about, data.as_deref(), before.as_deref(), Carries::Some);
        }
        _ => put(out, &about, None, data.as_deref(), Carries::All),
    }
    Ok(())
}

const KNOWN: [(&str, What); 5] = [
    ("insert bootstrap-insert", Some(Meaning::Insert)),
    ("update", Some(Meaning::Update)),
    ("delete", Some(Meaning::Delete)),
    ("table-drop database-drop", None),
    (
        "bootstrap-start bootstrap-complete heartbeat table-create table-alter database-create \
         database-alter",
        Some(Meaning::Ignore),
    ),
];

/// Returns the row before an update: the new row with the old values put in.
pub(super) fn before<'a>(new: &Members<'a>, old: &Members<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    let old = by_name(old);
    let was = |(name, value): &(&'a [u8], &'a [u8])| (*name, *old.get(name).unwrap_or(value));
    new.iter().map(was).collect()
}
