//! Change logs as their producers write them: JSON in which the rows must be looked for. Each record is turned
//! into events of one form, in the text, so that all that follows is as for any NDJSON.
//!
//! ```text
//!  wal2json 2   {"action":"U","lsn":..,"columns":[{"name":"id","value":1}],"identity":[..]}
//!  wal2json 1   {"xid":..,"change":[{"kind":"update","columnnames":["id"],"columnvalues":[1],"oldkeys":..}, ..]}
//!  Maxwell      {"type":"update","table":..,"data":{"id":1},"old":{..}}
//!  Canal        {"type":"UPDATE","table":..,"data":[{"id":"1"}],"old":[{..}]}
//!  Debezium of MongoDB   {"op":"u","after":"{\"_id\":{\"$oid\":..}}",..}
//!        |
//!        v
//!  {"action":"U","lsn":..,"after":{"id":1},"before":{..},"__windrow_carried":"1"}
//! ```
//!
//! Values are copied as they stand. What is said about a table that is not wanted, or is no change of a row
//! (begin, commit, messages, statements that define tables), is left out; a truncate stays, to be refused. The
//! events of a record stand on its line, and blank lines follow if it had several: line numbers stay. What is no
//! object of JSON is passed on for the decoder to refuse.
//!
//! # Known limits
//!
//! A record is held as a whole, but for a long transaction in format 1 of wal2json; where that has several changes on a
//! line, lines behind it have larger numbers than in the file.

mod array;
mod canal;
mod debezium;
mod dms;
mod json;
mod maxwell;
mod records;
mod tables;
mod tell;
mod transaction;
mod wal2json;

use std::io::Read;
use std::sync::Arc;

pub(crate) use self::array::{Elements, is_array};
pub(crate) use self::dms::{FullLoad, first_fields};
use self::json::Object;
pub(crate) use self::records::Fault;
use self::records::Records;
use self::tables::Tables;
pub(crate) use self::tell::{Told, tell};
use crate::rewrite::Rewritten;

/// How many columns of its table an update has, and behind that, each after a NUL, the names of those that are null:
/// other columns that have no value are not carried. Empty for changes that carry all.
pub(crate) const CARRIED: &str = "__windrow_carried";

/// The members of an object: names and values as they stand.
type Members<'a> = [(&'a [u8], &'a [u8])];

/// A row that was put together: the names of its columns and their values.
type Row<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Who wrote the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Producer {
    /// Of either format, or flattened.
    Wal2json,
    Maxwell,
    Canal,
    /// With rows as text, or of tables some of which are not wanted.
    Debezium,
}

/// How records are turned into events.
pub(crate) struct Raw {
    producer: Producer,
    tables: Tables,
}

impl Raw {
    /// The events in `text`.
    pub(crate) fn events(self: &Arc<Self>, text: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(Rewritten::new(text, Records::new(Arc::clone(self))))
    }

    /// Appends the events of a record; `Err` with what is wrong with it.
    fn record(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let Some(members) = json::members(text) else {
            out.extend_from_slice(text);
            return Ok(());
        };
        match self.producer {
            Producer::Wal2json => wal2json::events(&members, &self.tables, out),
            Producer::Maxwell => maxwell::event(&members, &self.tables, out),
            Producer::Canal => canal::events(&members, &self.tables, out),
            Producer::Debezium => debezium::event(&members, &self.tables, out),
        }
    }
}

/// Which columns a change has, of those that its table has.
#[derive(Clone, Copy)]
enum Carries {
    /// All of them, by the nature of the change: what is not there is null.
    All,
    /// As many as there are: an update may leave out what it does not change.
    Some,
}

/// Writes an event: what `about` says, and the row after and before the change as objects of JSON.
fn event(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<&[(&[u8], &[u8])]>,
    before: Option<&[(&[u8], &[u8])]>,
    carries: Carries,
) {
    let mut event = Object::begin(out);
    for (name, value) in about {
        event.put(name, value);
    }
    // Both are there in every event, so that the columns of one tell those of the other.
    for (name, row) in [("after", after), ("before", before)] {
        let out = event.member(name.as_bytes());
        match row {
            None => out.extend_from_slice(b"null"),
            Some(row) => {
                let mut object = Object::begin(out);
                row.iter().for_each(|(name, value)| object.put(name, value));
                object.end();
            }
        }
    }
    put_carried(&mut event, carries, after);
    event.end();
    out.push(b' ');
}

/// Says which columns of `row` a change carries.
fn put_carried(event: &mut Object<'_>, carries: Carries, row: Option<&Members<'_>>) {
    let out = event.member(CARRIED.as_bytes());
    out.push(b'"');
    if let (Carries::Some, Some(row)) = (carries, row) {
        out.extend_from_slice(row.len().to_string().as_bytes());
        for (name, _) in row.iter().filter(|(_, value)| value.trim_ascii() == b"null") {
            out.extend_from_slice(b"\\u0000");
            out.extend_from_slice(name);
        }
    }
    out.push(b'"');
}

/// Of the members those that are none of `names`.
fn without<'a>(members: &Members<'a>, names: &[&str]) -> Vec<(&'a [u8], &'a [u8])> {
    let kept = |name: &[u8]| !names.iter().any(|other| other.as_bytes() == name);
    members.iter().filter(|(name, _)| kept(name)).copied().collect()
}
