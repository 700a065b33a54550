//! Kernels of partitioning: ids from values, permutations from ids, columns through permutations.

pub(crate) mod hash;
pub(crate) mod search;
