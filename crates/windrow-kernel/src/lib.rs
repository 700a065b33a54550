//! Slices in, slices out: every loop over bytes or rows, and all `unsafe` code of Windrow.
//!
//! A kernel knows no Arrow type, no option and no error: nulls, types and directions are resolved
//! before its loop. Only `strings`, `views` and `partition::arrays` make arrays, from bytes that a
//! kernel just moved: skipping Arrow's validation takes `unsafe`. Kernels with an instruction-set
//! path detect it at run time and keep a portable twin beside it; a test runs both on the same
//! data.
//!
//! ```text
//! rows  --prefix-->  (prefix | index) words  --radix-->  ordered words  --copy-->  rows in order
//! columns  --rows-->  encoded rows  --rows-->  values, strings
//! ```
//!
//! The crate is internal to [windrow](https://docs.rs/windrow): published because the other crates
//! of Windrow need it, and without a stable interface. Any release may change it.

#![allow(rustdoc::private_intra_doc_links, reason = "read by those who change it")]
#![expect(
    missing_docs,
    clippy::len_without_is_empty,
    clippy::should_implement_trait,
    reason = "only the other crates of Windrow call it"
)]

pub mod allocator;
pub mod compare;
pub mod copy;
pub mod cpu;
pub mod merge;
pub mod partition;
pub mod prefetch;
pub mod prefix;
pub mod radix;
pub mod region;
pub mod rows;
pub mod strings;
pub mod values;
pub mod viewed;
pub mod views;
