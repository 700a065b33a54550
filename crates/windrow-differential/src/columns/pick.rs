//! The output columns of a join.

use std::rc::Rc;
use std::sync::Arc;

use windrow::arrow_schema::{Schema, SchemaRef};
use windrow::{Error, Result};

use super::build::Plan;
use super::shape::Shape;

/// A column of a join's output. A plain name means the left side's column, or else the right
/// side's. If both sides have the name outside of their keys, [`left`] or [`right`] selects the
/// side.
///
/// ```
/// use windrow_differential::{Pick, right};
///
/// let picks: [Pick; 2] = ["user".into(), right("name").named("friend")];
/// # let _ = picks;
/// ```
#[derive(Clone, Debug)]
pub struct Pick {
    side: Option<usize>,
    column: String,
    name: Option<String>,
}

/// Selects a column of the left side of a join.
pub fn left(column: impl Into<String>) -> Pick {
    Pick { side: Some(0), column: column.into(), name: None }
}

/// Selects a column of the right side of a join.
pub fn right(column: impl Into<String>) -> Pick {
    Pick { side: Some(1), column: column.into(), name: None }
}

impl Pick {
    /// Renames the column.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Returns the side, and the position in the side's schema.
    fn find(&self, sides: [&Shape; 2]) -> Result<(usize, usize)> {
        let place = |side: usize| sides[side].schema.fields().find(&self.column).map(|(at, _)| at);
        // Keys of both sides are equal, so either side serves.
        let is_of_keys =
            || sides.iter().all(|side| side.key.iter().any(|column| column.name == self.column));
        let side = match self.side {
            Some(side) => side,
            None => match (place(0), place(1)) {
                (Some(_), Some(_)) if !is_of_keys() => {
                    let message = format!("both sides have a column {:?}", self.column);
                    return Err(Error::InvalidOrder(message));
                }
                (None, Some(_)) => 1,
                _ => 0,
            },
        };
        place(side).map(|at| (side, at)).ok_or_else(|| {
            let asked = self.side.map_or(&sides[..], |side| &sides[side..=side]);
            let names = asked.iter().flat_map(|side| side.schema.fields().iter());
            let names: Vec<&str> = names.map(|field| field.name().as_str()).collect();
            Error::MissingColumn { column: self.column.clone(), available: names.join(", ") }
        })
    }
}

impl From<&str> for Pick {
    fn from(column: &str) -> Self {
        Self { side: None, column: column.into(), name: None }
    }
}

impl From<String> for Pick {
    fn from(column: String) -> Self {
        Self { side: None, column, name: None }
    }
}

/// Plans the rows of `picks`, and returns their schema.
pub(super) fn plan(
    sides: [&Shape; 2],
    picks: impl IntoIterator<Item = impl Into<Pick>>,
) -> Result<(Rc<Plan>, SchemaRef)> {
    let (mut columns, mut fields) = (Vec::new(), Vec::new());
    for pick in picks {
        let pick: Pick = pick.into();
        let (side, at) = pick.find(sides)?;
        let field = sides[side].schema.field(at).clone();
        let name = pick.name.unwrap_or_else(|| field.name().clone());
        if fields.iter().any(|field: &windrow::arrow_schema::Field| *field.name() == name) {
            return Err(Error::InvalidOrder(format!("more than one column is named {name:?}")));
        }
        fields.push(field.with_name(name));
        columns.push((side, at));
    }
    let schema = Arc::new(Schema::new(fields));
    Ok((Plan::new(&sides, &schema, &columns)?, schema))
}
