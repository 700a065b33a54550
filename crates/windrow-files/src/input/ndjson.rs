//! NDJSON: the columns of a file, from a sample of its objects and `schema`.
//!
//! Columns come in the order in which their keys first appear. The inference of arrow gives them in
//! the order of a hash map, another in every run, so it is done here:
//!
//! ```text
//!  null < anything                  integers -> int64, beyond it uint64 or decimal128(20,0)
//!  integer < float -> float64       object -> struct, key by key
//!  any two scalars else -> utf8     list -> list of what its elements are together
//! ```
//! A list or an object beside a scalar has no type, which is an error.
//!
//! While a column is null in all of the sample, a file is looked at further, if need be to its end;
//! a stream cannot be, and has a column of nulls then, in which a value is an error. (Text, which
//! takes any scalar, would make "5" of 5.)
//!
//! Blocks of plain records are walked over once: see [`json_plain`](super::json_plain). For others
//! the decoder of arrow reads 1.5 into a column of integers as 1: see [`exact`](super::exact). It reads "5"
//! there as 5: see [`records`](super::records).

use std::collections::HashSet;
use std::fmt;
use std::io::{BufReader, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use memchr::memchr;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::error::Result;
use crate::names::Places;

use super::dialect::{Columns, Dialect};
use super::exact::Exact;
use super::json_plain::Plain;
use super::json_text;
use super::named::Named;
use super::null_lines::without_nulls;
use super::origin::{Origin, Stream};
use super::records::Records;
use super::text::{TextFile, line_bytes, longest_line};
use super::{Opened, ReadOptions, SAMPLE_BYTES};

/// Objects of the sample that are looked at.
const SAMPLE_ROWS: usize = 10_000;

/// What a key takes as a column, and in a job.
const KEY_BYTES: u64 = 512;
const JOB_BYTES: u64 = 6 << 10;

/// Keys of an object from which on a table finds one sooner than a look at all.
const FEW_KEYS: usize = 16;

/// Why there are no columns.
const NO_OBJECT: &str = "holds no object to tell the columns; name them with `schema`";

/// Reads a sample of `origin`. `reference` is the schema of the first input, if this is not it; of the columns
/// that are `named`, those that are in it are seen.
pub(super) fn open(
    origin: Origin,
    options: &ReadOptions,
    reference: Option<&Schema>,
    named: &mut Named,
) -> Result<Opened> {
    let schema = match reference {
        Some(first) if options.union_by_name || options.wanted.is_some() => {
            let own = infer(&origin, options, named)?;
            let known = Places::of(first.fields());
            let field = |own: &Arc<Field>| {
                let known = known.first(own.name()).map(|place| first.field(place).data_type());
                match known.filter(|kind| !kind.is_null() && !kind.is_nested()) {
                    Some(kind) => Field::clone(own).with_data_type(kind.clone()),
                    None => Field::clone(own),
                }
            };
            Schema::new(own.fields().iter().map(field).collect::<Vec<_>>())
        }
        Some(first) => {
            if !named.is_seen() {
                Keys::of(&origin, named)?;
            }
            let nullable = |field: &Arc<Field>| Field::clone(field).with_nullable(true);
            Schema::new(first.fields().iter().map(nullable).collect::<Vec<_>>())
        }
        None => infer(&origin, options, named)?,
    };
    let lacks = schema.fields().is_empty().then_some(NO_OBJECT);
    let line_bytes = line_bytes(&origin, &origin.head(SAMPLE_BYTES)?, 0);
    let longest = longest_line(&origin, &origin.head(SAMPLE_BYTES)?);
    let file = TextFile {
        origin: Arc::new(origin),
        dialect: Dialect::Ndjson,
        columns: Columns { schema: Arc::new(schema), named: options.schema.clone() },
        line_bytes,
        longest,
        lacks,
    };
    Ok(file.opened(options.batch_rows.max(1)))
}

/// What the objects of a file have, as far as it was looked at.
struct Keys {
    columns: Vec<(String, Shape)>,
    /// Whether there is no text.
    is_blank: bool,
}

impl Keys {
    /// Those of a sample, and of more where that does not tell enough. Of the columns that are `named` some
    /// may come later: the rest of a stream is not looked at.
    fn of(origin: &Origin, named: &mut Named) -> Result<Self> {
        let (mut keys, cut) = Self::of_sample(origin)?;
        named.see(keys.names());
        // Not even the first object may be whole in the sample.
        let unsure =
            keys.are_unknown(named) || cut && (keys.columns.is_empty() || !named.is_seen());
        if unsure && let Some(text) = origin.again_from(0) {
            keys.look_further(text, named);
        } else if cut {
            named.leave_open();
        }
        if keys.columns.is_empty() {
            named.leave_open();
        }
        Ok(keys)
    }

    /// Those of the head of a file, and whether it goes on.
    fn of_sample(origin: &Origin) -> Result<(Self, bool)> {
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
        complete_envelope(&mut columns);
        let is_blank = !cut && sample.trim_ascii().is_empty();
        Ok((Self { columns, is_blank }, cut))
    }

    /// Reads on from the start, until all is known or at the end.
    fn look_further(&mut self, text: Stream, named: &mut Named) {
        let rows = serde_json::Deserializer::from_reader(BufReader::new(without_nulls(text)));
        // A fault beyond the sample is told when the file is read.
        let rows = rows.into_iter::<Shape>().map_while(Result::ok);
        for (row, shape) in rows.enumerate() {
            if let Shape::Object(keys) = shape {
                named.see(keys.iter().map(|(name, _)| &**name));
                merge_keys(&mut self.columns, keys);
            }
            if row % SAMPLE_ROWS == 0 && !self.are_unknown(named) && named.is_seen() {
                break;
            }
        }
        complete_envelope(&mut self.columns);
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| &**name)
    }

    /// Whether the type of any of them is unknown.
    fn are_unknown(&self, named: &Named) -> bool {
        self.columns.iter().any(|(name, shape)| !named.has(name) && shape.is_unknown())
    }
}

fn infer(origin: &Origin, options: &ReadOptions, named: &mut Named) -> Result<Schema> {
    let schema = options.schema.as_deref();
    let Keys { columns, is_blank } = Keys::of(origin, named)?;
    let keys: u64 = columns.iter().map(|(_, shape)| shape.keys()).sum();
    let (bytes, later) = (keys * KEY_BYTES, keys * JOB_BYTES);
    options.ceiling.admit(bytes, later, origin.name(), "the keys of its objects")?;
    let mut fields = Vec::with_capacity(columns.len());
    let given: &[FieldRef] = schema.map_or(&[], |schema| schema.fields());
    let places = Places::of(given);
    for (name, shape) in columns {
        let kind = match places.first(&name) {
            Some(place) => given[place].data_type().clone(),
            None => shape.data_type().ok_or_else(|| {
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

/// The decoder of arrow, what is looked at beside it, and what is parsed after it.
pub(super) struct Decoder {
    plain: Option<Plain>,
    decoder: arrow_json::reader::Decoder,
    records: Records,
    exact: Exact,
}

impl Decoder {
    /// Of records of `schema`, of which the types that are not in `named` were inferred.
    pub(super) fn new(
        schema: &SchemaRef,
        named: Option<&Schema>,
        batch_rows: usize,
    ) -> Result<Self, ArrowError> {
        let (records, exact) = (Records::new(schema, named), Exact::of_json(schema, named));
        let plain = Plain::of(schema, named, exact.text(), batch_rows);
        let decoder = arrow_json::ReaderBuilder::new(exact.text().clone())
            .with_batch_size(batch_rows)
            // A column of text keeps what numbers and booleans it meets.
            .with_coerce_primitive(true)
            // A key that is in no column is an error: else its values were lost.
            .with_strict_mode(true)
            .build_decoder()?;
        Ok(Self { plain, decoder, records, exact })
    }

    /// The rows of `text`, which is all records, if it is as text mostly is; what is in hand stays.
    pub(super) fn decode_plain(&mut self, text: &[u8]) -> Option<RecordBatch> {
        let batch = self.plain.as_mut()?.decode(text)?;
        self.exact.parse(batch).ok()
    }

    /// Takes bytes; returns how many.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<usize, ArrowError> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let line = &rest[..memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)];
            let step = self.decoder.decode(line)?;
            self.records.pass(&line[..step], self.decoder.has_partial_record())?;
            taken += step;
            if step < line.len() {
                break;
            }
        }
        Ok(taken)
    }

    /// Whether a record has begun and not ended.
    pub(super) fn is_within_record(&self) -> bool {
        self.decoder.has_partial_record()
    }

    pub(super) fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.decoder.flush()?.map(|batch| self.exact.parse(batch)).transpose()
    }
}

/// What a value, or all values of a column, look like.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Null,
    Bool,
    Integer {
        negative: bool,
        beyond_i64: bool,
    },
    Float,
    Text,
    List(Box<Shape>),
    Object(Vec<(String, Shape)>),
    /// Scalars and others.
    Mixed,
}

impl Shape {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, shape) | (shape, Self::Null) => shape,
            (Self::Mixed, _) | (_, Self::Mixed) => Self::Mixed,
            (
                Self::Integer { negative: a, beyond_i64: b },
                Self::Integer { negative: c, beyond_i64: d },
            ) => Self::Integer { negative: a || c, beyond_i64: b || d },
            (Self::Integer { .. } | Self::Float, Self::Integer { .. } | Self::Float) => Self::Float,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.and(*b))),
            (Self::Object(mut a), Self::Object(b)) => {
                merge_keys(&mut a, b);
                Self::Object(a)
            }
            (Self::List(_) | Self::Object(_), _) | (_, Self::List(_) | Self::Object(_)) => {
                Self::Mixed
            }
            (a, b) if a == b => a,
            _ => Self::Text,
        }
    }

    /// Whether it holds a value, or a part of one, that was null wherever it was seen.
    fn is_unknown(&self) -> bool {
        match self {
            Self::Null => true,
            Self::List(of) => of.is_unknown(),
            Self::Object(keys) => keys.iter().any(|(_, shape)| shape.is_unknown()),
            _ => false,
        }
    }

    /// The values that it has in a row.
    fn keys(&self) -> u64 {
        match self {
            Self::List(of) => of.keys(),
            Self::Object(keys) => keys.iter().map(|(_, shape)| shape.keys()).sum(),
            _ => 1,
        }
    }

    fn data_type(&self) -> Option<DataType> {
        Some(match self {
            Self::Mixed => return None,
            Self::Null => DataType::Null,
            Self::Text => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Float => DataType::Float64,
            Self::Integer { beyond_i64: false, .. } => DataType::Int64,
            Self::Integer { negative: false, .. } => DataType::UInt64,
            Self::Integer { .. } => DataType::Decimal128(20, 0),
            Self::List(of) => DataType::new_list(of.data_type()?, true),
            Self::Object(keys) => {
                let fields = keys
                    .iter()
                    .map(|(name, shape)| Some(Field::new(name, shape.data_type()?, true)));
                DataType::Struct(fields.collect::<Option<Fields>>()?)
            }
        })
    }
}

/// A change log that begins with inserts has nulls in `before`, which will hold what `after` does; Kafka
/// Connect puts both into `payload`.
fn complete_envelope(columns: &mut [(String, Shape)]) {
    let place = |name: &str| columns.iter().position(|(column, _)| column == name);
    if let (Some(before), Some(after)) = (place("before"), place("after"))
        && let (Shape::Null, Shape::Object(_)) = (&columns[before].1, &columns[after].1)
    {
        columns[before].1 = columns[after].1.clone();
    }
    for (name, shape) in columns {
        if let ("payload", Shape::Object(keys)) = (&**name, shape) {
            complete_envelope(keys);
        }
    }
}

fn merge_keys(into: &mut Vec<(String, Shape)>, keys: Vec<(String, Shape)>) {
    // Rows of a file mostly hold the same keys in the same order.
    let same = keys.iter().zip(&*into).take_while(|((name, _), (key, _))| name == key).count();
    let places: Vec<Option<usize>> = match keys.len() - same {
        0 => Vec::new(),
        _ => {
            let known: Places<'_> = into.iter().map(|(key, _)| key.as_str()).collect();
            keys[same..].iter().map(|(name, _)| known.first(name)).collect()
        }
    };
    let places = (0..same).map(Some).chain(places);
    for ((name, shape), known) in keys.into_iter().zip(places) {
        match known {
            Some(place) => {
                let before = std::mem::replace(&mut into[place].1, Shape::Null);
                into[place].1 = before.and(shape);
            }
            None => into.push((name, shape)),
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Bool)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Shape, E> {
        Ok(Shape::Integer { negative: value < 0, beyond_i64: false })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Shape, E> {
        Ok(Shape::Integer { negative: false, beyond_i64: i64::try_from(value).is_err() })
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Float)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Shape, A::Error> {
        let mut all = Shape::Null;
        while let Some(element) = elements.next_element::<Shape>()? {
            all = all.and(element);
        }
        Ok(Shape::List(Box::new(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Shape, A::Error> {
        let mut keys: Vec<(String, Shape)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some((name, shape)) = entries.next_entry::<String, Shape>()? {
            let is_known = match keys.len() {
                ..FEW_KEYS => keys.iter().any(|(key, _)| *key == name),
                length => {
                    if length == FEW_KEYS {
                        seen.extend(keys.iter().map(|(key, _)| key.clone()));
                    }
                    !seen.insert(name.clone())
                }
            };
            if is_known {
                return Err(A::Error::custom(format!("{name:?} is there twice in an object")));
            }
            keys.push((name, shape));
        }
        Ok(Shape::Object(keys))
    }
}
