//! Paths into structs: `user.id` is the member `id` of the column `user`.
//!
//! ```text
//!  id            a column of this name, also where it holds dots
//!  user.id       else the member of a struct
//!  "a.b".c       with quotes around a part that is to be one name
//! ```
//! A column takes precedence over a path of the same text. A value within a null struct is null.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use arrow_select::nullif::nullif;

use crate::names::Places;

/// The path of a value as indices: of the column, then of the members.
pub(crate) type Steps = Vec<usize>;

/// Resolves names in a schema.
pub(crate) struct Paths<'a> {
    schema: &'a Schema,
    places: Places<'a>,
}

impl<'a> Paths<'a> {
    pub(crate) fn of(schema: &'a Schema) -> Self {
        Self { schema, places: Places::of(schema.fields()) }
    }

    /// Returns the steps to `name`; `None` if no column or more than one has the name.
    pub(crate) fn find(&self, name: &str) -> Option<Steps> {
        if let Some(place) = self.places.only(name) {
            return Some(vec![place]);
        }
        let mut steps = Vec::new();
        within(self.schema.fields(), name, &mut steps).then_some(steps)
    }

    /// Returns true if `name` denotes a member of a struct.
    pub(crate) fn is_path(&self, name: &str) -> bool {
        self.find(name).is_some_and(|steps| steps.len() > 1)
    }
}

/// Resolves a single name.
pub(crate) fn find(schema: &Schema, name: &str) -> Option<Steps> {
    Paths::of(schema).find(name)
}

/// Returns the index of the only field named `name`.
fn only(fields: &Fields, name: &str) -> Option<usize> {
    let mut found = fields.iter().enumerate().filter(|(_, field)| field.name() == name);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Some(place),
        _ => None,
    }
}

/// Appends the steps of `path` within `fields` to `steps`; returns false if the path leads nowhere.
fn within(fields: &Fields, path: &str, steps: &mut Steps) -> bool {
    let (whole, rest) = quoted(path);
    if let Some(name) = &whole {
        let Some(place) = only(fields, name) else { return false };
        steps.push(place);
        return match rest {
            "" => true,
            rest => rest.strip_prefix('.').is_some_and(|rest| below(&fields[place], rest, steps)),
        };
    }
    if let Some(place) = only(fields, path) {
        steps.push(place);
        return true;
    }
    // Names may contain dots: the longest name whose rest resolves is taken.
    for (dot, _) in path.rmatch_indices('.') {
        if let Some(place) = only(fields, &path[..dot]) {
            let length = steps.len();
            steps.push(place);
            if below(&fields[place], &path[dot + 1..], steps) {
                return true;
            }
            steps.truncate(length);
        }
    }
    false
}

fn below(field: &Field, path: &str, steps: &mut Steps) -> bool {
    match field.data_type() {
        DataType::Struct(fields) => within(fields, path, steps),
        _ => false,
    }
}

/// Splits `path` after a quoted name at its start; returns the unquoted name and the rest.
fn quoted(path: &str) -> (Option<String>, &str) {
    let Some(inner) = path.strip_prefix('"') else { return (None, path) };
    let mut name = String::new();
    let mut rest = inner;
    while let Some(end) = rest.find('"') {
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return (Some(name), rest),
        }
    }
    (None, path)
}

/// Returns the field at `steps`, renamed to `name`; nullable if any field on the path is.
pub(crate) fn field(schema: &Schema, steps: &[usize], name: &str) -> Field {
    let mut field = Field::new(name, DataType::Null, true);
    let mut fields = schema.fields();
    let mut nullable = false;
    for &step in steps {
        let here = &fields[step];
        nullable |= here.is_nullable();
        field = Field::clone(here);
        if let DataType::Struct(members) = here.data_type() {
            fields = members;
        }
    }
    field.with_name(name).with_nullable(nullable)
}

/// Returns the values at `steps`.
///
/// # Errors
/// Fails for a type without a null mask within a null struct, and for values of another type than
/// the schema's.
pub(crate) fn values(batch: &RecordBatch, steps: &[usize]) -> Result<ArrayRef, ArrowError> {
    let (mut values, mut nulls) = (batch.column(steps[0]), None);
    for &step in &steps[1..] {
        nulls = NullBuffer::union(nulls.as_ref(), values.nulls());
        let parent = values.as_struct_opt().filter(|parent| step < parent.num_columns());
        let no_struct = || format!("expected a struct, got {}", values.data_type());
        values = parent.ok_or_else(|| ArrowError::SchemaError(no_struct()))?.column(step);
    }
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => nullif(values, &BooleanArray::new(!nulls.inner(), None)),
        None => Ok(ArrayRef::clone(values)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StructArray};

    use super::*;

    fn schema() -> Schema {
        let leaf = |name: &str| Field::new(name, DataType::Int64, true);
        let user = Fields::from(vec![leaf("id"), leaf("a.b")]);
        let inner = Fields::from(vec![leaf("c")]);
        Schema::new(vec![
            leaf("id"),
            Field::new("user", DataType::Struct(user), true),
            Field::new("a.b", DataType::Struct(inner.clone()), false),
            leaf("user.x"),
            Field::new("a", DataType::Struct(Fields::from(vec![leaf("b")])), false),
            leaf("twice"),
            leaf("twice"),
        ])
    }

    #[test]
    fn names_come_before_paths() {
        let schema = schema();
        let find = |name: &str| find(&schema, name);
        assert_eq!(find("id"), Some(vec![0]));
        assert_eq!(find("user.id"), Some(vec![1, 0]));
        assert_eq!(find("user.a.b"), Some(vec![1, 1]));
        assert_eq!(find("user.\"a.b\""), Some(vec![1, 1]));
        assert_eq!(find("user.x"), Some(vec![3]));
        assert_eq!(find("a.b"), Some(vec![2]));
        assert_eq!(find("a.b.c"), Some(vec![2, 0]));
        assert_eq!(find("\"a.b\".c"), Some(vec![2, 0]));
        assert_eq!(find("\"a\".b"), Some(vec![4, 0]));
        for none in ["", ".", "user.", "user.y", "id.x", "twice", "\"user", "user\"", "\"user\"x"] {
            assert_eq!(find(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_within_a_null_is_null() {
        let ids = Arc::new(Int64Array::from(vec![Some(1), Some(2), None]));
        let fields = Fields::from(vec![Field::new("id", DataType::Int64, true)]);
        let nulls = NullBuffer::from(vec![true, false, true]);
        let user = StructArray::new(fields.clone(), vec![ids], Some(nulls));
        let schema = Schema::new(vec![Field::new("user", DataType::Struct(fields), true)]);
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(user)]).unwrap();
        let steps = find(&schema, "user.id").unwrap();
        let found = values(&batch, &steps).unwrap();
        assert_eq!(found.as_ref(), &Int64Array::from(vec![Some(1), None, None]) as &dyn Array);
        assert!(field(&schema, &steps, "user.id").is_nullable());
    }
}
