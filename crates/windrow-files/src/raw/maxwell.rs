//! Maxwell, a daemon that reads MySQL's binlog: the row in `data`, what an update changed in `old`.

use super::json::{by_name, find, object, string};
use super::tables::Tables;
use super::{Carries, Members, without};

fn event_type(record: &Members<'_>) -> Option<String> {
    find(record, "type").and_then(string).map(|kind| kind.to_ascii_lowercase())
}

pub(super) fn event(
    record: &Members<'_>,
    tables: &Tables,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let kind = event_type(record).ok_or("holds no change: it has no `type`")?;
    let text = |name| find(record, name).and_then(string);
    if !tables.wants(text("database").as_deref(), text("table").as_deref())? {
        return Ok(());
    }
    let about = without(record, &["data", "old"]);
    let data = object(record, "data");
    match kind.as_str() {
        "insert" | "bootstrap-insert" => {
            super::event(out, &about, data.as_deref(), None, Carries::All);
        }
        "update" => {
            let before =
                data.as_deref().zip(object(record, "old")).map(|(new, old)| before(new, &old));
            super::event(out, &about, data.as_deref(), before.as_deref(), Carries::Some);
        }
        // Rows are gone that are not listed.
        "delete" | "table-drop" | "database-drop" => {
            super::event(out, &about, None, data.as_deref(), Carries::All);
        }
        "bootstrap-start" | "bootstrap-complete" | "heartbeat" | "table-create" | "table-alter"
        | "database-create" | "database-alter" => {}
        other => return Err(format!("`type` is {other:?}, which Maxwell does not write")),
    }
    Ok(())
}

/// The row before an update: what it is now, but for what it was then.
pub(super) fn before<'a>(new: &Members<'a>, old: &Members<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    let old = by_name(old);
    let was = |(name, value): &(&'a [u8], &'a [u8])| (*name, *old.get(name).unwrap_or(value));
    new.iter().map(was).collect()
}
