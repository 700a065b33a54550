//! Canal, Alibaba's reader of MySQL's binlog: the rows of a statement in `data`, with all values as
//! text; the old values of changed columns in `old`; MySQL's types in `mysqlType`.
//!
//! Integers and floats become numbers again by these types, so that numeric keys sort as numbers.
//! Decimals stay text, with all digits.

use std::collections::HashMap;

use super::event::{Carries, Members, What, event, without};
use super::json::{by_name, list, members, object, string, text};
use super::log::Raw;
use super::maxwell::before;
use crate::preset::Meaning;

pub(super) fn events(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    let word = text(record, "type").ok_or("holds no change: it has no `type`")?;
    let what = raw.what(&word, "type", "Canal", &KNOWN)?;
    let (within, table) = (text(record, "database"), text(record, "table"));
    if what == Some(Meaning::Ignore) || !raw.tables.wants(within.as_deref(), table.as_deref())? {
        return Ok(());
    }
    let about = without(record, "data old mysqlType sqlType sql pkNames");
    if what.is_none() {
        event(out, &about, None, None, Carries::All);
        return Ok(());
    }
    let types = by_name(&object(record, "mysqlType").unwrap_or_default());
    let rows = |name| list(record, name).unwrap_or_default();
    let (new, old) = (rows("data"), rows("old"));
    if new.is_empty() {
        return Err("the change lacks its rows in `data`".to_owned());
    }
    for (place, row) in new.iter().enumerate() {
        let row = members(row).ok_or("`data` holds what is no object")?;
        let typed = |row: &[(_, _)]| row.iter().map(|column| by_type(*column, &types)).collect();
        let new: Vec<_> = typed(&row);
        match (what, old.get(place).and_then(|old| members(old))) {
            (Some(Meaning::Delete), _) => event(out, &about, None, Some(&new), Carries::All),
            (Some(Meaning::Update), Some(old)) => {
                let old: Vec<_> = typed(&old);
                event(out, &about, Some(&new), Some(&before(&new, &old)), Carries::Some);
            }
            (Some(Meaning::Update), None) => event(out, &about, Some(&new), None, Carries::Some),
            _ => event(out, &about, Some(&new), None, Carries::All),
        }
    }
    Ok(())
}

const KNOWN: [(&str, What); 5] = [
    ("insert", Some(Meaning::Insert)),
    ("update", Some(Meaning::Update)),
    ("delete", Some(Meaning::Delete)),
    ("truncate erase", None),
    // TiCDC writes the same format and adds watermarks: all changes up to this time were written.
    ("tidb_watermark create alter rename cindex dindex query", Some(Meaning::Ignore)),
];

/// Types of columns, by name.
type Types<'a> = HashMap<&'a [u8], &'a [u8]>;

/// Removes the quotes of a value if its column is numeric.
fn by_type<'a>((name, value): (&'a [u8], &'a [u8]), types: &Types<'a>) -> (&'a [u8], &'a [u8]) {
    const NUMBERS: [&str; 8] =
        ["tinyint", "smallint", "mediumint", "int", "integer", "bigint", "float", "double"];
    let found = types.get(name).and_then(|kind| string(kind));
    let kind = found.unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let text = value.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    match text {
        Some(text) if NUMBERS.contains(&kind) && is_number(text) => (name, text),
        _ => (name, value),
    }
}

fn is_number(text: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Number>(text).is_ok()
}
