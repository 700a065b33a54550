//! Shapes of JSON values, and the types for all values of a shape.

use std::collections::HashSet;
use std::fmt;

use arrow_schema::{DataType, Field, Fields};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::input::text::named::{IMAGES, PAYLOAD};
use crate::names::Places;

/// Number of keys from which a hash table is faster than a linear search.
const FEW_KEYS: usize = 16;

/// The shape of a value, or the common shape of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
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
    /// Scalars together with lists or objects.
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

    /// Returns whether a part of the shape has no type.
    pub(super) fn is_mixed(&self) -> bool {
        match self {
            Self::Mixed => true,
            Self::List(of) => of.is_mixed(),
            Self::Object(keys) => keys.iter().any(|(_, shape)| shape.is_mixed()),
            _ => false,
        }
    }

    /// Returns whether a part of the shape was always null.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unknown_but(&|_| false)
    }

    /// Returns whether a part of the shape was always null, except members that are `known`.
    pub(super) fn is_unknown_but(&self, known: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Null => true,
            Self::List(of) => of.is_unknown(),
            Self::Object(keys) => {
                keys.iter().any(|(name, shape)| !known(name) && shape.is_unknown_but(known))
            }
            _ => false,
        }
    }

    /// Returns the number of values in a row.
    pub(super) fn keys(&self) -> u64 {
        match self {
            Self::List(of) => of.keys(),
            Self::Object(keys) => keys.iter().map(|(_, shape)| shape.keys()).sum(),
            _ => 1,
        }
    }

    /// Returns the type of the column `name`. In a change log (`of_log`), `of_row` has types for
    /// the columns of rows.
    pub(super) fn data_type_with(
        &self,
        name: &str,
        of_log: bool,
        of_row: &dyn Fn(&str) -> Option<DataType>,
    ) -> Option<DataType> {
        let Self::Object(keys) = self else { return self.data_type() };
        let is_image = IMAGES.contains(&name);
        if !of_log || !is_image && name != PAYLOAD {
            return self.data_type();
        }
        let member = |(name, shape): &(String, Self)| {
            let kind = match is_image {
                true => of_row(name).or_else(|| shape.data_type()),
                false => shape.data_type_with(name, of_log, of_row),
            };
            Some(Field::new(name, kind?, true))
        };
        Some(DataType::Struct(keys.iter().map(member).collect::<Option<Fields>>()?))
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

/// Completes the shapes of `before` and `after`, also within Kafka Connect's `payload`. In a log
/// that begins with inserts, `before` is null so far and gets the shape of `after`. In a change log
/// (`of_log`), both are rows of one table.
pub(super) fn complete_envelope(columns: &mut [(String, Shape)], of_log: bool) {
    let place = |name: &str| columns.iter().position(|(column, _)| column == name);
    let [after, before] = IMAGES.map(place);
    if let (Some(before), Some(after)) = (before, after)
        && let Ok([(_, before), (_, after)]) = columns.get_disjoint_mut([before, after])
    {
        match (before, after) {
            (before @ Shape::Null, after @ Shape::Object(_)) => *before = after.clone(),
            (Shape::Object(old), Shape::Object(new)) if of_log => share(old, new),
            _ => {}
        }
    }
    for (name, shape) in columns {
        if let (PAYLOAD, Shape::Object(keys)) = (&**name, shape) {
            complete_envelope(keys, of_log);
        }
    }
}

/// Unifies the numbers of columns that both rows have.
fn share(old: &mut [(String, Shape)], new: &mut [(String, Shape)]) {
    let places = places(old, new);
    for ((_, old), place) in old.iter_mut().zip(places) {
        if let Some(place) = place {
            share_column(old, &mut new[place].1);
        }
    }
}

/// Unifies nulls and numbers only: a number and its text differ.
fn share_column(old: &mut Shape, new: &mut Shape) {
    match (&mut *old, &mut *new) {
        (Shape::Object(old), Shape::Object(new)) => share(old, new),
        (Shape::List(old), Shape::List(new)) => share_column(old, new),
        (Shape::Null, _) => *old = new.clone(),
        (_, Shape::Null) => *new = old.clone(),
        (Shape::Integer { .. } | Shape::Float, Shape::Integer { .. } | Shape::Float) => {
            *old = old.clone().and(new.clone());
            *new = old.clone();
        }
        _ => {}
    }
}

/// Returns the columns of the rows in events.
pub(super) fn images(columns: &[(String, Shape)]) -> Vec<&[(String, Shape)]> {
    let mut found = Vec::new();
    for (name, shape) in columns {
        match (&**name, shape) {
            (PAYLOAD, Shape::Object(keys)) => found.extend(images(keys)),
            (name, Shape::Object(keys)) if IMAGES.contains(&name) => found.push(&keys[..]),
            _ => {}
        }
    }
    found
}

/// Returns the positions of `keys` among the keys `of` another object.
fn places(keys: &[(String, Shape)], of: &[(String, Shape)]) -> Vec<Option<usize>> {
    // Most objects of a file have the same keys in the same order.
    let same = keys.iter().zip(of).take_while(|((name, _), (key, _))| name == key).count();
    let mut places: Vec<Option<usize>> = (0..same).map(Some).collect();
    if same < keys.len() {
        let known: Places<'_> = of.iter().map(|(key, _)| key.as_str()).collect();
        places.extend(keys[same..].iter().map(|(name, _)| known.first(name)));
    }
    places
}

pub(super) fn merge_keys(into: &mut Vec<(String, Shape)>, keys: Vec<(String, Shape)>) {
    let places = places(&keys, into);
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
