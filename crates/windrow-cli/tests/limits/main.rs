//! The limit is the peak resident memory of the released tool, `WINDROW`: tested at many limits,
//! and on inputs with memory hard to predict. `./scripts/test memory` runs these tests with the
//! released binary. Without `WINDROW` the tests run their own build, minutes slower.

mod apply;
#[path = "../tool/common/mod.rs"]
mod common;
mod limit_sweep;
mod memory;
mod memory_of_inputs;
mod near_the_floor;
mod refused;
