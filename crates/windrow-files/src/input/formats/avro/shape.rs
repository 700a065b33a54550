//! Binary layout of an Avro schema's values, in enough detail to walk over them.
//!
//! ```text
//!  {"type": "record", "fields": [id: long, name: ["null", "string"]]}     Record [Varint, Union [Fixed(0), Bytes]]
//! ```
//! Avro files do not mark the ends of rows, so a decoder has to trust its input. This module walks
//! over a block first. Invariant: a validated block has exactly the declared number of rows, and no
//! byte more.

use std::collections::HashMap;

use serde_json::Value;

use crate::thrift::Thrift;

/// Maximum nesting of types.
const MOST_DEPTH: usize = 61;

/// Maximum number of values in a row. A type counts wherever the schema names it: a schema of 2 KB
/// can give a row millions of values, at [`LEAF_BYTES`] each in the decoder.
const MOST_LEAVES: usize = 10_000;

/// Memory of the decoder for each value of a row: capacity for 1,024 values.
const LEAF_BYTES: usize = 11 << 10;

/// Maximum number of values without bytes in a block, apart from its rows. An array of nulls may
/// declare any number.
const MOST_NOTHINGS: u64 = 1 << 20;

/// Binary layout of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A fixed number of bytes.
    Fixed(usize),
    /// A number with seven bits in each byte.
    Varint,
    /// A length, and as many bytes.
    Bytes,
    Record(Vec<Shape>),
    /// Runs of values.
    Array(Box<Shape>),
    /// Runs of names and values.
    Map(Box<Shape>),
    /// The index of a branch, and a value of this branch.
    Union(Vec<Shape>),
}

/// Types by their full names, and the number of values in the schema so far.
#[derive(Default)]
struct TypeTable {
    types: HashMap<String, Named>,
    leaves: usize,
}

/// A named type.
struct Named {
    shape: Shape,
    leaves: usize,
    height: usize,
}

impl TypeTable {
    /// Adds values to the count of the schema.
    ///
    /// # Errors
    /// If the schema has too many.
    fn count(&mut self, leaves: usize) -> Result<(), String> {
        self.leaves += leaves;
        if self.leaves > MOST_LEAVES {
            return Err(format!(
                "the Avro schema has more than {MOST_LEAVES} values in a row, types that it names more than once counted each \
                 time"
            ));
        }
        Ok(())
    }

    fn insert(&mut self, name: String, shape: &Shape) {
        let (leaves, height) = shape.measures();
        self.types.insert(name, Named { shape: shape.clone(), leaves, height });
    }

    /// Looks up a named type for use at `depth`. Returns `None` for an undefined type.
    fn named(&mut self, full: &str, name: &str, depth: usize) -> Result<Option<Shape>, String> {
        let Some(found) = self.types.get(full).or_else(|| self.types.get(name)) else {
            return Ok(None);
        };
        let (leaves, height) = (found.leaves, found.height);
        if depth + height > MOST_DEPTH {
            return Err(too_deep());
        }
        self.count(leaves)?;
        Ok(self.types.get(full).or_else(|| self.types.get(name)).map(|found| found.shape.clone()))
    }
}

fn too_deep() -> String {
    format!("the Avro schema is nested more than {MOST_DEPTH} deep")
}

impl Shape {
    /// Returns the shape of a row by the file's schema.
    pub(super) fn parse(schema: &str) -> Result<Self, String> {
        let schema = serde_json::from_str(schema)
            .map_err(|fault| format!("the Avro schema is no JSON: {fault}"))?;
        let shape = Self::of(&schema, "", &mut TypeTable::default(), 0)?;
        match shape {
            Self::Record(_) => Ok(shape),
            _ => Err("the Avro schema is no record, so that there are no columns".to_owned()),
        }
    }

    fn of(
        schema: &Value,
        space: &str,
        known: &mut TypeTable,
        depth: usize,
    ) -> Result<Self, String> {
        if depth > MOST_DEPTH {
            return Err(too_deep());
        }
        match schema {
            Value::String(name) => Self::named(name, space, known, depth),
            Value::Array(branches) => {
                let branches = branches.iter().map(|of| Self::of(of, space, known, depth + 1));
                Ok(Self::Union(branches.collect::<Result<_, _>>()?))
            }
            Value::Object(parts) => {
                let part = |name: &str| parts.get(name).ok_or_else(|| lacks(name));
                let kind = part("type")?;
                let Some(kind) = kind.as_str() else {
                    return Self::of(kind, space, known, depth + 1);
                };
                let text = |name: &str| parts.get(name).and_then(Value::as_str);
                match kind {
                    "array" => {
                        let items = Self::of(part("items")?, space, known, depth + 1)?;
                        Ok(Self::Array(Box::new(items)))
                    }
                    "map" => {
                        let values = Self::of(part("values")?, space, known, depth + 1)?;
                        Ok(Self::Map(Box::new(values)))
                    }
                    "record" | "error" | "enum" | "fixed" => {
                        let name = text("name").ok_or_else(|| lacks("name"))?;
                        let (name, space) = full(name, text("namespace").unwrap_or(space));
                        let shape = match kind {
                            "enum" => {
                                known.count(1)?;
                                Self::Varint
                            }
                            "fixed" => {
                                known.count(1)?;
                                let size = part("size")?.as_u64();
                                let size = size.and_then(|size| usize::try_from(size).ok());
                                Self::Fixed(size.ok_or_else(|| lacks("size"))?)
                            }
                            _ => {
                                let fields = part("fields")?.as_array();
                                let fields = fields.ok_or_else(|| lacks("fields"))?.iter();
                                let fields = fields.map(|field| {
                                    let kind = field.get("type").ok_or_else(|| lacks("type"))?;
                                    Self::of(kind, &space, known, depth + 1)
                                });
                                Self::Record(fields.collect::<Result<_, _>>()?)
                            }
                        };
                        known.insert(name, &shape);
                        Ok(shape)
                    }
                    name => Self::named(name, space, known, depth),
                }
            }
            _ => Err("the Avro schema has a type that is none".to_owned()),
        }
    }

    /// Returns a primitive type, or a type defined before.
    fn named(name: &str, space: &str, known: &mut TypeTable, depth: usize) -> Result<Self, String> {
        let shape = match name {
            "null" => Self::Fixed(0),
            "boolean" => Self::Fixed(1),
            "float" => Self::Fixed(4),
            "double" => Self::Fixed(8),
            "int" | "long" => Self::Varint,
            "bytes" | "string" => Self::Bytes,
            name => {
                let (full, _) = full(name, space);
                return known.named(&full, name, depth)?.ok_or_else(|| {
                    format!(
                        "the Avro type {name:?} is defined nowhere, or contains itself, which is not read"
                    )
                });
            }
        };
        known.count(1)?;
        Ok(shape)
    }

    /// Returns the number of values, and the maximum nesting.
    fn measures(&self) -> (usize, usize) {
        let of = |parts: &[Self]| {
            let parts = parts.iter().map(Self::measures);
            parts.fold((0, 0), |(leaves, height), part| (leaves + part.0, height.max(part.1 + 1)))
        };
        match self {
            Self::Fixed(_) | Self::Varint | Self::Bytes => (1, 0),
            Self::Record(parts) | Self::Union(parts) => of(parts),
            Self::Array(items) | Self::Map(items) => of(std::slice::from_ref(&**items)),
        }
    }

    /// Returns the decoder's memory for this shape.
    pub(super) fn decoder_bytes(&self) -> usize {
        self.measures().0 * LEAF_BYTES
    }

    /// Returns the length of the longest row. Fails unless `data` is exactly `rows` rows.
    pub(super) fn longest_of(&self, rows: u64, data: &[u8]) -> Result<usize, String> {
        let (mut rest, mut longest, mut nothings) = (data, 0, MOST_NOTHINGS);
        for _ in 0..rows {
            let before = rest.len();
            self.skip(&mut rest, &mut nothings).ok_or_else(|| damaged(data.len() - before))?;
            if rest.len() == before {
                return Err(
                    "the Avro file has rows without any bytes, which are not read".to_owned()
                );
            }
            longest = longest.max(before - rest.len());
        }
        if rest.is_empty() { Ok(longest) } else { Err(damaged(data.len() - rest.len())) }
    }

    /// Skips a value. Returns `None` if `rest` does not start with one.
    fn skip(&self, rest: &mut &[u8], nothings: &mut u64) -> Option<()> {
        match self {
            Self::Fixed(bytes) => *rest = rest.get(*bytes..)?,
            Self::Varint => drop(long(rest)?),
            Self::Bytes => bytes(rest)?,
            Self::Record(fields) => {
                for field in fields {
                    field.skip(rest, nothings)?;
                }
            }
            Self::Array(of) => runs(rest, nothings, |rest, nothings| of.skip(rest, nothings))?,
            Self::Map(of) => runs(rest, nothings, |rest, nothings| {
                bytes(rest)?;
                of.skip(rest, nothings)
            })?,
            Self::Union(branches) => {
                let branch = usize::try_from(long(rest)?).ok()?;
                branches.get(branch)?.skip(rest, nothings)?;
            }
        }
        Some(())
    }
}

/// Skips runs of values.
fn runs(
    rest: &mut &[u8],
    nothings: &mut u64,
    mut skip: impl FnMut(&mut &[u8], &mut u64) -> Option<()>,
) -> Option<()> {
    loop {
        let mut count = long(rest)?;
        if count == 0 {
            return Some(());
        }
        if count < 0 {
            // Length of the run in bytes: not needed, since the loop walks over its values.
            long(rest)?;
            count = count.checked_neg()?;
        }
        for _ in 0..count {
            let before = rest.len();
            skip(rest, nothings)?;
            if rest.len() == before {
                *nothings = nothings.checked_sub(1)?;
            }
        }
    }
}

/// Skips a length and as many bytes.
fn bytes(rest: &mut &[u8]) -> Option<()> {
    let length = usize::try_from(long(rest)?).ok()?;
    *rest = rest.get(length..)?;
    Some(())
}

/// Takes the number at the start of `rest`.
pub(super) fn long(rest: &mut &[u8]) -> Option<i64> {
    Thrift(rest).integer().ok()
}

/// Returns the full name of a type, and its namespace.
fn full(name: &str, space: &str) -> (String, String) {
    match name.rsplit_once('.') {
        Some((space, _)) => (name.to_owned(), space.to_owned()),
        None if space.is_empty() => (name.to_owned(), String::new()),
        None => (format!("{space}.{name}"), space.to_owned()),
    }
}

fn lacks(part: &str) -> String {
    format!("the Avro schema has a type without {part:?}")
}

fn damaged(at: usize) -> String {
    format!("the Avro file is damaged: byte {at} of a block is no value of its type")
}
