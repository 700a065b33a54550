//! The verb `check`: tests whether every file is sorted.

use std::fmt;
use std::sync::Arc;

use arrow_schema::Field;
use windrow::{IntoColumns, OrderCheck, SortColumn as Column};

use super::Arrangement;
use crate::columns::Columns;
use crate::equality::plain_type;
use crate::error::Result;
use crate::input::{DeclaredColumn, Inputs, ReadOptions, Source, Unit};
use crate::paths;
use crate::settings::{FloatOrder, setters};
use crate::watch::{Cancel, Watch};

/// Specification of [`check`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckSpec {
    /// Columns of the expected order.
    pub by: Vec<Column>,
    /// Whether keys must be unique. Floats are then equal as in SQL.
    pub unique: bool,
    /// Equality and order of floats.
    pub float_order: FloatOrder,
}

impl CheckSpec {
    /// Checks for an order by these columns.
    pub fn by(by: impl IntoColumns) -> Self {
        Self { by: by.into_columns(), unique: false, float_order: FloatOrder::Total }
    }

    setters! {
        /// Sets whether keys must be unique.
        unique: bool;
        /// Sets the equality and order of floats.
        float_order: FloatOrder;
    }
}

/// The outcome of [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checked {
    /// Every input is sorted.
    InOrder {
        /// Number of inputs.
        files: usize,
        /// Number of rows of all inputs, if every format records it.
        rows: Option<u64>,
    },
    /// A row sorts before its predecessor.
    OutOfOrder {
        /// Name of the input in messages.
        file: Arc<str>,
        /// Row number in the input, from 0.
        row: u64,
        /// The actual order of the input, if it differs from the expected order only in the
        /// position of nulls or in the order of floats.
        sorted_by: Option<(Columns, FloatOrder)>,
    },
    /// A row has the same key as its predecessor.
    Repeated {
        /// Name of the input in messages.
        file: Arc<str>,
        /// Row number in the input, from 0.
        row: u64,
    },
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InOrder { files, rows } => {
                let rows = rows.map(|rows| format!(", {rows} rows")).unwrap_or_default();
                write!(f, "in order: {files} files{rows}")
            }
            Self::OutOfOrder { file, row, .. } => {
                write!(f, "{file}: row {row} sorts before the row in front of it")
            }
            Self::Repeated { file, row } => {
                write!(f, "{file}: row {row} has the same key as the row before it")
            }
        }
    }
}

/// Checks that each input by itself is sorted as `spec` requires.
///
/// # Errors
/// `Usage` for an unknown column, `Data` for an unreadable input, `Interrupted`.
///
/// # Cost
/// Reads each input once, on one thread, in the memory of one record batch. Ends at the first
/// offending row. If columns have nulls or floats, an unsorted input is read up to three times
/// more, unless it is a stream.
pub fn check(inputs: &Inputs, spec: &CheckSpec, cancel: &Cancel) -> Result<Checked> {
    let order = expected(inputs, spec)?;
    for (ordinal, file) in inputs.files().iter().enumerate() {
        let file = Arc::clone(&file.name);
        match check_file(inputs, ordinal, &order, spec.unique, cancel)? {
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

/// Tries the order of `spec` with nulls at the opposite end, with the opposite order of floats, and
/// with both. Returns the order in which the input is sorted.
fn sorted_by(
    inputs: &Inputs,
    file: usize,
    spec: &CheckSpec,
    cancel: &Cancel,
) -> Result<Option<(Columns, FloatOrder)>> {
    if inputs.files()[file].bytes.is_none() {
        return Ok(None);
    }
    let mut moved = spec.by.clone();
    for column in &mut moved {
        let field = field_of(inputs, &column.name);
        column.nulls_first ^= field.is_some_and(|field| field.is_nullable());
    }
    let is_float = |column: &Column| {
        let field = field_of(inputs, &column.name);
        field.is_some_and(|field| plain_type(field.data_type()).is_floating())
    };
    let other = match spec.float_order {
        // With unique keys, floats are always compared as in SQL.
        order if spec.unique || !spec.by.iter().any(is_float) => order,
        FloatOrder::Total => FloatOrder::Sql,
        FloatOrder::Sql => FloatOrder::Total,
    };
    let mut tried = vec![(&spec.by, spec.float_order)];
    for order in [(&moved, spec.float_order), (&spec.by, other), (&moved, other)] {
        if tried.contains(&order) {
            continue;
        }
        tried.push(order);
        let (by, floats) = order;
        let spec = CheckSpec { by: by.clone(), ..spec.clone().float_order(floats) };
        let expected = expected(inputs, &spec)?;
        if check_file(inputs, file, &expected, spec.unique, cancel)?.is_none() {
            return Ok(Some((Columns(spec.by), floats)));
        }
    }
    Ok(None)
}

/// Returns the field for a column of an order.
fn field_of(inputs: &Inputs, name: &str) -> Option<Field> {
    let schema = inputs.schema();
    paths::find(schema, name).map(|steps| paths::field(schema, &steps, name))
}

/// Returns the first unsorted row of an input, for `inspect`.
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
    let order = expected(&inputs, &CheckSpec::by(columns))?;
    Ok(check_file(&inputs, 0, &order, false, &options.cancel)?.map(|(row, _)| row))
}

/// Returns the first offending row of a file, from 0, and whether it repeats a key.
fn check_file(
    inputs: &Inputs,
    file: usize,
    order: &Arrangement,
    unique: bool,
    cancel: &Cancel,
) -> Result<Option<(u64, bool)>> {
    let mut check = OrderCheck::new(&order.layout, file);
    if unique {
        check = check.unique();
    }
    let mut before = 0;
    let mut units = inputs.units.iter().filter(|unit| unit.file == file).peekable();
    while let Some(unit) = units.next() {
        [unit].into_iter().chain(units.peek().copied()).for_each(Unit::ask_for);
        let mut first = unit.first_row;
        for batch in unit.read(&Watch::default())? {
            cancel.check()?;
            let batch = batch?;
            let rows = batch.num_rows() as u64;
            let (kept, mask) = inputs.selected(batch)?;
            let kept = order.derived.append(&kept)?;
            // The check numbers its own input, the selected rows.
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
            first += rows;
            before += kept.num_rows() as u64;
        }
    }
    Ok(None)
}

/// Returns the expected order, bound to the inputs.
fn expected(inputs: &Inputs, spec: &CheckSpec) -> Result<Arrangement> {
    let floats = if spec.unique { FloatOrder::Sql } else { spec.float_order };
    Arrangement::by(inputs, &spec.by, None, floats, |order| order)
}
