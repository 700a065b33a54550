//! Records of NDJSON that are as most are, walked over once, straight into columns.
//!
//! ```text
//!  {"id":7,"actor":{"name":"x"},"ok":true}      keys of the schema, each once at the most, scalars, lists and objects
//!     |             |            |
//!   text          text        Boolean           of a block; what text stands for is parsed column by column after it
//! ```
//! Keys are expected in the order of the schema, and looked for if they come in another. Whatever is not as it mostly is
//! (a key of no column, one that is there twice, a string where numbers are due, text that is no JSON) ends the walk, and
//! the whole block is left to the decoder of arrow and to [`records`](super::records), which tell what is wrong, or take
//! it.
//!
//! Invariant: of a block that the walk comes through, the rows are those that these make of it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, ListArray, NullArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use memchr::memchr2;

use crate::input::text::named::TypesAt;

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
    /// Nulls of a column of which the sample has no value.
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
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.text), columns?, &options).ok()
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
    /// Values of type `kind`, of which members have types that are `named`; if nothing, all are.
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
    /// Takes the list that opens in front of `at`; returns where it ends.
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

/// Which rows are null, if any is; `valid` is empty afterwards.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::text::json::decoder::Decoder;
    use crate::input::text::named::NamedTypes;

    fn schema() -> SchemaRef {
        let field = |name: &str, kind| Field::new(name, kind, true);
        let deeper: Fields = vec![field("t", DataType::Utf8), field("f", DataType::Float64)].into();
        let object: Fields = vec![
            field("n", DataType::Int64),
            field("t", DataType::Utf8),
            field("d", DataType::Struct(deeper)),
        ]
        .into();
        let members: Fields =
            vec![field("n", DataType::Int64), field("b", DataType::Boolean)].into();
        let at = DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("UTC".into()));
        Arc::new(Schema::new(vec![
            field("n", DataType::Int64),
            field("t", DataType::Utf8),
            field("b", DataType::Boolean),
            field("o", DataType::Struct(object)),
            field("at", at),
            field("named", DataType::Int64),
            field("l", DataType::new_list(DataType::Int64, true)),
            field("none", DataType::Null),
            field("m", DataType::new_list(DataType::Struct(members), true)),
            field("lt", DataType::new_list(DataType::new_list(DataType::Utf8, true), true)),
        ]))
    }

    fn decoder() -> Decoder {
        let named = Arc::new(Schema::new(vec![Field::new("named", DataType::Int64, true)]));
        let named = NamedTypes::of(Some(&named), &schema(), false);
        Decoder::new(&schema(), &named, 100).unwrap()
    }

    /// Decodes `text` without the walk.
    fn slowly(text: &str) -> Option<RecordBatch> {
        let mut decoder = decoder();
        let taken = decoder.decode(text.as_bytes()).ok()?;
        assert_eq!(taken, text.len());
        decoder.decode(&[]).ok()?;
        let batch = decoder.flush().ok()?;
        Some(batch.unwrap_or_else(|| RecordBatch::new_empty(schema())))
    }

    /// Fails if the walk completes with other rows; returns whether the walk completes.
    #[track_caller]
    fn comes_through(decoder: &mut Decoder, text: &str) -> bool {
        let Some(batch) = decoder.decode_plain(text.as_bytes()) else { return false };
        assert_eq!(Some(batch), slowly(text), "{text}");
        true
    }

    #[test]
    fn records_as_they_mostly_are() {
        let mut decoder = decoder();
        for text in [
            "",
            " \n",
            "{}\n{ }",
            r#"{"n":1,"t":"x","b":true,"o":{"n":-2,"t":"y","d":{"t":"","f":1.5e3}},"at":"2026-01-31T00:00:00Z"}"#,
            "{\"o\":null,\"n\":null}\n{\"t\":\"\",\"n\":0}\n",
            "{\"b\" : false ,\r\n\"t\"\t:\"a\nb\"}{\"t\":5}\n{\"t\":true}{\"t\":-0.10}",
            r#"{"t":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}"#,
            r#"{"o":{"d":{}},"named":"17"}"#,
            "{\"t\":\"é\u{1F600}\"}",
            "{\"l\":[1, 2 ,null],\"m\":[]}\n{\"l\":null}\n{\"l\":[],\"m\":[ {\"n\":1},null,{\"b\":true} ]}{}",
            "{\"none\":null,\"lt\":[null,[],[null,\"]\",5]]}\n{\"none\":null}",
        ] {
            assert!(comes_through(&mut decoder, text), "{text}");
        }
    }

    #[test]
    fn others_are_left_to_the_decoder() {
        let mut decoder = decoder();
        for text in [
            r#"{"n":"1"}"#,
            r#"{"n":1.5}"#,
            r#"{"n":true}"#,
            r#"{"x":1}"#,
            r#"{"n":1,"n":2}"#,
            r#"{"o":{"n":1,"n":1}}"#,
            r#"{"\u006e":1}"#,
            r#"{"o":[1]}"#,
            r#"{"o":1}"#,
            r#"{"t":{"a":1}}"#,
            r#"{"t":[1]}"#,
            r#"{"b":"true"}"#,
            r#"{"b":1}"#,
            r#"{"t":"\ud800"}"#,
            r#"{"t":"x"#,
            r#"{"t":"x\"#,
            r#"{"t":1"#,
            r#"{"n":1,}"#,
            r#"{"n":1 "t":2}"#,
            r#"{"n":nulla}"#,
            r#"{"l":["1"]}"#,
            r#"{"l":[1,]}"#,
            r#"{"l":[1 2]}"#,
            r#"{"l":[1"#,
            r#"{"l":[1.5]}"#,
            r#"{"l":1}"#,
            r#"{"l":[[1]]}"#,
            r#"{"none":1}"#,
            r#"{"m":[{"x":1}]}"#,
            r#"{"m":[{"n":1,"n":2}]}"#,
            r#"{"m":[{"n":"1"}]}"#,
            r#"{"t":truer}"#,
            "[1]",
            "5",
            "{\"n\":1",
            "{",
        ] {
            assert!(!comes_through(&mut decoder, text), "{text}");
            // A failed walk leaves no values.
            assert!(comes_through(&mut decoder, "{\"n\":1}\n{\"o\":{\"t\":\"x\"}}\n"));
        }
        assert!(decoder.decode_plain(b"{\"t\":\"\xFF\"}").is_none());
        assert!(!comes_through(&mut decoder, &"{}".repeat(101)));
    }

    #[test]
    fn bytes_that_change_make_no_other_rows() {
        let text = "{\"l\":[1,null],\"m\":[{\"n\":1}],\"none\":null,\"lt\":[[\"\"]],\"n\":12,\"t\":\"a\\\"b\",\"b\":true,\"o\":{\"n\":-2,\"d\":{\"t\":\"\",\"f\":1.5e3}}}\n{\"t\":null}\n";
        let mut decoder = decoder();
        assert!(comes_through(&mut decoder, text));
        let mut through = 0;
        for place in 0..text.len() {
            for byte in b"{}[]\",:\\ntf1-. \n\rx\xC3" {
                let mut bytes = text.as_bytes().to_vec();
                bytes[place] = *byte;
                match String::from_utf8(bytes) {
                    Ok(text) => through += usize::from(comes_through(&mut decoder, &text)),
                    Err(fault) => assert!(decoder.decode_plain(fault.as_bytes()).is_none()),
                }
            }
        }
        assert!(through > 100, "{through}");
    }
}
