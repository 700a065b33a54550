//! Fields by name. A table takes one pass over the names; a search for each of 100,000 columns would
//! take as many passes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

/// Returns the schema with further fields at its end.
pub(crate) fn extended(schema: &SchemaRef, more: impl IntoIterator<Item = Field>) -> SchemaRef {
    let more: Vec<FieldRef> = more.into_iter().map(Arc::new).collect();
    // Equal pointers make comparisons of schemas fast.
    if more.is_empty() {
        return Arc::clone(schema);
    }
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain(more).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Positions of fields by name.
pub(crate) struct Places<'a>(HashMap<&'a str, Place>);

struct Place {
    first: usize,
    only: bool,
}

impl<'a> Places<'a> {
    pub(crate) fn of(fields: &'a [FieldRef]) -> Self {
        fields.iter().map(|field| field.name().as_str()).collect()
    }

    /// The place of the first field of this name.
    pub(crate) fn first(&self, name: &str) -> Option<usize> {
        self.0.get(name).map(|place| place.first)
    }

    /// The place of the only field of this name.
    pub(crate) fn only(&self, name: &str) -> Option<usize> {
        self.0.get(name).filter(|place| place.only).map(|place| place.first)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl<'a> FromIterator<&'a str> for Places<'a> {
    fn from_iter<T: IntoIterator<Item = &'a str>>(names: T) -> Self {
        let names = names.into_iter();
        let mut places = HashMap::with_capacity(names.size_hint().0);
        for (first, name) in names.enumerate() {
            let twice = |place: &mut Place| place.only = false;
            places.entry(name).and_modify(twice).or_insert(Place { first, only: true });
        }
        Self(places)
    }
}

/// Returns a look-up of types by the names of columns.
pub(crate) fn types_of<'a>(named: Option<&'a Schema>) -> impl Fn(&Field) -> Option<&'a DataType> {
    let places = Places::of(named.map_or(&[], |named| &**named.fields()));
    move |field| {
        named.zip(places.first(field.name())).map(|(named, at)| named.field(at).data_type())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_there_twice() {
        let places: Places<'_> = ["a", "b", "a"].into_iter().collect();
        assert_eq!((places.first("a"), places.only("a")), (Some(0), None));
        assert_eq!((places.first("b"), places.only("b")), (Some(1), Some(1)));
        assert_eq!((places.first("c"), places.only("c")), (None, None));
        assert!(places.has("a") && !places.has(""));
    }
}
