//! `windrow sort`: all rows, ordered by columns, equal ones in input order.

use windrow::{Finish, Order};

use super::project::projection;
use crate::args;
use crate::error::Result;
use crate::job::{self, Arrangement, Way};

/// Sorts.
pub(crate) fn sort(args: &args::Sort) -> Result<()> {
    let inputs = job::open_inputs(&args.input, Some(&args.limits))?;
    let layout = Order::by(args.by.0.clone()).bind(inputs.schema())?;
    let arrangement = Arrangement {
        way: Way::Unordered,
        projection: projection(inputs.schema(), args.output.select.as_deref(), &[])?,
        layout,
        transform: None,
        finish: Finish::Log,
        required: Vec::new(),
    };
    job::run(inputs, &arrangement, &args.output, &args.limits, &args.report)
}
