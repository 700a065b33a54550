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
mod event;
mod extended;
mod goldengate;
mod json;
mod log;
mod maxwell;
mod records;
mod tables;
mod tell;
mod transaction;
mod wal2json;

pub(crate) use self::array::{Elements, is_array};
pub(crate) use self::dms::{FullLoad, first_fields};
pub(crate) use self::event::CARRIED;
pub(crate) use self::log::{Asked, Raw};
pub(crate) use self::records::Fault;
pub(crate) use self::tables::Tables;
pub(crate) use self::tell::{Told, tell};
