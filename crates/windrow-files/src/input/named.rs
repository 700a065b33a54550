//! The columns that `schema` names: each must be in an input, or a name that is misspelt would be a column of
//! nulls, and the type that was meant for another would do nothing.
//!
//! NDJSON tells its columns by the way: the keys of a sample, and of the rest of a file while a named column has
//! not been seen. A stream cannot be looked at further. A key that is named may come behind its sample.

use std::collections::HashSet;

use arrow_schema::Schema;

use crate::error::{Error, Result};
use crate::setting::Setting;

/// The columns of `schema`, and those of them that no input was seen to have.
pub(super) struct Named {
    all: HashSet<String>,
    unseen: Vec<String>,
    /// Whether an input has columns that were not looked at.
    open: bool,
}

impl Named {
    pub(super) fn of(schema: Option<&Schema>) -> Self {
        let fields = schema.into_iter().flat_map(|schema| schema.fields().iter());
        let unseen: Vec<String> = fields.map(|field| field.name().clone()).collect();
        Self { all: unseen.iter().cloned().collect(), unseen, open: false }
    }

    /// Whether `schema` gives a type to this column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.all.contains(column)
    }

    /// Whether there is anything left to look for.
    pub(super) fn is_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// An input has these columns.
    pub(super) fn see<'a>(&mut self, columns: impl Iterator<Item = &'a str>) {
        if !self.is_seen() {
            let columns: HashSet<&str> = columns.collect();
            self.unseen.retain(|name| !columns.contains(name.as_str()));
        }
    }

    /// An input may have others than those that were seen.
    pub(super) fn leave_open(&mut self) {
        self.open = true;
    }

    /// Refuses names that no input has.
    ///
    /// # Errors
    /// `Usage` that names the first.
    pub(super) fn check(&self, schema: &Schema) -> Result<()> {
        let within = |name: &String| {
            let mut parts = name.match_indices('.').map(|(dot, _)| &name[..dot]);
            let is_nested = |name: &&str| {
                schema.field_with_name(name).is_ok_and(|field| field.data_type().is_nested())
            };
            parts.rfind(is_nested).map(str::to_owned)
        };
        let nested = self.unseen.iter().find_map(|name| Some((name, Some(within(name)?))));
        let (name, outer) = match (nested, self.unseen.first()) {
            (Some(found), _) => found,
            (None, Some(name)) if !self.open => (name, None),
            (None, _) => return Ok(()),
        };
        let advice = match outer {
            Some(outer) => format!("what is within '{outer}' gets its type from its values"),
            None => "correct it, or leave it out".to_owned(),
        };
        Err(Error::usage(format!("{}: no input has a column '{name}'; {advice}", Setting::Schema))
            .in_column(name.clone()))
    }
}
