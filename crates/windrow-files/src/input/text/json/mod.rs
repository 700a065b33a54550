//! JSON in lines: records that are walked over once, and what the decoder of arrow does not tell of others.

pub(crate) mod decoder;
pub(crate) mod fault;
pub(crate) mod null_lines;
pub(crate) mod plain;
pub(crate) mod records;
pub(crate) mod walk;
