//! Shared code of the whole-engine tests: data, the specification, and ways through the engine.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod arrays;
pub(crate) mod engine;
pub(crate) mod model;
pub(crate) mod tables;
