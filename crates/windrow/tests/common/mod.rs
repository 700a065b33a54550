//! What the tests of the whole engine share: data, the specification, and the ways through the engine.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod arrays;
pub(crate) mod engine;
pub(crate) mod model;
pub(crate) mod tables;
