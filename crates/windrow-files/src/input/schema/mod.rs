//! One schema for all inputs: types that hold the values of all, columns of directory names, selected columns.

pub(crate) mod hive;
pub(crate) mod unify;
pub(crate) mod wanted;
pub(crate) mod widen;
