//! The verb that changes a table.

use std::path::PathBuf;

use clap::Args;
use windrow_files::{Columns, OrderBy};

use super::{Changes, Input, Limits, Output, Report};

/// The value of `--output` if it is not given.
pub(crate) const NO_OUTPUT: &str = "-";

#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.hide(true).required(false).default_value(NO_OUTPUT)))]
#[command(mut_arg("output_format", |arg| arg.hide(true)))]
#[command(mut_arg("select", |arg| arg.help("Columns to take from the changes")))]
#[command(mut_arg("compression", |arg| arg.help("Codec of new files; that of the old file unless given")))]
#[command(mut_arg("max_file_size", |arg| arg.help("Bytes of a file: larger ones are split")))]
#[command(mut_arg("union_by_name", |arg| arg.help(
    "Inputs may have other columns than the first, and columns of the table that the changes lack are null in \
     their rows"
)))]
pub(crate) struct Apply {
    /// Directory of Parquet files to change
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directory: PathBuf,
    /// Columns that identify a row of the table.
    #[arg(long, value_name = "COLS", required = true)]
    pub(crate) key: Columns,
    /// Columns that say which change of a key is the latest, as for `compact`. If the table has them, a
    /// change that is older than its row loses.
    #[arg(long, value_name = "COLS")]
    pub(crate) order_by: Option<OrderBy>,
    /// Count only what happened at or before this time (the first --order-by column).
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub(crate) as_of: Option<String>,
    /// Fail if another `apply` changes the directory; it is waited for otherwise.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Read everything and tell what would change, but change nothing.
    #[arg(long, conflicts_with = "explain")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}
