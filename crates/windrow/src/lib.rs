//! An arrangement engine for Apache Arrow.

mod error;
mod rows;

pub use error::{Error, Result};
