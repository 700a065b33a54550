//! Resolves the columns to be written.

use std::collections::{HashMap, HashSet};

use arrow_schema::Schema;

use crate::changelog;
use crate::error::{Error, Result};
use crate::names::Places;
use crate::settings::Setting;

/// Returns the positions in `schema` of the columns named by `select`; by default of all columns
/// not in `hidden`.
pub(super) fn projection(
    schema: &Schema,
    select: Option<&[String]>,
    hidden: &[String],
) -> Result<Vec<usize>> {
    let Some(select) = select else {
        let hidden: HashSet<&String> = hidden.iter().collect();
        let shown = |&index: &usize| !hidden.contains(schema.field(index).name());
        return Ok((0..schema.fields().len()).filter(shown).collect());
    };
    let (shown, mut seen) = (Shown::of(schema), HashSet::new());
    let mut columns = Vec::new();
    for name in select {
        let index = shown.find(name).map_err(|missing| missing.of(Setting::Select))?;
        if !seen.insert(index) {
            return Err(Error::usage(format!("`select`: {name:?} is named twice")));
        }
        columns.push(index);
    }
    Ok(columns)
}

/// Returns the positions of `columns` in `projection`; missing columns are appended to
/// `projection`.
pub(super) fn places(
    projection: &mut Vec<usize>,
    columns: impl IntoIterator<Item = usize>,
) -> Vec<usize> {
    let shown = projection.iter().enumerate();
    let mut known: HashMap<usize, usize> = shown.map(|(place, &column)| (column, place)).collect();
    let place = |column| {
        *known.entry(column).or_insert_with(|| {
            projection.push(column);
            projection.len() - 1
        })
    };
    columns.into_iter().map(place).collect()
}

/// Returns the positions of the columns in `names`.
pub(super) fn required(schema: &Schema, names: &[&Option<String>]) -> Result<Vec<usize>> {
    names.iter().copied().flatten().map(|name| find(schema, name)).collect()
}

/// Returns an error if a name matches no column of the user.
pub(super) fn check_names<'a>(
    schema: &Schema,
    mut names: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let shown = Shown::of(schema);
    names.try_for_each(|name| shown.find(name).map(drop))
}

/// Returns the position of a column.
pub(super) fn find(schema: &Schema, name: &str) -> Result<usize> {
    Shown::of(schema).find(name)
}

/// The columns by name, without windrow's own columns.
struct Shown<'a> {
    schema: &'a Schema,
    places: Places<'a>,
}

impl<'a> Shown<'a> {
    fn of(schema: &'a Schema) -> Self {
        Self { schema, places: Places::of(schema.fields()) }
    }

    /// Returns the position of a column. The error lists the existing names.
    fn find(&self, name: &str) -> Result<usize> {
        let own = |name: &str| changelog::is_own(name);
        match self.places.only(name).filter(|_| !own(name)) {
            Some(place) => Ok(place),
            None if self.places.has(name) && !own(name) => {
                Err(Error::usage(format!("more than one column is named {name:?}")))
            }
            None => {
                let names = self.schema.fields().iter().map(|field| field.name().as_str());
                Err(Error::missing_column(name, names.filter(|name| !own(name))))
            }
        }
    }
}
