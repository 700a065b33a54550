//! Debezium's events where their text must be looked at: those of MongoDB, whose rows are documents in strings,
//! and streams of several tables.
//!
//! A document in MongoDB's extended JSON becomes plain: `{"$oid": "6a"}` is "6a", `{"$numberLong": "5"}` is 5,
//! `{"$date": ..}` what it holds, `{"$numberDecimal": "1.10"}` the text with all its digits. A document that has
//! one field of such a name has no other.

use super::Members;
use super::json::{Object, elements, find, members, object, string};
use super::tables::Tables;

/// How deep a document is looked into, as deep as JSON may be nested.
const DEEPEST: usize = 127;

pub(super) fn event(
    record: &Members<'_>,
    tables: &Tables,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let payload = object(record, "payload");
    let inner = payload.as_deref().unwrap_or(record);
    let is_tombstone = inner.iter().all(|(name, value)| *value == b"null" || *name == b"schema");
    if !is_tombstone && !is_wanted(inner, tables)? {
        return Ok(());
    }
    let mut event = Object::begin(out);
    for (name, value) in record {
        match &payload {
            Some(payload) if *name == b"payload" => rows(payload, event.member(name)),
            None if is_image(name) => image(value, event.member(name)),
            _ => event.put(name, value),
        }
    }
    event.end();
    out.push(b' ');
    Ok(())
}

/// Whether it is about the table that is wanted: an event says so in `source`, a flattened one in `__table`.
fn is_wanted(event: &Members<'_>, tables: &Tables) -> Result<bool, String> {
    if !tables.is_named() {
        return Ok(true);
    }
    let source = object(event, "source").unwrap_or_default();
    let text = |of: &Members<'_>, names: &[&str]| {
        names
            .iter()
            .find_map(|name| find(of, name).and_then(string).filter(|text| !text.is_empty()))
    };
    let table = text(&source, &["table", "collection"])
        .or_else(|| text(event, &["__table", "__collection", "__source_table"]));
    let within = text(&source, &["schema", "db"])
        .or_else(|| text(event, &["__schema", "__db", "__source_schema", "__source_db"]));
    // Messages, transactions and heartbeats are about none.
    let op = find(event, "op").and_then(string);
    if table.is_none() && op.as_deref().is_none_or(|op| op == "m") {
        return Ok(false);
    }
    tables.wants(within.as_deref(), table.as_deref())
}

fn is_image(name: &[u8]) -> bool {
    name == b"after" || name == b"before"
}

/// An event with rows in place of the documents in strings.
fn rows(event: &Members<'_>, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    for (name, value) in event {
        match is_image(name) {
            true => image(value, object.member(name)),
            false => object.put(name, value),
        }
    }
    object.end();
}

fn image(value: &[u8], out: &mut Vec<u8>) {
    let document = if value.starts_with(b"\"") { string(value) } else { None };
    match document {
        Some(document) if members(document.as_bytes()).is_some() => {
            plain(document.as_bytes(), out, 0);
        }
        _ => out.extend_from_slice(value),
    }
}

/// Writes a value of extended JSON as a plain one.
fn plain(value: &[u8], out: &mut Vec<u8>, depth: usize) {
    if depth < DEEPEST
        && let Some(fields) = members(value)
    {
        if let [(name, inner)] = fields[..]
            && let Some(name) = name.strip_prefix(b"$")
            && special(name, inner, out, depth)
        {
            return;
        }
        let mut object = Object::begin(out);
        for (name, value) in fields {
            plain(value, object.member(name), depth + 1);
        }
        object.end();
        return;
    }
    if depth < DEEPEST
        && let Some(values) = elements(value)
    {
        out.push(b'[');
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            plain(value, out, depth + 1);
        }
        out.push(b']');
        return;
    }
    out.extend_from_slice(value.trim_ascii());
}

/// A value that is an object of one member in extended JSON; false if it is another object.
fn special(name: &[u8], value: &[u8], out: &mut Vec<u8>, depth: usize) -> bool {
    match name {
        b"oid" | b"numberDecimal" | b"symbol" | b"uuid" => out.extend_from_slice(value),
        b"numberInt" | b"numberLong" | b"numberDouble" => match string(value) {
            Some(text) if serde_json::from_str::<serde_json::Number>(&text).is_ok() => {
                out.extend_from_slice(text.as_bytes());
            }
            // Not a number, or infinite: JSON has neither.
            _ => out.extend_from_slice(value),
        },
        b"date" => plain(value, out, depth + 1),
        _ => return false,
    }
    true
}
