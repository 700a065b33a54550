//! Debezium's events whose text must be rewritten: events of MongoDB, whose rows are documents in
//! strings; streams of several tables; and decimals declared by a schema in the record, whose
//! values are bytes.

use super::decimals::Decimals;
use super::event::{Carries, Members, put_carried};
use super::extended::plain;
use super::json::{ObjectWriter, find, members, object, string, text};
use super::log::Raw;
use crate::preset::Meaning;

pub(super) fn event(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    let payload = object(record, "payload");
    let inner = payload.as_deref().unwrap_or(record);
    let op_column = raw.asked.op_column.as_deref().unwrap_or("op");
    let word = text(inner, op_column).unwrap_or_default();
    let said = raw.said(&word).filter(|_| !word.is_empty());
    if said == Some(Meaning::Ignore) {
        return Ok(());
    }
    let is_tombstone = inner.iter().all(|(name, value)| *value == b"null" || *name == b"schema");
    if !is_tombstone && !is_wanted(inner, raw)? {
        return Ok(());
    }
    let decimals = raw.decimals.of(find(record, "schema").filter(|_| payload.is_some()));
    if raw.declared.is_open() {
        decimals.declare(inner, &raw.declared);
    }
    // Debezium's events have all columns. Events of other producers get the list of their columns.
    let carries = raw.asked.is_foreign().then(|| match said {
        Some(Meaning::Update) => Carries::Some,
        None if ["u", "update"].contains(&word.to_ascii_lowercase().as_str()) => Carries::Some,
        _ => Carries::All,
    });
    let after = object(inner, "after");
    // Writes an event, with rows in place of the documents in strings.
    let put_event = |event: &Members<'_>, out: &mut Vec<u8>| {
        let mut object = ObjectWriter::begin(out);
        for (name, value) in event {
            match *name {
                b"after" | b"before" => image(value, &decimals, object.member(name)),
                _ => object.put(name, value),
            }
        }
        if let Some(carries) = carries {
            put_carried(&mut object, carries, after.as_deref());
        }
        object.end();
    };
    match &payload {
        None => put_event(record, out),
        Some(payload) => {
            let mut object = ObjectWriter::begin(out);
            for (name, value) in record {
                match *name {
                    b"payload" => put_event(payload, object.member(name)),
                    _ => object.put(name, value),
                }
            }
            object.end();
        }
    }
    out.push(b' ');
    Ok(())
}

/// Returns true if the event's table is wanted. An event names its table in `source`, a flattened
/// event in `__table`.
fn is_wanted(event: &Members<'_>, raw: &Raw) -> Result<bool, String> {
    if raw.asked.tables.is_empty() {
        return Ok(true);
    }
    let source = object(event, "source").unwrap_or_default();
    let first = |of: &Members<'_>, names: &[&str]| {
        names.iter().find_map(|name| text(of, name).filter(|text| !text.is_empty()))
    };
    let table = first(&source, &["table", "collection"])
        .or_else(|| first(event, &["__table", "__collection", "__source_table"]));
    let within = first(&source, &["schema", "db"])
        .or_else(|| first(event, &["__schema", "__db", "__source_schema", "__source_db"]));
    // Messages, transactions and heartbeats concern no table.
    let op = text(event, "op");
    if table.is_none() && op.as_deref().is_none_or(|op| op == "m") {
        return Ok(false);
    }
    raw.tables.wants(within.as_deref(), table.as_deref())
}

fn image(value: &[u8], decimals: &Decimals, out: &mut Vec<u8>) {
    if !decimals.columns.is_empty()
        && let Some(row) = members(value)
    {
        let mut object = ObjectWriter::begin(out);
        for (name, value) in &row {
            match decimals.number(name, value) {
                Some(number) => object.put(name, number.as_bytes()),
                None => object.put(name, value),
            }
        }
        object.end();
        return;
    }
    let document = if value.starts_with(b"\"") { string(value) } else { None };
    match document {
        Some(document) if members(document.as_bytes()).is_some() => {
            plain(document.as_bytes(), out);
        }
        _ => out.extend_from_slice(value),
    }
}
