//! Columns named in `schema`. Each must exist in an input. Otherwise a misspelt name would add a
//! column of nulls, and the intended column would not get its type.
//!
//! The columns of NDJSON are the keys in a sample, and in the rest of the file while a named column
//! is unseen. The rest of a stream cannot be searched: a named key may come after the sample.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::names::Places;
use crate::settings::Setting;

/// The rows of an event.
pub(crate) const IMAGES: [&str; 2] = ["after", "before"];

/// The key around an event in Kafka Connect.
pub(crate) const PAYLOAD: &str = "payload";

/// Types of text columns, given by `schema`.
///
/// ```text
///  --schema amt:decimal(20,2)     {"amt":1.5}                     the column
///                                 {"op":"u","after":{"amt":1.5}}  the column of the row, in a change log
/// ```
#[derive(Clone, Default)]
pub(crate) struct NamedTypes {
    /// Names of columns, and names of columns in the rows of events.
    columns: Arc<HashSet<String>>,
    of_rows: Arc<HashSet<String>>,
    of_log: bool,
}

impl NamedTypes {
    /// Collects the named types for a text with these columns. In a change log (`of_log`), a name
    /// denotes the column of the rows, if the rows have one.
    pub(crate) fn of(named: Option<&SchemaRef>, columns: &Schema, of_log: bool) -> Self {
        let mut rows = HashSet::new();
        if of_log {
            rows_of(columns.fields(), &mut rows);
        }
        let fields = named.into_iter().flat_map(|named| named.fields());
        let names = fields.map(|field| field.name().clone());
        let (of_rows, columns) = names.partition(|name| rows.contains(name.as_str()));
        Self { columns: Arc::new(columns), of_rows: Arc::new(of_rows), of_log }
    }

    /// Returns all named types.
    pub(super) fn all(&self) -> TypesAt<'_> {
        let of_rows = Some(&*self.of_rows).filter(|names| !names.is_empty());
        TypesAt { here: Some(&self.columns), of_rows }
    }

    /// Returns the name in `schema` for a row's column at `path` in an event.
    pub(super) fn of_row<'a>(&self, path: &'a str) -> Option<&'a str> {
        let path =
            path.strip_prefix(PAYLOAD).and_then(|rest| rest.strip_prefix('.')).unwrap_or(path);
        let name = IMAGES.iter().find_map(|image| path.strip_prefix(image)?.strip_prefix('.'));
        name.filter(|name| self.of_log && !name.contains('.'))
    }
}

/// Collects the columns of the rows in events among `fields`.
fn rows_of<'a>(fields: &'a Fields, names: &mut HashSet<&'a str>) {
    for field in fields {
        match (field.name().as_str(), field.data_type()) {
            (PAYLOAD, DataType::Struct(fields)) => rows_of(fields, names),
            (name, DataType::Struct(row)) if IMAGES.contains(&name) => {
                names.extend(row.iter().map(|field| field.name().as_str()));
            }
            _ => {}
        }
    }
}

/// Returns the fields of `named` with a name in `names`.
pub(crate) fn named_within(named: Option<&Schema>, names: &HashSet<&str>) -> Vec<FieldRef> {
    let fields = named.into_iter().flat_map(|named| named.fields());
    fields.filter(|field| names.contains(field.name().as_str())).cloned().collect()
}

/// Named types of the columns of a text, or of the members of one column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TypesAt<'a> {
    here: Option<&'a HashSet<String>>,
    of_rows: Option<&'a HashSet<String>>,
}

impl<'a> TypesAt<'a> {
    /// Returns whether the type of `field` is named.
    pub(super) fn has(self, field: &Field) -> bool {
        self.here.is_some_and(|named| named.contains(field.name()))
    }

    /// Returns the named types of the members of `field`, whose own type is not named.
    pub(super) fn within(self, field: &Field) -> Self {
        match (self.of_rows, field.name().as_str()) {
            (None, _) => Self::default(),
            (of_rows, PAYLOAD) => Self { here: None, of_rows },
            (of_rows, name) if IMAGES.contains(&name) => Self { here: of_rows, of_rows: None },
            _ => Self::default(),
        }
    }
}

/// The columns of `schema`, and the columns not seen in any input so far.
pub(crate) struct Named {
    all: HashSet<String>,
    unseen: Vec<String>,
    /// Whether an input has columns that were not inspected.
    open: bool,
}

impl Named {
    pub(crate) fn of(schema: Option<&Schema>) -> Self {
        let fields = schema.into_iter().flat_map(|schema| schema.fields().iter());
        let unseen: Vec<String> = fields.map(|field| field.name().clone()).collect();
        Self { all: unseen.iter().cloned().collect(), unseen, open: false }
    }

    /// Returns whether `schema` gives a type to `column`.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.all.contains(column)
    }

    /// Returns whether all named columns were seen.
    pub(crate) fn is_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// Records the columns of an input.
    pub(crate) fn see<'a>(&mut self, columns: impl Iterator<Item = &'a str>) {
        if !self.is_seen() {
            let columns: HashSet<&str> = columns.collect();
            self.unseen.retain(|name| !columns.contains(name.as_str()));
        }
    }

    /// Records that an input may have more columns than were seen.
    pub(crate) fn leave_open(&mut self) {
        self.open = true;
    }

    /// Refuses names that no input has.
    ///
    /// # Errors
    /// `Usage` with such a name.
    pub(crate) fn check(&self, schema: &Schema) -> Result<()> {
        let places = Places::of(schema.fields());
        let within = |name: &String| {
            let mut parts = name.match_indices('.').map(|(dot, _)| &name[..dot]);
            let is_nested = |name: &&str| {
                places.first(name).is_some_and(|place| schema.field(place).data_type().is_nested())
            };
            parts.rfind(is_nested).map(str::to_owned)
        };
        let nested = self.unseen.iter().find_map(|name| Some((name, Some(within(name)?))));
        let (name, outer) = match (nested, self.unseen.first()) {
            (Some(found), _) => found,
            (None, Some(name)) if !self.open => (name, None),
            (None, _) => return Ok(()),
        };
        let of_row =
            |outer: &String| IMAGES.contains(&outer.rsplit('.').next().unwrap_or_default());
        let advice = match outer {
            Some(outer) if of_row(&outer) => {
                format!(
                    "the column of the row in a change log is called '{}'",
                    &name[outer.len() + 1..]
                )
            }
            Some(outer) => format!("what is within '{outer}' gets its type from its values"),
            None => "correct it, or leave it out".to_owned(),
        };
        Err(Error::usage(format!("{}: no input has a column '{name}'; {advice}", Setting::Schema))
            .in_column(name.clone()))
    }
}
