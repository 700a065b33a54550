//! `windrow check`: is every file sorted?

use windrow::{Column, Layout, Order, OrderCheck};

use crate::args;
use crate::error::{CliError, Result};
use crate::input::{InputOptions, Inputs, SortColumn, Source};
use crate::job;

/// Checks; the first offending row is a [`CliError::CheckFailed`].
pub(crate) fn check(args: &args::Check) -> Result<()> {
    let inputs = job::open_inputs(&args.input, None)?;
    let layout = Order::by(args.by.0.clone()).bind(inputs.schema())?;
    for file in 0..inputs.files().len() {
        let found = check_file(&inputs, file, &layout, args.unique)?;
        if let Some((row, repeated)) = found {
            let name = &inputs.files()[file].name;
            let message = if repeated {
                format!("{name}: row {row} has the same key as the row before it")
            } else {
                format!("{name}: row {row} sorts before the row in front of it")
            };
            return Err(CliError::CheckFailed(if args.quiet { String::new() } else { message }));
        }
    }
    if !args.quiet {
        let rows = inputs.rows().map(|rows| format!(", {rows} rows")).unwrap_or_default();
        job::say(format_args!("in order: {} files{rows}", inputs.files().len()));
    }
    Ok(())
}

/// The first row out of order in one input, for `inspect`.
pub(crate) fn first_out_of_order(
    source: &Source,
    columns: &[SortColumn],
    options: &InputOptions,
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
    let layout = Order::by(columns).bind(inputs.schema())?;
    Ok(check_file(&inputs, 0, &layout, false)?.map(|(row, _)| row))
}

/// The first offending row of a file, from 0, and whether it repeats a key.
fn check_file(
    inputs: &Inputs,
    file: usize,
    layout: &Layout,
    unique: bool,
) -> Result<Option<(u64, bool)>> {
    let mut check = OrderCheck::new(layout, file);
    if unique {
        check = check.unique();
    }
    for unit in inputs.units().iter().filter(|unit| unit.file == file) {
        for batch in unit.read()? {
            job::check_interrupt()?;
            match check.push(&batch?) {
                Ok(()) => {}
                Err(windrow::Error::OutOfOrder { row, .. }) => return Ok(Some((row, false))),
                Err(windrow::Error::Repeated { row, .. }) => return Ok(Some((row, true))),
                Err(other) => return Err(other.into()),
            }
        }
    }
    Ok(None)
}
