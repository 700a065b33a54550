//! Shared code of the whole-engine tests: data, the specification, and ways through the engine.

#![allow(dead_code, reason = "each test uses its part")]

#[path = "../../../windrow-rows/tests/common/arrays.rs"]
pub(crate) mod arrays;
pub(crate) mod engine;
#[path = "../../../windrow-rows/tests/common/model.rs"]
pub(crate) mod model;
#[path = "../../../windrow-rows/tests/common/tables.rs"]
pub(crate) mod tables;
