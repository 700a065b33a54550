//! NDJSON: the columns of a file, from a sample of its objects and `schema`.
//!
//! Columns are in the order of the first appearance of their keys. The inference of arrow returns
//! the order of a hash map, which differs in every run, so this module infers the types:
//!
//! ```text
//!  null < anything                  integers -> int64, beyond it uint64 or decimal128(20,0)
//!  integer < float -> float64       object -> struct, key by key
//!  any two scalars else -> utf8     list -> list of what its elements are together
//! ```
//! A list or an object beside a scalar has no type, which is an error.
//!
//! If a column is null in the whole sample, the search for its type continues in the file, if
//! necessary to the end. A stream cannot be searched ahead: the type is then `Null`, and a later
//! value is an error. (Text, which accepts any scalar, would turn 5 into "5".)

pub(crate) mod shapes;

use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema};
use memchr::memmem;

use crate::error::Result;
use crate::input::formats::opening::{InputFormat, Opening};
use crate::input::opened::{About, Opened};
use crate::input::options::ReadOptions;
use crate::input::source::origin::{Origin, SAMPLE_BYTES, Stream};
use crate::input::text::dialect::{Columns, Dialect};
use crate::input::text::file::{TextFile, line_lengths};
use crate::input::text::json::fault as json_text;
use crate::input::text::json::null_lines::without_nulls;
use crate::input::text::named::{Named, NamedTypes, named_within};
use crate::names::{Places, types_of};
use crate::nested::with_type;
use crate::raw::Raw;
use crate::settings::Preset;

use shapes::{Shape, complete_envelope, images, merge_keys};

/// Maximum number of inspected objects of the sample.
const SAMPLE_ROWS: usize = 10_000;

/// Bytes per key, as a column during inference, and in a job.
const KEY_BYTES: u64 = 512;
const JOB_BYTES: u64 = 6 << 10;

/// The message about a file without columns.
const NO_OBJECT: &str = "holds no object to tell the columns; name them with `schema`";

/// The format.
pub(crate) struct Ndjson;

impl InputFormat for Ndjson {
    fn sniff(&self, head: &[u8]) -> bool {
        let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
        matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
    }

    fn is_text(&self) -> bool {
        true
    }

    fn open(&self, origin: Origin, opening: &mut Opening<'_>) -> Result<Opened> {
        open(origin, opening.options, opening.like.reference, opening.named, opening.raw)
    }
}

/// Reads a sample of `origin`. `reference` is the schema of the first input; `None` for the first
/// input itself. Reports the columns of the input to `named`.
fn open(
    origin: Origin,
    options: &ReadOptions,
    reference: Option<&Schema>,
    named: &mut Named,
    raw: Option<&Raw>,
) -> Result<Opened> {
    let of_log = options.op_preset.is_some_and(Preset::is_raw);
    let infer = |named: &mut Named| infer(&origin, options, raw, of_log, named);
    let schema = match reference {
        Some(first) if options.union_by_name || options.wanted.is_some() => {
            let own = infer(named)?;
            let known = types_of(Some(first));
            let field = |own: &Arc<Field>| {
                let known = known(own).filter(|kind| !kind.is_null() && !kind.is_nested());
                with_type(own, known.unwrap_or(own.data_type()).clone())
            };
            Schema::new(own.fields().iter().map(field).collect::<Vec<_>>())
        }
        Some(first) => {
            if !named.is_seen() {
                Keys::of(&origin, of_log, named)?;
            }
            let nullable = |field: &Arc<Field>| Field::clone(field).with_nullable(true);
            Schema::new(first.fields().iter().map(nullable).collect::<Vec<_>>())
        }
        None => infer(named)?,
    };
    let lacks = schema.fields().is_empty().then_some(NO_OBJECT);
    let (line_bytes, longest) = line_lengths(&origin, &origin.head(SAMPLE_BYTES)?, 0);
    let file = TextFile {
        origin: Arc::new(origin),
        dialect: Dialect::Ndjson,
        columns: Columns {
            named: NamedTypes::of(options.schema.as_ref(), &schema, of_log),
            schema: Arc::new(schema),
        },
        line_bytes,
        longest,
        about: About { lacks, ..About::default() },
    };
    Ok(file.opened(options.batch_rows()))
}

/// Returns whether a column mixes numbers or times with objects that are numbers or times in
/// MongoDB's extended JSON.
pub(crate) fn mixes_extended(origin: &Origin) -> Result<bool> {
    let head = origin.head(SAMPLE_BYTES)?;
    if !["\"$number", "\"$date"].iter().any(|name| memmem::find(&head, name.as_bytes()).is_some()) {
        return Ok(false);
    }
    let keys = Keys::of_sample(origin, false);
    Ok(keys.is_ok_and(|(keys, _)| keys.columns.iter().any(|(_, shape)| shape.is_mixed())))
}

/// The keys of a file's objects, as far as inspected.
struct Keys {
    columns: Vec<(String, Shape)>,
    /// Whether the inspected text is blank.
    is_blank: bool,
    /// Whether the objects are events with rows, before and after a change.
    of_log: bool,
}

impl Keys {
    /// Collects the keys of a sample, and of more objects if a type is unknown or a `named` column
    /// is unseen. The rest of a stream is not searched: `named` columns may come later. `of_log`
    /// means that objects are events of a change log, with rows.
    fn of(origin: &Origin, of_log: bool, named: &mut Named) -> Result<Self> {
        let (mut keys, cut) = Self::of_sample(origin, of_log)?;
        keys.are_seen(named);
        // Even the first object may be cut off by the end of the sample.
        let unsure =
            keys.are_unknown(named) || cut && (keys.columns.is_empty() || !named.is_seen());
        if unsure && let Some(text) = origin.again_from(0) {
            keys.look_further(text, named);
            keys.is_blank &= keys.columns.is_empty();
        } else if cut {
            keys.is_blank = false;
            named.leave_open();
        }
        if keys.columns.is_empty() {
            named.leave_open();
        }
        Ok(keys)
    }

    /// Collects the keys in the head of a file. Also returns whether the file continues.
    fn of_sample(origin: &Origin, of_log: bool) -> Result<(Self, bool)> {
        let head = origin.head(SAMPLE_BYTES)?;
        let cut = head.len() == SAMPLE_BYTES;
        let mut sample = Vec::with_capacity(head.len());
        let read = without_nulls(&*head).read_to_end(&mut sample);
        read.map_err(|cause| origin.unreadable(&cause))?;
        let mut columns = Vec::new();
        let mut rows = serde_json::Deserializer::from_slice(&sample).into_iter::<Shape>();
        for row in rows.by_ref().take(SAMPLE_ROWS) {
            match row {
                Ok(Shape::Object(keys)) => merge_keys(&mut columns, keys),
                // A record without a value.
                Ok(Shape::Null) => {}
                Ok(_) => {
                    let first = sample.split(|byte| *byte == b'\n').find_map(json_text::fault);
                    return Err(match first {
                        Some(what) => origin.error(what),
                        None => origin.error("holds a value that is not an object"),
                    });
                }
                Err(fault) if fault.is_eof() && cut => break,
                Err(fault) => {
                    let line = sample.split(|byte| *byte == b'\n').nth(fault.line().max(1) - 1);
                    let what = line.and_then(json_text::fault).unwrap_or(fault.to_string());
                    let error = origin.error(format!("line {}: {what}", fault.line()));
                    return Err(error.at_line(fault.line() as u64));
                }
            }
        }
        complete_envelope(&mut columns, of_log);
        let is_blank = sample.trim_ascii().is_empty();
        Ok((Self { columns, is_blank, of_log }, cut))
    }

    /// Inspects `text` from its start, until all types are known and all named columns are seen, or
    /// to the end.
    fn look_further(&mut self, text: Stream, named: &mut Named) {
        let rows = serde_json::Deserializer::from_reader(BufReader::new(without_nulls(text)));
        // Reading the file reports faults beyond the sample.
        let rows = rows.into_iter::<Shape>().map_while(Result::ok);
        for (row, shape) in rows.enumerate() {
            if let Shape::Object(keys) = shape {
                merge_keys(&mut self.columns, keys);
                self.are_seen(named);
            }
            if row % SAMPLE_ROWS == 0 && !self.are_unknown(named) && named.is_seen() {
                break;
            }
        }
        complete_envelope(&mut self.columns, self.of_log);
    }

    /// Reports the keys to `named`.
    fn are_seen(&self, named: &mut Named) {
        if !named.is_seen() {
            named.see(self.columns.iter().map(|(name, _)| &**name));
            named.see(self.of_rows());
        }
    }

    /// Iterates over the columns of the rows in events.
    fn of_rows(&self) -> impl Iterator<Item = &str> {
        let rows = if self.of_log { images(&self.columns) } else { Vec::new() };
        rows.into_iter().flatten().map(|(name, _)| &**name)
    }

    /// Returns whether the type of a column is unknown.
    fn are_unknown(&self, named: &Named) -> bool {
        let known = |name: &str| named.has(name);
        self.columns.iter().any(|(name, shape)| match self.of_log {
            true => shape.is_unknown_but(&|name| known(name)) && !known(name),
            false => !known(name) && shape.is_unknown(),
        })
    }
}

fn infer(
    origin: &Origin,
    options: &ReadOptions,
    raw: Option<&Raw>,
    of_log: bool,
    named: &mut Named,
) -> Result<Schema> {
    let keys = Keys::of(origin, of_log, named)?;
    let count: u64 = keys.columns.iter().map(|(_, shape)| shape.keys()).sum();
    let (bytes, later) = (count * KEY_BYTES, count * JOB_BYTES);
    options.ceiling.admit(bytes, later, origin.name(), "the keys of its objects")?;
    let declared = raw.map(Raw::declared).unwrap_or_default();
    let schema = options.schema.as_deref();
    let of_rows = named_within(schema, &keys.of_rows().collect());
    let in_rows = Places::of(&of_rows);
    let of_row = |name: &str| {
        let named = in_rows.first(name).map(|place| of_rows[place].data_type());
        named.or_else(|| declared.get(name)).cloned()
    };
    let Keys { columns, is_blank, .. } = keys;
    let mut fields = Vec::with_capacity(columns.len());
    let given = schema.into_iter().flat_map(|schema| schema.fields());
    let given: Vec<FieldRef> = given.filter(|field| !in_rows.has(field.name())).cloned().collect();
    let places = Places::of(&given);
    for (name, shape) in columns {
        let kind = match places.first(&name) {
            Some(place) => given[place].data_type().clone(),
            None => shape.data_type_with(&name, of_log, &of_row).ok_or_else(|| {
                origin.error(format!(
                    "column '{name}' is a scalar in some rows, a list or an object in others; \
                     make them alike"
                ))
            })?,
        };
        fields.push(Field::new(name, kind, true));
    }
    let known: HashSet<&String> = fields.iter().map(Field::name).collect();
    let lacking = given.iter().filter(|field| !known.contains(field.name()));
    let lacking: Vec<Field> = lacking.map(|field| Field::clone(field)).collect();
    fields.extend(lacking);
    if fields.is_empty() && !is_blank {
        return Err(origin.error(NO_OBJECT));
    }
    Ok(Schema::new(fields))
}
