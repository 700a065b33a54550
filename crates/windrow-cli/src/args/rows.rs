//! The option `--where`, and the verbs that select rows.

use clap::{Args, ValueEnum};
use windrow_files::{Columns, Filter};

use super::{Input, Limits, Output, Report};

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Rows {
    /// Only rows that meet this count: `COL = VALUE`, `!=`, `<`, `<=`, `>`, `>=`, `COL in (A, B)`, `COL is
    /// [not] null`, joined by `and`. Parquet row groups and pages without such rows are not read.
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) filter: Option<Filter>,
}

/// The order of floats in `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FloatOrder {
    /// IEEE totalOrder: all differ; -NaN first, -0.0 before 0.0, NaN last.
    Total,
    /// As in SQL: one zero, and one NaN that is the greatest; the values stay as they are.
    Sql,
}

#[derive(Debug, Args)]
pub(crate) struct Dedupe {
    /// Columns that are equal in duplicates; all columns unless given.
    #[arg(long, value_name = "COLS")]
    pub(crate) key: Option<Columns>,
    /// Which row of a key stays, in the order of the inputs.
    #[arg(long, value_enum, default_value_t = Kept::First)]
    pub(crate) keep: Kept,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}

/// The row to keep of several rows with equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kept {
    /// The one that comes first.
    First,
    /// The one that comes last.
    Last,
    /// None of several: what stays are rows that have no duplicate.
    None,
    /// The one that comes last, with the last value of each column that is not null.
    LastKnown,
}

#[derive(Debug, Args)]
#[command(mut_arg("files", |arg| {
    arg.num_args(2)
        .action(clap::ArgAction::Set)
        .value_names(["OLD", "NEW"])
        .help("The two sides: each a file, a directory, a glob in quotes, or - for standard input")
}))]
#[command(mut_arg("select", |arg| arg.help("Columns to compare and to write, beside those of the key")))]
pub(crate) struct Diff {
    /// Columns that tell rows apart.
    #[arg(long, value_name = "COLS", required = true)]
    pub(crate) key: Columns,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Shown::Changes)]
    pub(crate) format: Shown,
    /// Name of the column that says what a change does: insert, update or delete.
    #[arg(long, value_name = "COL", default_value = "op")]
    pub(crate) op_column: String,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}

/// The form in which differences are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// The changes, as a log.
    Changes,
    /// How many rows were inserted, updated and deleted, and in which columns they differ.
    Summary,
}

#[derive(Debug, Args)]
pub(crate) struct Head {
    /// How many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) rows: u64,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) counted: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}
