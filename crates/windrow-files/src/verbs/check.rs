//! Checking: is every file sorted?

use std::sync::Arc;

use windrow::{IntoColumns, Layout, OrderCheck, SortColumn as Column};

use super::sort::Bound;
use crate::columns::Columns;
use crate::derived::Derived;
use crate::error::Result;
use crate::input::{DeclaredColumn, Inputs, ReadOptions, Source, chosen};
use crate::watch::{Cancel, Watch};

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
        /// The order that the input is in: the one it was checked by, but with nulls at the other end.
        sorted_by: Option<Columns>,
    },
    /// A row has the key of the row in front of it.
    Repeated {
        /// The input, as messages name it.
        file: Arc<str>,
        /// The row in it, from 0.
        row: u64,
    },
}

/// Checks that every input is sorted by these columns, each by itself; if `unique`, also that no two rows
/// are equal in them.
///
/// # Errors
/// `Usage` for a column that there is not, `Data` for an input that cannot be read, `Interrupted`.
///
/// # Cost
/// Reads each input once, on one thread, in the memory of one record batch; ends at the first offending row.
/// An input that is out of order is read once more, if it has columns with nulls and is no stream.
pub fn check(
    inputs: &Inputs,
    by: impl IntoColumns,
    unique: bool,
    cancel: &Cancel,
) -> Result<Checked> {
    let by = by.into_columns();
    let layout = CheckedOrder::of(inputs, &by)?;
    for (ordinal, file) in inputs.files().iter().enumerate() {
        let file = Arc::clone(&file.name);
        match check_file(inputs, ordinal, &layout, unique, cancel)? {
            None => {}
            Some((row, true)) => return Ok(Checked::Repeated { file, row }),
            Some((row, false)) => {
                let sorted_by = sorted_by(inputs, ordinal, by, unique, cancel)?;
                return Ok(Checked::OutOfOrder { file, row, sorted_by });
            }
        }
    }
    Ok(Checked::InOrder { files: inputs.files().len(), rows: inputs.rows() })
}

/// The order `by`, with nulls at the other end, if an input is in it.
fn sorted_by(
    inputs: &Inputs,
    file: usize,
    mut by: Vec<Column>,
    unique: bool,
    cancel: &Cancel,
) -> Result<Option<Columns>> {
    let mut other = false;
    for column in &mut by {
        let field = inputs.schema().field_with_name(&column.name);
        if field.is_ok_and(|field| field.is_nullable()) {
            column.nulls_first = !column.nulls_first;
            other = true;
        }
    }
    if !other || !inputs.is_there_again(file) {
        return Ok(None);
    }
    let layout = CheckedOrder::of(inputs, &by)?;
    let found = check_file(inputs, file, &layout, unique, cancel)?;
    Ok(found.is_none().then_some(Columns(by)))
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
    let layout = CheckedOrder::of(&inputs, &columns)?;
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
    fn of(inputs: &Inputs, by: &[Column]) -> Result<Self> {
        let Bound { layout, derived, .. } = Bound::of(inputs, by, None, |order| order)?;
        Ok(Self { layout, derived })
    }
}
