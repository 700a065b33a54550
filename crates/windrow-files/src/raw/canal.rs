//! Canal, Alibaba's reader of MySQL's binlog: the rows of a statement in `data`, all values as text, what an
//! update changed in `old`, and MySQL's types in `mysqlType`.
//!
//! Integers and floats become numbers again by these types, so that keys are in the order of numbers; decimals
//! stay text, with all digits.

use std::collections::HashMap;

use super::json::{by_name, elements, find, members, object, string};
use super::maxwell::before;
use super::tables::Tables;
use super::{Carries, Members, event, without};

pub(super) fn events(
    record: &Members<'_>,
    tables: &Tables,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let kind = find(record, "type").and_then(string).ok_or("holds no change: it has no `type`")?;
    let text = |name| find(record, name).and_then(string);
    if !tables.wants(text("database").as_deref(), text("table").as_deref())? {
        return Ok(());
    }
    let about = without(record, &["data", "old", "mysqlType", "sqlType", "sql", "pkNames"]);
    let types = by_name(&object(record, "mysqlType").unwrap_or_default());
    let kind = kind.to_ascii_lowercase();
    match kind.as_str() {
        "insert" | "update" | "delete" => {}
        // Rows are gone that are not listed.
        "truncate" | "erase" => {
            event(out, &about, None, None, Carries::All);
            return Ok(());
        }
        "create" | "alter" | "rename" | "cindex" | "dindex" | "query" => return Ok(()),
        other => return Err(format!("`type` is {other:?}, which Canal does not write")),
    }
    let rows = |name| find(record, name).and_then(elements).unwrap_or_default();
    let (new, old) = (rows("data"), rows("old"));
    if new.is_empty() {
        return Err("the change lacks its rows in `data`".to_owned());
    }
    for (place, row) in new.iter().enumerate() {
        let row = members(row).ok_or("`data` holds what is no object")?;
        let typed = |row: &[(_, _)]| row.iter().map(|column| by_type(*column, &types)).collect();
        let new: Vec<_> = typed(&row);
        match (kind.as_str(), old.get(place).and_then(|old| members(old))) {
            ("delete", _) => event(out, &about, None, Some(&new), Carries::All),
            ("update", Some(old)) => {
                let old: Vec<_> = typed(&old);
                event(out, &about, Some(&new), Some(&before(&new, &old)), Carries::Some);
            }
            ("update", None) => event(out, &about, Some(&new), None, Carries::Some),
            _ => event(out, &about, Some(&new), None, Carries::All),
        }
    }
    Ok(())
}

/// Types of columns, by name.
type Types<'a> = HashMap<&'a [u8], &'a [u8]>;

/// A value without its quotes, if its column is of numbers.
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
