//! JSON in lines: the fast path, the decoder of arrow, and checks of records.

pub(crate) mod decoder;
pub(crate) mod fault;
pub(crate) mod null_lines;
pub(crate) mod plain;
pub(crate) mod records;
pub(crate) mod walk;
