//! One folder for each format: its files as units of one schema.

pub(crate) mod avro;
pub(crate) mod csv;
pub(crate) mod handed;
pub(crate) mod ipc;
pub(crate) mod json;
pub(crate) mod parquet;
