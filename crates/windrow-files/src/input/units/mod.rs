//! Units of work: a part of a file, read by any number of threads, with the promises that all formats keep.

pub(crate) mod guard;
pub(crate) mod lengths;
pub(crate) mod turns;
pub(crate) mod unit;
