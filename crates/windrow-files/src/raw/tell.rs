//! Detects the producer of a log from the log's first records.

use std::sync::Arc;

use super::decimals::has_decimals_in;
use super::event::Members;
use super::json::{Scan, find, list, members, object};
use super::log::{Asked, Raw};
use super::transaction::first_change;
use crate::settings::Preset;

/// Records examined at most: the begin record of a transaction identifies no producer.
const LOOKED_AT: usize = 100;

/// Evidence for Debezium events that need no rewriting.
const EVENTS: &str = "`op`, `after` and `before`";
/// Evidence for Debezium events that the caller alone names so.
const ANY_EVENTS: &str = "its events";

/// A detected format.
#[derive(Clone)]
pub(crate) struct Told {
    /// The preset of the format.
    pub(crate) preset: Preset,
    /// The evidence, for messages.
    pub(crate) by: String,
    /// The converter of the records; `None` if type inference can read the records unchanged.
    pub(crate) raw: Option<Arc<Raw>>,
}

/// Detects the producer from `head`, the first bytes of a JSON input. The caller names the format
/// `preset`.
pub(crate) fn tell(preset: Preset, asked: &Asked, head: &[u8]) -> Option<Told> {
    let records = records(head);
    let found = records.iter().find_map(|record| producer(preset, &members(record)?));
    let found = found.or_else(|| match records.is_empty() {
        true => producer(preset, &members(&first_change(head)?)?),
        false => None,
    });
    let (preset, by) = match found {
        Some(found) => found,
        // Without evidence the preset decides, and records of other producers are refused later.
        None if preset == Preset::Debezium => (preset, ANY_EVENTS),
        None if preset.is_raw() && preset != Preset::Auto => (preset, "its records"),
        None => return None,
    };
    let is_as_it_is = asked.tables.is_empty() && !asked.is_foreign();
    let needs_no_rewriting = is_as_it_is && [EVENTS, ANY_EVENTS].contains(&by);
    let raw = (!needs_no_rewriting).then(|| Arc::new(Raw::new(Some(preset), asked)));
    Some(Told { preset, by: by.to_owned(), raw })
}

/// Splits off the records that `head` holds completely.
fn records(mut head: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while records.len() < LOOKED_AT
        && let Some(start) = head.iter().position(|byte| *byte == b'{')
    {
        let (record, rest, ends) = Scan::default().split(&head[start..]);
        if !ends {
            break;
        }
        records.push(record);
        head = rest;
    }
    records
}

/// Returns the producer of `record` and the evidence.
fn producer(preset: Preset, record: &Members<'_>) -> Option<(Preset, &'static str)> {
    let may_be = |other| preset == Preset::Auto || preset == other;
    let has = |name| find(record, name).is_some();
    let list_in = |name| list(record, name).is_some();
    if may_be(Preset::Wal2json) {
        if has("action") && (list_in("columns") || list_in("identity")) {
            return Some((Preset::Wal2json, "format 2, `columns` and `identity`"));
        }
        let is_change =
            |change: &&[u8]| members(change).is_some_and(|change| find(&change, "kind").is_some());
        if list(record, "change").is_some_and(|changes| changes.iter().all(is_change)) {
            return Some((Preset::Wal2json, "format 1, `change`"));
        }
    }
    if may_be(Preset::Debezium) {
        let payload = object(record, "payload");
        let event = payload.as_deref().unwrap_or(record);
        let image = |name| find(event, name);
        if find(event, "op").is_some() && (image("after").is_some() || image("before").is_some()) {
            let is_text = |name| image(name).is_some_and(|image| image.starts_with(b"\""));
            let schema = find(record, "schema");
            let by = match is_text("after") || is_text("before") {
                true => "documents as text in `after` and `before`",
                false if schema.is_some_and(has_decimals_in) => {
                    "its events, with decimals in `schema`"
                }
                false => EVENTS,
            };
            // Only an event with a row shows whether rows are text.
            let no_row = |name| image(name).is_none_or(|image| image == b"null");
            return (!(no_row("after") && no_row("before"))).then_some((Preset::Debezium, by));
        }
    }
    if may_be(Preset::GoldenGate) && has("op_type") {
        if object(record, "after").is_some() || object(record, "before").is_some() {
            return Some((Preset::GoldenGate, "`op_type`, `after` and `before`"));
        }
        if has("op_ts") && has("pos") {
            return Some((Preset::GoldenGate, "`op_type`, `op_ts` and `pos`"));
        }
    }
    if may_be(Preset::Cockroach) && has("after") && !has("op") && (has("updated") || has("key")) {
        return Some((Preset::Cockroach, "`after` and `updated`"));
    }
    if may_be(Preset::Canal) && has("type") && list_in("data") && (has("isDdl") || has("mysqlType"))
    {
        return Some((Preset::Canal, "`type`, `data` and `isDdl`"));
    }
    if may_be(Preset::Maxwell)
        && has("type")
        && has("database")
        && has("table")
        && object(record, "data").is_some()
    {
        return Some((Preset::Maxwell, "`type`, `table` and `data`"));
    }
    None
}
