//! The verbs: what each of them wants arranged, in terms of the engine.

mod check;
mod compact;
mod merge;
mod partition;
mod project;
mod sort;

pub(crate) use check::{check, first_out_of_order};
pub(crate) use compact::compact;
pub(crate) use merge::merge;
pub(crate) use partition::partition;
pub(crate) use sort::sort;
