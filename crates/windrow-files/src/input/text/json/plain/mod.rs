//! Fast path for regular NDJSON records: one pass over the text, straight into columns.
//!
//! ```text
//!  {"id":7,"actor":{"name":"x"},"ok":true}      keys of the schema, each at most once; scalars, lists, objects
//!     |             |            |
//!   text          text        Boolean           of a block; the text is parsed column by column after the walk
//! ```
//! The walk expects keys in the order of the schema, and looks up keys that come in another order.
//! Anything irregular (an unknown or duplicate key, a string in a column of numbers, invalid JSON)
//! ends the walk. The decoder of arrow and [`records`](super::records) then decode the whole block,
//! or report its fault.
//!
//! Invariant: a completed walk returns the same rows as arrow's decoder and `records`.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, ListArray, NullArray, RecordBatch, StructArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use memchr::memchr2;

use crate::input::text::named::TypesAt;
use crate::nested::with_rows;

use super::records::is_of_numbers;

/// Maximum nesting depth of objects; less than the maximum of [`records`](super::records).
const MOST_DEPTH: usize = 64;

/// The walk over records of one schema.
pub(crate) struct Plain {
    /// Schema with text for the values that are parsed after the walk.
    text: SchemaRef,
    records: ObjectBuilder,
    most_rows: usize,
}

/// Columns of objects with the same keys.
struct ObjectBuilder {
    fields: Fields,
    members: Vec<Member>,
    /// Positions of members, by key.
    places: HashMap<Vec<u8>, usize>,
    rows: usize,
    /// Whether each object is present.
    valid: BooleanBufferBuilder,
}

/// The column of one key.
struct Member {
    /// The key, and its closing quote.
    key: Vec<u8>,
    rows: usize,
    values: Values,
}

enum Values {
    /// Any scalars, or only numbers.
    Text {
        values: StringBuilder,
        is_number: bool,
    },
    Boolean(BooleanBuilder),
    /// The number of nulls, in a column without a value in the sample.
    Null(usize),
    List(Box<ListBuilder>),
    Object(ObjectBuilder),
}

/// The lists of a key.
struct ListBuilder {
    /// The field of the items.
    field: FieldRef,
    items: Values,
    lengths: Vec<usize>,
    valid: BooleanBufferBuilder,
}

impl Plain {
    /// Creates a walk for records of `schema`, decoded to `text`; types of `schema` outside of
    /// `named` were inferred. Returns `None` if the walk does not support a type.
    pub(super) fn of(
        schema: &Schema,
        named: TypesAt<'_>,
        text: &SchemaRef,
        most_rows: usize,
    ) -> Option<Self> {
        let records = ObjectBuilder::of(schema.fields(), text.fields(), Some(named), 0)?;
        Some(Self { text: Arc::clone(text), records, most_rows })
    }

    /// Returns the rows of `text`; `None` if anything in the text is irregular.
    pub(super) fn decode(&mut self, text: &[u8]) -> Option<RecordBatch> {
        let text = std::str::from_utf8(text).ok()?;
        let walked = self.walk(text);
        let columns = self.records.finish();
        let rows = std::mem::take(&mut self.records.rows);
        self.records.valid.truncate(0);
        walked?;
        with_rows(&self.text, columns?, rows).ok()
    }

    fn walk(&mut self, text: &str) -> Option<()> {
        let mut at = blanks(text, 0);
        while at < text.len() {
            if self.records.rows == self.most_rows {
                return None;
            }
            at = expect(text, at, b'{')?;
            at = blanks(text, self.records.walk(text, at)?);
        }
        Some(())
    }
}

impl ObjectBuilder {
    /// Creates the columns for members, some of whose types are `named`. `None` means that all
    /// types are named.
    fn of(
        fields: &Fields,
        text: &Fields,
        named: Option<TypesAt<'_>>,
        depth: usize,
    ) -> Option<Self> {
        if fields.is_empty() || depth == MOST_DEPTH {
            return None;
        }
        let member = |(field, text): (&Arc<Field>, &Arc<Field>)| {
            let name = field.name().as_bytes();
            if memchr2(b'"', b'\\', name).is_some() || !field.is_nullable() {
                return None;
            }
            let named = named.filter(|named| !named.has(field));
            let named = named.map(|named| named.within(field));
            let values = Values::of(field.data_type(), text.data_type(), named, depth)?;
            Some(Member { key: [name, b"\""].concat(), rows: 0, values })
        };
        let members: Vec<Member> = fields.iter().zip(text).map(member).collect::<Option<_>>()?;
        let places = members.iter().enumerate().rev();
        Some(Self {
            fields: text.clone(),
            // Of several columns with one name, the first counts.
            places: places.map(|(place, member)| (member.key.clone(), place)).collect(),
            members,
            rows: 0,
            valid: BooleanBufferBuilder::new(0),
        })
    }

    /// Reads the object that opens before `at`; returns its end.
    fn walk(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = blanks(text, at);
        let mut next = 0;
        if bytes.get(at) == Some(&b'}') {
            at += 1;
        } else {
            loop {
                at = expect(text, at, b'"')?;
                let rest = &bytes[at..];
                let is_next = self.members.get(next).is_some_and(|m| rest.starts_with(&m.key));
                if !is_next {
                    let end = memchr2(b'"', b'\\', rest)?;
                    next = *self.places.get(&rest[..=end])?;
                }
                let member = &mut self.members[next];
                if member.rows > self.rows {
                    return None;
                }
                at = expect(text, blanks(text, at + member.key.len()), b':')?;
                at = member.values.walk(text, blanks(text, at))?;
                member.rows += 1;
                next += 1;
                at = blanks(text, at);
                match bytes.get(at) {
                    Some(b',') => at = blanks(text, at + 1),
                    Some(b'}') => break,
                    _ => return None,
                }
            }
            at += 1;
        }
        self.end_row(true);
        Some(at)
    }

    fn push_null(&mut self) {
        self.end_row(false);
    }

    /// Ends the row; members without a value in the row are null.
    fn end_row(&mut self, valid: bool) {
        self.rows += 1;
        self.valid.append(valid);
        for member in self.members.iter_mut().filter(|member| member.rows < self.rows) {
            member.rows += 1;
            member.values.push_null();
        }
    }

    /// Takes all columns. Returns `None` if the columns differ in length.
    fn finish(&mut self) -> Option<Vec<ArrayRef>> {
        let columns = self.members.iter_mut().map(|member| {
            member.rows = 0;
            member.values.finish()
        });
        // An error must not leave values in the remaining columns.
        let columns: Vec<_> = columns.collect();
        columns.into_iter().collect()
    }
}

impl Values {
    /// Creates the values of type `kind`, some of whose members have types that are `named`. `None`
    /// means that all types are named.
    fn of(
        kind: &DataType,
        text: &DataType,
        named: Option<TypesAt<'_>>,
        depth: usize,
    ) -> Option<Self> {
        Some(match (kind, text) {
            (DataType::Struct(fields), DataType::Struct(text)) => {
                Self::Object(ObjectBuilder::of(fields, text, named, depth + 1)?)
            }
            (DataType::List(of), DataType::List(text)) if of.is_nullable() => {
                let deeper = Some(depth + 1).filter(|depth| *depth < MOST_DEPTH)?;
                Self::List(Box::new(ListBuilder {
                    field: Arc::clone(text),
                    items: Self::of(of.data_type(), text.data_type(), named, deeper)?,
                    lengths: Vec::new(),
                    valid: BooleanBufferBuilder::new(0),
                }))
            }
            (DataType::Boolean, DataType::Boolean) => Self::Boolean(BooleanBuilder::new()),
            (DataType::Null, DataType::Null) => Self::Null(0),
            (kind, DataType::Utf8) if !kind.is_nested() && !kind.is_binary() => Self::Text {
                // A file may have 100,000 columns and a single row.
                values: StringBuilder::with_capacity(0, 0),
                is_number: named.is_some() && is_of_numbers(kind),
            },
            _ => return None,
        })
    }

    /// Reads the value at `at`; returns its end.
    fn walk(&mut self, text: &str, at: usize) -> Option<usize> {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"null") {
            self.push_null();
            return Some(at + 4);
        }
        match (self, rest.first()?) {
            (Self::Text { values, is_number: false }, b'"') => string(text, at + 1, values),
            (Self::Text { values, .. }, b'-' | b'0'..=b'9') => {
                let is_of_number =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + rest.iter().position(|byte| !is_of_number(byte))?;
                values.append_value(text.get(at..end)?);
                Some(end)
            }
            (Self::Text { values, .. }, _) => {
                let word =
                    ["true", "false"].into_iter().find(|w| rest.starts_with(w.as_bytes()))?;
                values.append_value(word);
                Some(at + word.len())
            }
            (Self::Boolean(values), _) if rest.starts_with(b"true") => {
                values.append_value(true);
                Some(at + 4)
            }
            (Self::Boolean(values), _) if rest.starts_with(b"false") => {
                values.append_value(false);
                Some(at + 5)
            }
            (Self::Object(object), b'{') => object.walk(text, at + 1),
            (Self::List(list), b'[') => list.walk(text, at + 1),
            (Self::Boolean(_) | Self::Null(_) | Self::List(_) | Self::Object(_), _) => None,
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Text { values, .. } => values.append_null(),
            Self::Boolean(values) => values.append_null(),
            Self::Null(rows) => *rows += 1,
            Self::List(list) => list.end_row(0, false),
            Self::Object(object) => object.push_null(),
        }
    }

    fn finish(&mut self) -> Option<ArrayRef> {
        Some(match self {
            Self::Text { values, .. } => {
                let array = values.finish();
                // The next block probably needs the same capacity.
                *values = StringBuilder::with_capacity(array.len(), array.values().len());
                Arc::new(array)
            }
            Self::Boolean(values) => Arc::new(values.finish()),
            Self::Null(rows) => Arc::new(NullArray::new(std::mem::take(rows))),
            Self::List(list) => {
                let items = list.items.finish();
                let lengths = OffsetBuffer::from_lengths(std::mem::take(&mut list.lengths));
                let valid = nulls(&mut list.valid);
                let field = Arc::clone(&list.field);
                Arc::new(ListArray::try_new(field, lengths, items?, valid).ok()?)
            }
            Self::Object(object) => {
                let columns = object.finish();
                object.rows = 0;
                let valid = nulls(&mut object.valid);
                Arc::new(StructArray::try_new(object.fields.clone(), columns?, valid).ok()?)
            }
        })
    }
}

impl ListBuilder {
    /// Reads the list that opens before `at`; returns its end.
    #[inline(never)]
    fn walk(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = blanks(text, at);
        let mut items = 0;
        if bytes.get(at) != Some(&b']') {
            loop {
                at = blanks(text, self.items.walk(text, at)?);
                items += 1;
                match bytes.get(at) {
                    Some(b',') => at = blanks(text, at + 1),
                    Some(b']') => break,
                    _ => return None,
                }
            }
        }
        self.end_row(items, true);
        Some(at + 1)
    }

    fn end_row(&mut self, items: usize, valid: bool) {
        self.lengths.push(items);
        self.valid.append(valid);
    }
}

/// Takes the validity of rows out of `valid`. Returns `None` without nulls.
fn nulls(valid: &mut BooleanBufferBuilder) -> Option<NullBuffer> {
    Some(NullBuffer::new(valid.finish())).filter(|valid| valid.null_count() > 0)
}

/// Reads the string that begins at `at`, after the opening quote; returns its end.
fn string(text: &str, at: usize, values: &mut StringBuilder) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut end = at + memchr2(b'"', b'\\', &bytes[at..])?;
    if bytes[end] == b'"' {
        values.append_value(text.get(at..end)?);
        return Some(end + 1);
    }
    while bytes[end] == b'\\' {
        // The escaped character may be a quote.
        let behind = end + 2;
        end = behind + memchr2(b'"', b'\\', bytes.get(behind..)?)?;
    }
    values.append_value(serde_json::from_str::<String>(text.get(at - 1..=end)?).ok()?);
    Some(end + 1)
}

/// Returns the end of the blanks that begin at `at`.
fn blanks(text: &str, at: usize) -> usize {
    let rest = text.as_bytes()[at..].iter();
    at + rest.take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count()
}

/// Returns the position after `byte`, if `byte` is at `at`.
fn expect(text: &str, at: usize, byte: u8) -> Option<usize> {
    (text.as_bytes().get(at) == Some(&byte)).then_some(at + 1)
}
