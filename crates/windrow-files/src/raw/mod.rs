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
