//! Text: blocks that end with a record, decoders, values to the last digit, faults by line.

pub(crate) mod blocks;
pub(crate) mod dialect;
pub(crate) mod exact;
pub(crate) mod faults;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod named;
pub(crate) mod preamble;
pub(crate) mod quoted_nulls;
pub(crate) mod quotes;
