//! Change logs as their producers write them: JSON in which the rows must be looked for. Each record is turned
//! into events of one form, in the text, so that all that follows is as for any NDJSON.
//!
//! ```text
//!  wal2json 2   {"action":"U","lsn":..,"columns":[{"name":"id","value":1}],"identity":[..]}
//!  wal2json 1   {"xid":..,"change":[{"kind":"update","columnnames":["id"],"columnvalues":[1],"oldkeys":..}, ..]}
//!  Maxwell      {"type":"update","table":..,"data":{"id":1},"old":{..}}
//!  Canal        {"type":"UPDATE","table":..,"data":[{"id":"1"}],"old":[{..}]}
//!  Debezium of MongoDB   {"op":"u","after":"{\"_id\":{\"$oid\":..}}",..}
//!  GoldenGate   {"op_type":"U","table":..,"pos":..,"before":{..},"after":{"ID":1}}
//!  CockroachDB  {"after":{"id":1},"before":null,"updated":".."}
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
mod cockroach;
mod debezium;
mod decimals;
mod declared;
mod dms;
mod extended;
mod goldengate;
mod json;
mod maxwell;
mod records;
mod tables;
mod tell;
mod transaction;
mod wal2json;

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::sync::Arc;

use arrow_schema::DataType;

pub(crate) use self::array::{Elements, is_array};
use self::decimals::Kept;
use self::declared::Declared;
pub(crate) use self::dms::{FullLoad, first_fields};
use self::json::Object;
pub(crate) use self::records::Fault;
use self::records::Records;
pub(crate) use self::tables::Tables;
pub(crate) use self::tell::{Told, tell};
use crate::error::Result as Done;
use crate::preset::{Meaning, OpMap};
use crate::rewrite::Rewritten;
use crate::setting::Setting;

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
    GoldenGate,
    Cockroach,
    /// No log at all: records in MongoDB's extended JSON.
    Extended,
}

/// What the caller says of a log beside its preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The tables that are wanted: names and patterns.
    pub(crate) tables: Vec<String>,
    /// What words of operations mean.
    pub(crate) words: OpMap,
    /// The column of operations, if not that of the format.
    pub(crate) op_column: Option<String>,
    /// The columns of the key.
    pub(crate) key: Vec<String>,
}

impl Asked {
    /// Whether events as Debezium has them are of another producer, who may leave out columns.
    fn is_foreign(&self) -> bool {
        let is_known = |word: &str| DEBEZIUM.iter().any(|known| known.eq_ignore_ascii_case(word));
        let rows = [Meaning::Insert, Meaning::Update];
        let mut words = self.words.0.iter().filter(|(_, meaning)| rows.contains(meaning));
        self.op_column.as_ref().is_some_and(|name| name != "op")
            || words.any(|(word, _)| !is_known(word))
    }
}

/// The words of Debezium, and of those who read its events.
const DEBEZIUM: [&str; 6] = ["c", "r", "u", "d", "true", "false"];

/// How records are turned into events.
pub(crate) struct Raw {
    producer: Producer,
    asked: Asked,
    tables: Tables,
    declared: Declared,
    decimals: Kept,
}

impl Raw {
    fn new(producer: Producer, asked: &Asked) -> Self {
        let (tables, asked) = (Tables::new(asked.tables.clone()), asked.clone());
        Self { producer, asked, tables, declared: Declared::new(), decimals: Kept::default() }
    }

    /// Of records in MongoDB's extended JSON, which are no log.
    pub(crate) fn extended() -> Self {
        Self::new(Producer::Extended, &Asked::default())
    }

    /// The types of the row's columns, as far as the records that were read declare them.
    pub(crate) fn declared(&self) -> HashMap<String, DataType> {
        self.declared.types()
    }

    /// The types of all inputs are known.
    pub(crate) fn settle(&self) {
        self.declared.settle();
    }

    /// Refuses a table that is wanted and was not there, once all records were.
    pub(crate) fn check(&self) -> Done<()> {
        self.tables.check()
    }

    /// What the caller says of a word of operations.
    fn said(&self, word: &str) -> Option<Meaning> {
        self.asked.words.meaning(word)
    }

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
            Producer::Wal2json => wal2json::events(&members, self, out),
            Producer::Maxwell => maxwell::event(&members, self, out),
            Producer::Canal => canal::events(&members, self, out),
            Producer::Debezium => debezium::event(&members, self, out),
            Producer::GoldenGate => goldengate::event(&members, self, out),
            Producer::Cockroach => cockroach::events(&members, self, out),
            Producer::Extended => {
                extended::plain(text, out);
                Ok(())
            }
        }
    }
}

/// What a record does to its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The row is there, and has all columns.
    Insert,
    /// The row is there, and may lack columns that did not change.
    Update,
    Delete,
    /// Rows are gone that are not listed.
    Gone,
    /// It is about no row.
    Nothing,
}

impl What {
    fn carries(self) -> Carries {
        if self == Self::Update { Carries::Some } else { Carries::All }
    }
}

impl From<Meaning> for What {
    fn from(meaning: Meaning) -> Self {
        match meaning {
            Meaning::Insert | Meaning::Snapshot => Self::Insert,
            Meaning::Update => Self::Update,
            Meaning::Delete => Self::Delete,
            Meaning::Ignore => Self::Nothing,
        }
    }
}

/// A word that a producer does not write.
fn unknown(word: &str, column: &str, producer: &str) -> String {
    format!(
        "`{column}` is {word:?}, which {producer} does not write; say what it means with {}",
        Setting::OpMap
    )
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

/// Writes the event of a change with these rows. What only the row `before` has did not change.
fn images(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<Row<'_>>,
    before: Option<Row<'_>>,
    what: What,
) {
    let (after, before) = match (after, before) {
        // A word that means a delete may be one of a change that has the row where others have theirs.
        (Some(row), None) if what == What::Delete => (None, Some(row)),
        (after, before) => (after.map(|after| filled(after, before.as_deref())), before),
    };
    event(out, about, after.as_deref(), before.as_deref(), what.carries());
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

/// Writes a row that has its columns as members of the record.
fn flattened(record: &Members<'_>, what: What, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    record.iter().for_each(|(name, value)| object.put(name, value));
    put_carried(&mut object, what.carries(), Some(record));
    object.end();
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
