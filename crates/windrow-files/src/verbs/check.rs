//! Checking: is every file sorted?

use std::sync::Arc;

use arrow_schema::Field;
use windrow::{IntoColumns, Layout, OrderCheck, SortColumn as Column};

use super::sort::Bound;
use crate::columns::Columns;
use crate::derived::Derived;
use crate::equality::{FloatOrder, plain_type};
use crate::error::Result;
use crate::input::{DeclaredColumn, Inputs, ReadOptions, Source, chosen};
use crate::paths;
use crate::watch::{Cancel, Watch};

/// What [`check`] looks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckSpec {
    /// The columns that every input is to be sorted by.
    pub by: Vec<Column>,
    /// Whether no two rows may be equal in them. Floats are then equal as in SQL.
    pub unique: bool,
    /// Which floats are equal, and where they stand.
    pub float_order: FloatOrder,
}

impl CheckSpec {
    /// Whether inputs are sorted by these columns.
    pub fn by(by: impl IntoColumns) -> Self {
        Self { by: by.into_columns(), unique: false, float_order: FloatOrder::Total }
    }

    /// Sets whether no two rows may be equal in them.
    pub fn unique(mut self, unique: bool) -> Self {
        self.unique = unique;
        self
    }

    /// Sets which floats are equal, and where they stand.
    pub fn float_order(mut self, order: FloatOrder) -> Self {
        self.float_order = order;
        self
    }
}

/// The outcome of [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checked {
    /// Every input is sorted.
    InOrder {
        /// Inputs.
        files: usize,
        /// Rows of all of them, if every format tells.
        rows: Option<u64>,
    },
    /// A row sorts before the row in front of it.
    OutOfOrder {
        /// The input, as messages name it.
        file: Arc<str>,
        /// The row in it, from 0.
        row: u64,
        /// The order that the input is in: the one it was checked by, but with nulls at the other end, or with other
        /// floats.
        sorted_by: Option<(Columns, FloatOrder)>,
    },
    /// A row has the key of the row in front of it.
    Repeated {
        /// The input, as messages name it.
        file: Arc<str>,
        /// The row in it, from 0.
        row: u64,
    },
}

/// Checks that every input is sorted as `spec` says, each by itself.
///
/// # Errors
/// `Usage` for a column that there is not, `Data` for an input that cannot be read, `Interrupted`.
///
/// # Cost
/// Reads each input once, on one thread, in the memory of one record batch; ends at the first offending row.
/// An input that is out of order is read up to three times more, if it has columns with nulls or floats and is no
/// stream.
pub fn check(inputs: &Inputs, spec: &CheckSpec, cancel: &Cancel) -> Result<Checked> {
    let layout = CheckedOrder::of(inputs, spec)?;
    for (ordinal, file) in inputs.files().iter().enumerate() {
        let file = Arc::clone(&file.name);
        match check_file(inputs, ordinal, &layout, spec.unique, cancel)? {
            None => {}
            Some((row, true)) => return Ok(Checked::Repeated { file, row }),
            Some((row, false)) => {
                let sorted_by = sorted_by(inputs, ordinal, spec, cancel)?;
                return Ok(Checked::OutOfOrder { file, row, sorted_by });
            }
        }
    }
    Ok(Checked::InOrder { files: inputs.files().len(), rows: inputs.rows() })
}

/// The order of `spec` with nulls at the other end, with the other order of floats, or both, if an input is in it.
fn sorted_by(
    inputs: &Inputs,
    file: usize,
    spec: &CheckSpec,
    cancel: &Cancel,
) -> Result<Option<(Columns, FloatOrder)>> {
    if !inputs.is_there_again(file) {
        return Ok(None);
    }
    let mut moved = spec.clone();
    for column in &mut moved.by {
        let field = field_of(inputs, &column.name);
        if field.is_some_and(|field| field.is_nullable()) {
            column.nulls_first = !column.nulls_first;
        }
    }
    let is_float = |column: &Column| {
        let field = field_of(inputs, &column.name);
        field.is_some_and(|field| plain_type(field.data_type()).is_floating())
    };
    let other = match spec.float_order {
        FloatOrder::Total => FloatOrder::Sql,
        FloatOrder::Sql => FloatOrder::Total,
    };
    // With unique keys floats are as in SQL whatever is said.
    let has_floats = !spec.unique && spec.by.iter().any(is_float);
    let mut others = Vec::new();
    if moved.by != spec.by {
        others.push(moved.clone());
    }
    if has_floats {
        others.push(spec.clone().float_order(other));
    }
    if has_floats && moved.by != spec.by {
        others.push(moved.float_order(other));
    }
    for spec in others {
        let layout = CheckedOrder::of(inputs, &spec)?;
        if check_file(inputs, file, &layout, spec.unique, cancel)?.is_none() {
            return Ok(Some((Columns(spec.by), spec.float_order)));
        }
    }
    Ok(None)
}

/// The field that a column of an order is of.
fn field_of(inputs: &Inputs, name: &str) -> Option<Field> {
    let schema = inputs.schema();
    paths::find(schema, name).map(|steps| paths::field(schema, &steps, name))
}

/// The first row out of order in one input, for `inspect`.
pub(crate) fn first_out_of_order(
    source: &Source,
    columns: &[DeclaredColumn],
    options: &ReadOptions,
) -> Result<Option<u64>> {
    let inputs = Inputs::open(std::slice::from_ref(source), options)?;
    let columns: Vec<Column> = columns
        .iter()
        .map(|column| Column {
            name: column.name.clone(),
            descending: column.descending,
            nulls_first: column.nulls_first,
        })
        .collect();
    let layout = CheckedOrder::of(&inputs, &CheckSpec::by(columns))?;
    Ok(check_file(&inputs, 0, &layout, false, &options.cancel)?.map(|(row, _)| row))
}

/// The first offending row of a file, from 0, and whether it repeats a key.
fn check_file(
    inputs: &Inputs,
    file: usize,
    order: &CheckedOrder,
    unique: bool,
    cancel: &Cancel,
) -> Result<Option<(u64, bool)>> {
    let mut check = OrderCheck::new(&order.layout, file);
    if unique {
        check = check.unique();
    }
    let mut before = 0;
    let mut units = inputs.units().iter().filter(|unit| unit.file == file).peekable();
    while let Some(unit) = units.next() {
        unit.ask_for();
        if let Some(next) = units.peek() {
            next.ask_for();
        }
        let mut first = unit.first_row;
        for batch in unit.read(&Watch::default())? {
            cancel.check()?;
            let batch = batch?;
            let mask = inputs.mask(&batch)?;
            let kept = match &mask {
                Some(mask) => chosen(&batch, mask)?,
                None => batch.clone(),
            };
            let kept = order.derived.as_ref().map_or(Ok(kept.clone()), |d| d.append(&kept))?;
            // The check counts the rows that it gets.
            let place = |row: u64| {
                let row = usize::try_from(row - before).unwrap_or(usize::MAX);
                let within = match &mask {
                    Some(mask) => mask.set_indices().nth(row).unwrap_or(row),
                    None => row,
                };
                first + within as u64
            };
            match check.push(&kept) {
                Ok(()) => {}
                Err(windrow::Error::OutOfOrder { row, .. }) => {
                    return Ok(Some((place(row), false)));
                }
                Err(windrow::Error::Repeated { row, .. }) => return Ok(Some((place(row), true))),
                Err(other) => return Err(other.into()),
            }
            first += batch.num_rows() as u64;
            before += kept.num_rows() as u64;
        }
    }
    Ok(None)
}

/// An order that rows are checked by.
struct CheckedOrder {
    layout: Layout,
    derived: Option<Derived>,
}

impl CheckedOrder {
    fn of(inputs: &Inputs, spec: &CheckSpec) -> Result<Self> {
        let floats = if spec.unique { FloatOrder::Sql } else { spec.float_order };
        let Bound { layout, derived, .. } =
            Bound::of(inputs, &spec.by, None, floats, |order| order)?;
        Ok(Self { layout, derived })
    }
}
