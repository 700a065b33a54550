//! Arrangements compared with differential-dataflow's own. Multi-process tests are separate files
//! beside this folder.

#[path = "../common/mod.rs"]
mod common;

mod ahead;
mod batches;
mod beside_stock;
mod column_errors;
mod column_sums;
mod columns;
mod damage;
mod examples;
mod logging;
mod loops;
mod partial_times;
mod ported;
mod rows_keep_the_law;
mod semigroups;
