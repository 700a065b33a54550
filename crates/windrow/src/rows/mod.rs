//! Rows.

mod value;
