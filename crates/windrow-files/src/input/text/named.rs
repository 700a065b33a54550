//! The columns that `schema` names: each must be in an input, or a name that is misspelt would be a column of
//! nulls, and the type that was meant for another would do nothing.
//!
//! NDJSON tells its columns by the way: the keys of a sample, and of the rest of a file while a named column has
//! not been seen. A stream cannot be looked at further. A key that is named may come behind its sample.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::names::Places;
use crate::setting::Setting;

/// The rows of an event.
pub(crate) const IMAGES: [&str; 2] = ["after", "before"];

/// Where Kafka Connect puts an event.
pub(crate) const PAYLOAD: &str = "payload";

/// The types that `schema` gives to columns of text.
///
/// ```text
///  --schema amt:decimal(20,2)     {"amt":1.5}                     the column
///                                 {"op":"u","after":{"amt":1.5}}  the column of the row, in a change log
/// ```
#[derive(Clone, Default)]
pub(crate) struct NamedTypes {
    /// Names of columns, and of columns of rows.
    columns: Arc<HashSet<String>>,
    of_rows: Arc<HashSet<String>>,
    of_log: bool,
}

impl NamedTypes {
    /// Those of a text of these columns, which may be of a log. A name that a column of the row has is that one's.
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

    /// All of them.
    pub(super) fn all(&self) -> TypesAt<'_> {
        let of_rows = Some(&*self.of_rows).filter(|names| !names.is_empty());
        TypesAt { here: Some(&self.columns), of_rows }
    }

    /// The name by which a type is given to the column of a row that is there at `path`.
    pub(super) fn of_row<'a>(&self, path: &'a str) -> Option<&'a str> {
        let path =
            path.strip_prefix(PAYLOAD).and_then(|rest| rest.strip_prefix('.')).unwrap_or(path);
        let name = IMAGES.iter().find_map(|image| path.strip_prefix(image)?.strip_prefix('.'));
        name.filter(|name| self.of_log && !name.contains('.'))
    }
}

/// The columns of rows in events among `fields`.
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

/// Those of `named` that are called as one of `names`.
pub(crate) fn named_within(named: Option<&Schema>, names: &HashSet<&str>) -> Vec<FieldRef> {
    let fields = named.into_iter().flat_map(|named| named.fields());
    fields.filter(|field| names.contains(field.name().as_str())).cloned().collect()
}

/// The named types of the columns of a text, or of the members of one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TypesAt<'a> {
    here: Option<&'a HashSet<String>>,
    of_rows: Option<&'a HashSet<String>>,
}

impl<'a> TypesAt<'a> {
    /// Whether the type of `field` is named.
    pub(super) fn has(self, field: &Field) -> bool {
        self.here.is_some_and(|named| named.contains(field.name()))
    }

    /// Those of the members of `field`, whose own type is not named.
    pub(super) fn within(self, field: &Field) -> Self {
        match (self.of_rows, field.name().as_str()) {
            (None, _) => Self::default(),
            (of_rows, PAYLOAD) => Self { here: None, of_rows },
            (of_rows, name) if IMAGES.contains(&name) => Self { here: of_rows, of_rows: None },
            _ => Self::default(),
        }
    }
}

/// The columns of `schema`, and those of them that no input was seen to have.
pub(crate) struct Named {
    all: HashSet<String>,
    unseen: Vec<String>,
    /// Whether an input has columns that were not looked at.
    open: bool,
}

impl Named {
    pub(crate) fn of(schema: Option<&Schema>) -> Self {
        let fields = schema.into_iter().flat_map(|schema| schema.fields().iter());
        let unseen: Vec<String> = fields.map(|field| field.name().clone()).collect();
        Self { all: unseen.iter().cloned().collect(), unseen, open: false }
    }

    /// Whether `schema` gives a type to this column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.all.contains(column)
    }

    /// Whether there is anything left to look for.
    pub(crate) fn is_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// An input has these columns.
    pub(crate) fn see<'a>(&mut self, columns: impl Iterator<Item = &'a str>) {
        if !self.is_seen() {
            let columns: HashSet<&str> = columns.collect();
            self.unseen.retain(|name| !columns.contains(name.as_str()));
        }
    }

    /// An input may have others than those that were seen.
    pub(crate) fn leave_open(&mut self) {
        self.open = true;
    }

    /// Refuses names that no input has.
    ///
    /// # Errors
    /// `Usage` that names the first.
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
