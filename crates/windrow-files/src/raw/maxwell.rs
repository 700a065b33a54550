//! Maxwell, a daemon that reads MySQL's binlog: the row in `data`, the old values of changed
//! columns in `old`.

use super::event::{Carries, Members, What, unknown, without};
use super::json::{by_name, find, object, string};
use super::log::Raw;

pub(super) fn event(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    let text = |name| find(record, name).and_then(string);
    let word = text("type").ok_or("holds no change: it has no `type`")?;
    let what = match raw.said(&word) {
        Some(meaning) => meaning.into(),
        None => {
            known(&word.to_ascii_lowercase()).ok_or_else(|| unknown(&word, "type", "Maxwell"))?
        }
    };
    if what == What::Nothing
        || !raw.tables.wants(text("database").as_deref(), text("table").as_deref())?
    {
        return Ok(());
    }
    let about = without(record, &["data", "old"]);
    let data = object(record, "data");
    match what {
        What::Insert => super::event::event(out, &about, data.as_deref(), None, Carries::All),
        What::Update => {
            let before =
                data.as_deref().zip(object(record, "old")).map(|(new, old)| before(new, &old));
            super::event::event(out, &about, data.as_deref(), before.as_deref(), Carries::Some);
        }
        _ => super::event::event(out, &about, None, data.as_deref(), Carries::All),
    }
    Ok(())
}

fn known(word: &str) -> Option<What> {
    Some(match word {
        "insert" | "bootstrap-insert" => What::Insert,
        "update" => What::Update,
        "delete" => What::Delete,
        "table-drop" | "database-drop" => What::Gone,
        "bootstrap-start" | "bootstrap-complete" | "heartbeat" | "table-create" | "table-alter"
        | "database-create" | "database-alter" => What::Nothing,
        _ => return None,
    })
}

/// Returns the row before an update: the new row with the old values put in.
pub(super) fn before<'a>(new: &Members<'a>, old: &Members<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    let old = by_name(old);
    let was = |(name, value): &(&'a [u8], &'a [u8])| (*name, *old.get(name).unwrap_or(value));
    new.iter().map(was).collect()
}
