//! `windrow merge`: files that are sorted, into one that is.

use windrow::{Finish, Order};

use super::project::{projection, required};
use crate::args;
use crate::error::Result;
use crate::job::{self, Arrangement, Way};

/// Merges.
pub(crate) fn merge(args: &args::Merge) -> Result<()> {
    let inputs = job::open_inputs(&args.input, Some(&args.limits))?;
    let mut order = Order::by(args.by.0.clone());
    if args.unique {
        order = order.last();
    }
    if let Some(diff) = &args.diff {
        order = order.diff(diff);
    }
    if let Some(time) = &args.time {
        order = order.time(time);
    }
    let arrangement = Arrangement {
        way: Way::Sorted,
        projection: projection(inputs.schema(), args.output.select.as_deref(), &[])?,
        layout: order.bind(inputs.schema())?,
        transform: None,
        finish: Finish::Log,
        required: required(inputs.schema(), &[&args.diff, &args.time])?,
    };
    job::run(inputs, &arrangement, &args.output, &args.limits, &args.report)
}
