//! Slices in, slices out: every loop over bytes or rows, and all `unsafe` code of the engine.
//!
//! A kernel knows no Arrow type, no option and no error: nulls, types and directions are resolved
//! before its loop. Only `strings`, `views` and `partition::arrays` make arrays, from bytes that a
//! kernel just moved: skipping Arrow's validation takes `unsafe`. Kernels with an instruction-set
//! path detect it at run time and keep a portable twin beside it; a test runs both on the same
//! data.
//!
//! ```text
//! rows  --prefix-->  (prefix | index) words  --radix-->  ordered words  --copy-->  rows in order
//! columns  --counting-->  rows by small codes
//! columns  --rows-->  encoded rows  --rows-->  values, strings
//! ```

pub(crate) mod allocator;
pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod counting;
pub(crate) mod cpu;
pub(crate) mod merge;
pub(crate) mod partition;
pub(crate) mod places;
pub(crate) mod prefetch;
pub(crate) mod prefix;
pub(crate) mod radix;
pub(crate) mod region;
pub(crate) mod rows;
pub(crate) mod strings;
pub(crate) mod values;
pub(crate) mod viewed;
pub(crate) mod views;
