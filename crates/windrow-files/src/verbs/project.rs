//! Which columns are written.

use arrow_schema::Schema;

use crate::changelog;
use crate::error::{Error, Result};
use crate::setting::Setting;

/// Positions in `schema` of the columns named by `select`, or of all that are not `hidden`.
pub(super) fn projection(
    schema: &Schema,
    select: Option<&[String]>,
    hidden: &[String],
) -> Result<Vec<usize>> {
    let Some(select) = select else {
        let shown = |&index: &usize| !hidden.contains(schema.field(index).name());
        return Ok((0..schema.fields().len()).filter(shown).collect());
    };
    let mut columns = Vec::new();
    for name in select {
        let index = find(schema, name).map_err(|missing| missing.of(Setting::Select))?;
        if columns.contains(&index) {
            return Err(Error::usage(format!("`select`: {name:?} is named twice")));
        }
        columns.push(index);
    }
    Ok(columns)
}

/// Positions of the columns that are named.
pub(super) fn required(schema: &Schema, names: &[&Option<String>]) -> Result<Vec<usize>> {
    names.iter().copied().flatten().map(|name| find(schema, name)).collect()
}

/// Refuses names that no column of the user's has.
pub(super) fn check_names<'a>(
    schema: &Schema,
    mut names: impl Iterator<Item = &'a str>,
) -> Result<()> {
    names.try_for_each(|name| find(schema, name).map(drop))
}

/// The position of a column; the message has the names that there are, without those of windrow's own.
pub(super) fn find(schema: &Schema, name: &str) -> Result<usize> {
    let own = |name: &str| changelog::is_own(name);
    let names = || schema.fields().iter().map(|field| field.name().as_str());
    let mut found = names().enumerate().filter(|(_, other)| *other == name && !own(name));
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (Some(_), Some(_)) => Err(Error::usage(format!("more than one column is named {name:?}"))),
        (None, _) => Err(Error::missing_column(name, names().filter(|name| !own(name)))),
    }
}
