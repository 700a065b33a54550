//! Decoders for change logs in JSON whose rows must first be extracted. A decoder rewrites each
//! record, as text, into events of one common form, and the usual NDJSON path reads the events.
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
//! Values are copied unchanged. Records about unwanted tables are dropped, and so are records
//! without a row change (begin, commit, messages, DDL statements); a truncate is kept, for a later
//! stage to refuse. All events of a record share one line, and blank lines pad a record of several
//! lines, so line numbers stay correct. Text outside of JSON objects is passed on for the NDJSON
//! decoder to refuse.
//!
//! # Known limits
//!
//! Each record is held in memory as a whole, except long transactions in format 1 of wal2json.
//! Where such a transaction has several changes on a line, the line numbers after it are larger
//! than in the file.

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

/// The column that describes an update: the number of columns in the update's row, then, each after
/// a NUL, the names of the null columns. Columns without a value are not carried. Empty for changes
/// with all columns.
pub(crate) const CARRIED: &str = "__windrow_carried";

/// The members of an object: names and values as slices of the text.
type Members<'a> = [(&'a [u8], &'a [u8])];

/// An assembled row: the names of its columns and their values.
type Row<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The producer of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Producer {
    /// In format 1, format 2, or flattened.
    Wal2json,
    Maxwell,
    Canal,
    /// With rows as text, decimals as bytes, a choice of tables, or the operations of another
    /// producer.
    Debezium,
    GoldenGate,
    Cockroach,
    /// Not a log: records in MongoDB's extended JSON.
    Extended,
}

/// Settings of the caller in addition to the preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Names and patterns of the wanted tables.
    pub(crate) tables: Vec<String>,
    /// Meanings of operation words.
    pub(crate) words: OpMap,
    /// The column of operations, if it differs from the format's.
    pub(crate) op_column: Option<String>,
    /// The columns of the key.
    pub(crate) key: Vec<String>,
}

impl Asked {
    /// Returns true if a producer other than Debezium writes Debezium's event form; such events may
    /// lack columns.
    fn is_foreign(&self) -> bool {
        let is_known = |word: &str| DEBEZIUM.iter().any(|known| known.eq_ignore_ascii_case(word));
        let rows = [Meaning::Insert, Meaning::Update];
        let mut words = self.words.0.iter().filter(|(_, meaning)| rows.contains(meaning));
        self.op_column.as_ref().is_some_and(|name| name != "op")
            || words.any(|(word, _)| !is_known(word))
    }
}

/// The operation words of Debezium and of tools in its ecosystem.
const DEBEZIUM: [&str; 6] = ["c", "r", "u", "d", "true", "false"];

/// Converts records to events.
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

    /// Returns a converter for records in MongoDB's extended JSON, which are no log.
    pub(crate) fn extended() -> Self {
        Self::new(Producer::Extended, &Asked::default())
    }

    /// Returns the column types declared by the records read so far.
    pub(crate) fn declared(&self) -> HashMap<String, DataType> {
        self.declared.types()
    }

    /// Stops collecting declared types, once the types of all inputs are known.
    pub(crate) fn settle(&self) {
        self.declared.settle();
    }

    /// Returns an error if a wanted table had no record. To be called after the last record.
    pub(crate) fn check(&self) -> Done<()> {
        self.tables.check()
    }

    /// Returns the caller's meaning of an operation word.
    fn said(&self, word: &str) -> Option<Meaning> {
        self.asked.words.meaning(word)
    }

    /// Returns a reader of the events in `text`.
    pub(crate) fn events(self: &Arc<Self>, text: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(Rewritten::new(text, Records::new(Arc::clone(self))))
    }

    /// Appends the events of a record. `Err` holds the description of a malformed record.
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

/// The effect of a record on its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The row exists afterwards; the record has all columns.
    Insert,
    /// The row exists afterwards; the record may lack unchanged columns.
    Update,
    Delete,
    /// An unlisted set of rows is gone.
    Gone,
    /// The record concerns no row.
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

/// Formats the error for a word outside the producer's vocabulary.
fn unknown(word: &str, column: &str, producer: &str) -> String {
    format!(
        "`{column}` is {word:?}, which {producer} does not write; say what it means with {}",
        Setting::OpMap
    )
}

/// The columns present in a change.
#[derive(Clone, Copy)]
enum Carries {
    /// All of the table's columns: a missing column is null.
    All,
    /// Any number: an update may leave out unchanged columns.
    Some,
}

/// Writes an event: the members in `about`, then the row after and before the change as JSON
/// objects.
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
    // Every event has both, so that each one reveals the columns of the other.
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

/// Writes the event of a change with these rows. Columns found only in `before` did not change.
fn images(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<Row<'_>>,
    before: Option<Row<'_>>,
    what: What,
) {
    let (after, before) = match (after, before) {
        // The caller may map a word to "delete" whose changes carry the deleted row in `after`.
        (Some(row), None) if what == What::Delete => (None, Some(row)),
        (after, before) => (after.map(|after| filled(after, before.as_deref())), before),
    };
    event(out, about, after.as_deref(), before.as_deref(), what.carries());
}

/// Adds to the row after a change the columns found only in `before`: producers leave an unchanged
/// large value out of `after`, and with the replica identity "full" `before` has the value.
fn filled<'a>(mut after: Row<'a>, before: Option<&Members<'a>>) -> Row<'a> {
    if let Some(before) = before {
        let mut known: HashSet<&[u8]> = after.iter().map(|(name, _)| *name).collect();
        after.extend(before.iter().filter(|(name, _)| known.insert(*name)));
    }
    after
}

/// Writes a row whose columns are members of the record.
fn flattened(record: &Members<'_>, what: What, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    record.iter().for_each(|(name, value)| object.put(name, value));
    put_carried(&mut object, what.carries(), Some(record));
    object.end();
    out.push(b' ');
}

/// Writes the member `CARRIED` for the columns of `row`.
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

/// Returns the members not listed in `names`.
fn without<'a>(members: &Members<'a>, names: &[&str]) -> Vec<(&'a [u8], &'a [u8])> {
    let kept = |name: &[u8]| !names.iter().any(|other| other.as_bytes() == name);
    members.iter().filter(|(name, _)| kept(name)).copied().collect()
}
