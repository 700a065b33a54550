//! Removes duplicates: keeps one row of each key, or none if several rows have the key.
//!
//! Keys are equal as in SQL: nulls are one key, -0.0 equals 0.0, and all NaN are equal. The output
//! has 0.0 and a single NaN in place of such values, so that it is sorted whichever row is kept.

use std::sync::Arc;

use arrow_array::RecordBatch;
use windrow::{IntoColumns, Order, SortColumn as Column};

use super::sift::{Alone, Sifting};
use super::{Arrangement, Transform, project};
use crate::columns::names;
use crate::equality::{floats, with_one_form};
use crate::error::{Result, failed};
use crate::input::Inputs;
use crate::settings::{FloatOrder, Kept, setters};

/// Rows without duplicate keys.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DedupeSpec {
    /// The columns to compare; all columns by default.
    pub key: Option<Vec<Column>>,
    /// The row to keep.
    pub kept: Kept,
    /// The columns to write, in this order; all columns by default.
    pub select: Option<Vec<String>>,
}

impl DedupeSpec {
    /// Keeps one of several rows that are equal in all columns.
    pub fn whole_rows() -> Self {
        Self::default()
    }

    /// Keeps one of several rows that are equal in these columns.
    pub fn by_key(key: impl IntoColumns) -> Self {
        Self { key: Some(key.into_columns()), ..Self::default() }
    }

    setters! {
        /// Sets the row to keep.
        kept: Kept;
        /// Sets the columns to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
    }

    /// Returns the columns with values that the verb interprets: the key. `None` means all columns,
    /// if whole rows are compared.
    pub fn compared(&self) -> Option<Vec<String>> {
        self.key.as_ref().map(names)
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        let all = || {
            let fields = inputs.schema().fields().iter();
            fields.map(|field| windrow::asc(field.name().as_str())).collect()
        };
        let key: Vec<Column> = self.key.clone().unwrap_or_else(all);
        let ruled = |order: Order| match self.kept {
            Kept::First => order.first(),
            Kept::Last => order.last(),
            Kept::LastKnown => order.last_known(),
            Kept::None => order,
        };
        let (select, floats) = (self.select.as_deref(), FloatOrder::Total);
        let mut arrangement = Arrangement::by(inputs, &key, select, floats, ruled)?;
        bring_key_to_one_form(&mut arrangement, inputs);
        if self.kept == Kept::None {
            sift(&mut arrangement)?;
        }
        Ok(arrangement)
    }
}

/// Adds a sift that removes keys with several rows.
fn sift(arrangement: &mut Arrangement) -> Result<()> {
    let schema = arrangement.schema()?;
    let shown: Vec<usize> = (0..arrangement.projection.len()).collect();
    let places = project::places(&mut arrangement.projection, arrangement.layout.key());
    let start = move || Box::new(Alone::new(places.clone(), shown.clone())) as _;
    arrangement.sifting =
        Some(Sifting { schema, keeps_order: true, copies: 4, start: Box::new(start) });
    Ok(())
}

/// Normalizes the floats of the key, in place and in derived columns.
pub(super) fn bring_key_to_one_form(arrangement: &mut Arrangement, inputs: &Inputs) {
    let floats = floats(inputs.schema(), arrangement.layout.key());
    arrangement.derived.bring_to_one_form();
    arrangement.transform = (!floats.is_empty()).then(|| {
        Arc::new(move |batch: &RecordBatch, _| with_one_form(batch, &floats).map_err(failed))
            as Transform
    });
}
