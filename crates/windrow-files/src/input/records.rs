//! Checks of NDJSON records for faults that the decoder of arrow accepts.
//!
//! 1. The decoder takes the string "1.10" for the number 1.1. Among the first rows, such a string
//!    would have made its column text. In a column inferred as numbers, a string is therefore an
//!    error.
//! 2. Values nested ten thousand deep exhaust the decoder's stack. Among the first rows, such
//!    values are refused, so these checks refuse them as well.
//! 3. If the decoder decodes everything as text, a column of bytes (strings in JSON) may get a
//!    number. The type of such a column is never inferred, but comes from a file read before. All
//!    records of such a file are walked over.
//!
//! The checks walk over a record (see [`json_walk`](super::json_walk)), but few records need a
//! walk. A quick scan suffices for a line with a whole record, no more opening brackets than the
//! maximum depth, and no quoted number after the key of a numeric column:
//!
//! ```text
//!  {"id":7,"zip":"94103","at":"2026-01-31T12:00:00"}
//!                ^            ^
//!                |            a digit behind a quote, but no number
//!                a number: a walk, if some column of numbers is called zip
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, Fields, Schema};
use memchr::memrchr;

use super::exact::is_json_number;
use super::json_walk::{ANY, MOST_DEPTH, Node, RECORD, Walk};
use super::named::TypesAt;

/// Bytes scanned at a time.
const GLANCE: usize = 64;

/// The checks, and the current record.
pub(super) struct Records {
    nodes: Vec<Node>,
    /// Keys of numeric values; whether lists have numbers; whether maps, with any keys, have
    /// numbers.
    numbers: HashSet<Vec<u8>>,
    lists_of_numbers: bool,
    maps_of_numbers: bool,
    /// Whether every record is walked over.
    always: bool,
    /// The walk over a record that has begun and not ended.
    walk: Walk,
    walking: bool,
}

impl Records {
    /// Creates the checks for records of `schema`; types outside of `named` were inferred.
    pub(super) fn new(schema: &Schema, named: TypesAt<'_>) -> Self {
        let mut records = Self {
            nodes: vec![Node::Any, Node::Any],
            numbers: HashSet::new(),
            lists_of_numbers: false,
            maps_of_numbers: false,
            always: false,
            walk: Walk::default(),
            walking: false,
        };
        let keys = records.members(schema.fields(), "", named);
        records.nodes[RECORD] = Node::Object(keys);
        records
    }

    /// Returns the keys and nodes of members whose types are not `named`. Messages use the path
    /// `front` and the name.
    fn members(
        &mut self,
        fields: &Fields,
        front: &str,
        named: TypesAt<'_>,
    ) -> HashMap<String, usize> {
        let fields = fields.iter().filter(|field| !named.has(field));
        let member = |field: &Arc<Field>| {
            let path = format!("{front}{}", field.name());
            (field.name().clone(), self.node(field, &path, named.within(field)))
        };
        fields.map(member).collect()
    }

    /// Returns the node for the values of `field`. Messages use `path`; the types of some members
    /// are `named`.
    fn node(&mut self, field: &Field, path: &str, named: TypesAt<'_>) -> usize {
        let node = match field.data_type() {
            kind if is_of_numbers(kind) => {
                self.numbers.insert(field.name().as_bytes().to_vec());
                Node::Number(path.to_owned(), kind.clone())
            }
            kind @ (DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)) => {
                self.always = true;
                Node::Bytes(path.to_owned(), kind.clone())
            }
            DataType::RunEndEncoded(_, of) => {
                let plain = Field::clone(of).with_name(field.name());
                return self.node(&plain, path, named);
            }
            DataType::List(of)
            | DataType::LargeList(of)
            | DataType::ListView(of)
            | DataType::LargeListView(of)
            | DataType::FixedSizeList(of, _) => {
                self.lists_of_numbers |= is_of_numbers(of.data_type());
                Node::List(self.node(of, path, named))
            }
            DataType::Struct(fields) => {
                Node::Object(self.members(fields, &format!("{path}."), named))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(entry) if entry.len() == 2 => {
                    self.maps_of_numbers |= is_of_numbers(entry[1].data_type());
                    Node::Map(self.node(&entry[1], path, named))
                }
                _ => return ANY,
            },
            _ => return ANY,
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Checks `text`, a line or a part of one, after decoding. `goes_on` means that the last record
    /// continues after `text`.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn pass(&mut self, text: &[u8], goes_on: bool) -> Result<(), ArrowError> {
        if self.always || self.walking || goes_on || self.is_odd(text) {
            self.walk.pass(text, &self.nodes)?;
        }
        self.walking = goes_on;
        if !goes_on {
            self.walk.stop();
        }
        Ok(())
    }

    /// Returns whether `line` may have a fault.
    fn is_odd(&self, line: &[u8]) -> bool {
        if line.len() > MOST_DEPTH && opening_brackets(line) > MOST_DEPTH {
            return true;
        }
        let mut places = (0..line.len()).step_by(GLANCE);
        let mut last = [0; GLANCE + 1];
        places.any(|place| {
            let rest = &line[place..];
            let bytes = rest.first_chunk().unwrap_or_else(|| {
                last[..rest.len()].copy_from_slice(rest);
                &last
            });
            let mut pairs = (place..).zip(bytes.windows(2));
            has_quoted_digit(bytes)
                && pairs.any(|(quote, pair)| {
                    is_quoted_digit(pair[0], pair[1]) && self.is_odd_string(line, quote)
                })
        })
    }

    /// Returns whether a quoted number in a numeric column may begin at `quote`.
    fn is_odd_string(&self, line: &[u8], quote: usize) -> bool {
        let (before, text) = (&line[..quote], &line[quote + 1..]);
        let of_numbers = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let end = text.iter().position(|byte| !of_numbers(byte)).unwrap_or(text.len());
        let is_number = match text.get(end) {
            Some(b'"') => std::str::from_utf8(&text[..end]).is_ok_and(is_json_number),
            // An escape, possibly of a digit.
            Some(b'\\') => true,
            _ => false,
        };
        is_number
            && match before.trim_ascii_end() {
                [key @ .., b':'] => match key.trim_ascii_end() {
                    [key @ .., b'"'] => {
                        let start = memrchr(b'"', key).map_or(0, |quote| quote + 1);
                        let key = &key[start..];
                        self.maps_of_numbers
                            || key.contains(&b'\\')
                            || start > 1 && line[start - 2] == b'\\'
                            || self.numbers.contains(key)
                    }
                    _ => true,
                },
                [.., b'[' | b','] => self.lists_of_numbers,
                // A key begins after a brace, not a value.
                [.., b'{'] => false,
                _ => true,
            }
    }
}

fn opening_brackets(line: &[u8]) -> usize {
    // An opening brace differs from an opening bracket by this bit only.
    let count = |bytes: &[u8]| bytes.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>();
    let (glances, rest) = line.as_chunks::<GLANCE>();
    glances.iter().map(|glance| usize::from(count(glance))).sum::<usize>()
        + usize::from(count(rest))
}

fn has_quoted_digit(bytes: &[u8; GLANCE + 1]) -> bool {
    (0..GLANCE).fold(false, |found, at| found | is_quoted_digit(bytes[at], bytes[at + 1]))
}

/// Returns whether `next`, after a quote, may begin a number or is a backslash.
fn is_quoted_digit(byte: u8, next: u8) -> bool {
    (byte == b'"') & matches!(next, b'-'..=b'9' | b'\\')
}

/// Returns whether a column of `kind` accepts only numbers.
pub(super) fn is_of_numbers(kind: &DataType) -> bool {
    kind.is_integer()
        || kind.is_floating()
        || matches!(
            kind,
            DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0) | DataType::Duration(_)
        )
}

#[cfg(test)]
mod tests {
    use arrow_schema::Fields;

    use super::*;
    use crate::input::named::NamedTypes;

    /// Returns a schema of numbers, text, and lists and objects of both.
    fn schema() -> Schema {
        let field = |name: &str, kind| Field::new(name, kind, true);
        let object: Fields = vec![
            field("n", DataType::Float64),
            field("b\"n", DataType::Int64),
            field("t", DataType::Utf8),
        ]
        .into();
        Schema::new(vec![
            field("n", DataType::Int64),
            field("t", DataType::Utf8),
            field("l", DataType::new_list(DataType::Int64, true)),
            field("o", DataType::Struct(object)),
            field("named", DataType::Int64),
        ])
    }

    /// Returns the fault in `text`, checked in pieces of `size` bytes.
    fn look(text: &str, size: usize) -> Result<(), String> {
        let named = Arc::new(Schema::new(vec![Field::new("named", DataType::Int64, true)]));
        let named = NamedTypes::of(Some(&named), &schema(), false);
        let mut records = Records::new(&schema(), named.all());
        let mut pieces = text.as_bytes().chunks(size).peekable();
        while let Some(piece) = pieces.next() {
            let passed = records.pass(piece, pieces.peek().is_some());
            passed.map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn strings_where_numbers_are_due() {
        for (text, path) in [
            (r#"{"n":"5"}"#, Some("'n'")),
            (r#"{"n" : "1.10", "t":"x"}"#, Some("'n'")),
            (r#"{"n":"\u0035"}"#, Some("'n'")),
            (r#"{"\u006e":"5"}"#, Some("'n'")),
            (r#"{"t":"5","o":{"t":"7","n":"-1e3"}}"#, Some("'o.n'")),
            (r#"{"o":{"b\"n":"5"}}"#, Some("'o.b\"n'")),
            (r#"{"l":[1,[],"5"]}"#, Some("'l'")),
            (r#"{"o":null,"n":1,"l":["5"]}"#, Some("'l'")),
            (r#"{"n":5,"t":"5","o":{"t":"5","n":5},"l":[5]}"#, None),
            (r#"{"t":"\"n\":\"5","n":5}"#, None),
            (r#"{"t":"[{\\","n":5,"named":"5"}"#, None),
            (r#"{"t":"2026-01-31","o":{"n":null,"t":"n"},"n":null}"#, None),
            (r#"{"x":{"n":"5"},"5":{"5":"5"},"n":1}"#, None),
        ] {
            for size in [1, 2, 3, 7, 1000] {
                let found = look(text, size);
                match path {
                    None => assert_eq!(found, Ok(()), "{text}"),
                    Some(path) => {
                        let fault = found.expect_err(text);
                        assert!(fault.contains(path) && fault.contains("a string"), "{fault}");
                    }
                }
            }
            // Beyond the bytes of one scan.
            for lead in 0..2 * GLANCE {
                let text = format!("{{\"t\":\"{}\",{}", "x".repeat(lead), &text[1..]);
                assert_eq!(look(&text, 1000).is_err(), path.is_some(), "{text}");
            }
        }
    }

    #[test]
    fn numbers_where_bytes_are_due() {
        let list = DataType::new_list(DataType::Binary, true);
        let fields = [("b", DataType::Binary), ("n", DataType::Int64), ("l", list)];
        let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
        let schema = Schema::new(fields.to_vec());
        for (text, fits) in [
            (r#"{"b":"00","n":12,"l":["00",null]}"#, true),
            (r#"{"b":null,"n":12,"x":12}"#, true),
            (r#"{"b":12}"#, false),
            (r#"{"b": true}"#, false),
            (r#"{"l":["00",-1]}"#, false),
        ] {
            let found = Records::new(&schema, TypesAt::default()).pass(text.as_bytes(), false);
            assert_eq!(found.is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn deep_records() {
        let nested = |depth| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!("{{\"t\":\"[[{{\",\"x\":{open}{close}}}\n")
        };
        let wide = format!("{{\"x\":[{}]}}\n", "[],".repeat(1000));
        for size in [1, 100, 100_000] {
            assert_eq!(look(&nested(126), size), Ok(()));
            assert!(look(&nested(127), size).unwrap_err().contains("127 deep"));
            assert_eq!(look(&wide, size), Ok(()));
        }
        let depth = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
        assert!(depth(&nested(126)) && !depth(&nested(127)), "the limit of the sample");
    }
}
