//! CockroachDB's changefeeds: the row is in `after`, which is null for a delete; with the option
//! `diff` the old row is in `before`.
//!
//! ```text
//!  {"after":{"id":1,"v":"a"},"key":[1],"updated":"1532379923319195777.0000000000"}
//!  {"after":null,"before":null,"key":[1],"updated":".."}      the key alone tells which row
//!  {"resolved":"1532379924000000000.0000000000"}              up to this time all was written
//!  {"payload":[{"after":..},{"after":..}],"length":2}         as they are sent to a webhook
//! ```
//! The elements of `key` have no names. The caller names the key's columns, in the same order;
//! `check` compares names and values wherever the record has the row.

use super::event::{Carries, Members, Row, event, without};
use super::json::{find, list, members, object, text};
use super::log::Raw;
use crate::settings::Setting;

pub(super) fn events(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    match list(record, "payload") {
        Some(all) => all.iter().try_for_each(|one| {
            let one = members(one).ok_or("`payload` holds what is no object")?;
            change(&one, raw, out)
        }),
        None => change(record, raw, out),
    }
}

fn change(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    let Some(after) = find(record, "after") else {
        return match find(record, "resolved") {
            Some(_) => Ok(()),
            None => Err("holds no change: it has neither `after` nor `resolved`".to_owned()),
        };
    };
    if !raw.tables.wants(None, text(record, "topic").as_deref())? {
        return Ok(());
    }
    let (after, before) = (members(after), object(record, "before"));
    let key = list(record, "key");
    let key: Option<Row<'_>> = key
        .filter(|key| key.len() == raw.asked.key.len())
        .map(|key| raw.asked.key.iter().map(String::as_bytes).zip(key).collect());
    let before = match (&after, before, &key) {
        (Some(row), before, Some(key)) => {
            check(row, key)?;
            before
        }
        (None, None, Some(key)) => Some(key.clone()),
        (None, None, None) => {
            return Err(format!(
                "a delete lacks its row in `before` (the option diff) and its `key`, as many columns as {} names \
                 (the option key_in_value)",
                Setting::Key
            ));
        }
        (_, before, _) => before,
    };
    let op: &[u8] = if after.is_some() { b"\"u\"" } else { b"\"d\"" };
    let mut about = without(record, "after before key op");
    about.insert(0, (b"op", op));
    event(out, &about, after.as_deref(), before.as_deref(), Carries::All);
    Ok(())
}

/// Returns an error if the key does not match the columns named by the caller.
fn check(row: &Members<'_>, key: &Members<'_>) -> Result<(), String> {
    let other = key.iter().find(|(name, value)| {
        let of_row = row.iter().find(|(column, _)| column == name);
        of_row.is_none_or(|(_, found)| found.trim_ascii() != value.trim_ascii())
    });
    match other {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "`key` has {} where the row has another {:?}; name the columns with {} in the order of the primary key",
            String::from_utf8_lossy(value),
            String::from_utf8_lossy(name),
            Setting::Key
        )),
    }
}
