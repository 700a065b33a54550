//! wal2json, PostgreSQL's output plugin: a record a change (format 2), a record a transaction (format 1), or
//! changes that a pipeline has flattened to a column each.

use std::collections::HashSet;

use super::json::{elements, find, members, object, string};
use super::tables::Tables;
use super::{Carries, Members, Row, event, json, put_carried, without};

pub(super) fn events(
    record: &Members<'_>,
    tables: &Tables,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if let Some(changes) = find(record, "change").and_then(elements) {
        let about = without(record, &["change"]);
        return changes.iter().try_for_each(|change| first_format(change, &about, tables, out));
    }
    let Some(action) = find(record, "action").or_else(|| find(record, "kind")) else {
        return Err("holds no change: it has none of `action`, `kind` and `change`".to_owned());
    };
    let action = string(action).unwrap_or_default().to_ascii_lowercase();
    // Begin, commit and messages, of which a flattened log may say nothing but that.
    if ["b", "c", "m", "message"].contains(&action.as_str()) || !is_wanted(record, tables)? {
        return Ok(());
    }
    let carries =
        if ["u", "update"].contains(&action.as_str()) { Carries::Some } else { Carries::All };
    let nested = |name| find(record, name).and_then(elements);
    let (columns, identity) = (nested("columns"), nested("identity"));
    if columns.is_none() && identity.is_none() && !["t", "truncate"].contains(&action.as_str()) {
        flattened(record, carries, out);
        return Ok(());
    }
    let before = identity.map(|columns| row(&columns)).transpose()?;
    let after = columns.map(|columns| row(&columns)).transpose()?;
    let after = after.map(|after| filled(after, before.as_deref()));
    let about = without(record, &["columns", "identity", "pk"]);
    event(out, &about, after.as_deref(), before.as_deref(), carries);
    Ok(())
}

fn is_wanted(record: &Members<'_>, tables: &Tables) -> Result<bool, String> {
    let text = |name| find(record, name).and_then(string);
    tables.wants(text("schema").as_deref(), text("table").as_deref())
}

/// A row that has its columns as members already.
fn flattened(record: &Members<'_>, carries: Carries, out: &mut Vec<u8>) {
    let mut object = json::Object::begin(out);
    record.iter().for_each(|(name, value)| object.put(name, value));
    put_carried(&mut object, carries, Some(record));
    object.end();
    out.push(b' ');
}

/// The columns of `[{"name":"id","type":"integer","value":1}, ..]`.
fn row<'a>(columns: &[&'a [u8]]) -> Result<Row<'a>, String> {
    let column = |text: &&'a [u8]| {
        let column = members(text)?;
        let name = find(&column, "name")?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some((name, find(&column, "value").unwrap_or(b"null")))
    };
    let row: Option<Vec<_>> = columns.iter().map(column).collect();
    row.ok_or_else(|| "a column of the change is no object with a `name`".to_owned())
}

/// The row after a change, with what only the row `before` has: a large value that did not change is left out of the
/// one, and is in the other if the table's replica identity is full.
fn filled<'a>(mut after: Row<'a>, before: Option<&Members<'a>>) -> Row<'a> {
    if let Some(before) = before {
        let mut known: HashSet<&[u8]> = after.iter().map(|(name, _)| *name).collect();
        after.extend(before.iter().filter(|(name, _)| known.insert(*name)));
    }
    after
}

/// A change of a transaction.
fn first_format(
    change: &[u8],
    about: &Members<'_>,
    tables: &Tables,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let change = members(change).ok_or("`change` holds what is no object")?;
    let kind = find(&change, "kind").and_then(string).unwrap_or_default();
    if kind == "message" || !is_wanted(&change, tables)? {
        return Ok(());
    }
    let old = object(&change, "oldkeys");
    let before = match &old {
        Some(old) => named(old, "keynames", "keyvalues")?,
        None => None,
    };
    let after = named(&change, "columnnames", "columnvalues")?;
    let after = after.map(|after| filled(after, before.as_deref()));
    let of_row = [
        "columnnames",
        "columntypes",
        "columntypeoids",
        "columnvalues",
        "columnoptionals",
        "columndefaults",
        "columnpositions",
        "oldkeys",
        "pk",
    ];
    let about = [about, &without(&change, &of_row)].concat();
    let carries = if kind == "update" { Carries::Some } else { Carries::All };
    event(out, &about, after.as_deref(), before.as_deref(), carries);
    Ok(())
}

/// The row whose names and values are in arrays of their own.
fn named<'a>(of: &Members<'a>, names: &str, values: &str) -> Result<Option<Row<'a>>, String> {
    let list = |name| find(of, name).and_then(elements);
    let (Some(keys), Some(found)) = (list(names), list(values)) else { return Ok(None) };
    if keys.len() != found.len() {
        return Err(format!("`{names}` has {} elements, `{values}` {}", keys.len(), found.len()));
    }
    let pair = |(name, value): (&&'a [u8], &'a [u8])| {
        Some((name.strip_prefix(b"\"")?.strip_suffix(b"\"")?, value))
    };
    let row: Option<Vec<_>> = keys.iter().zip(found).map(pair).collect();
    row.map(Some).ok_or_else(|| format!("`{names}` holds what is no name"))
}
