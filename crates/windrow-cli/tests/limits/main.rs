//! The limit is the peak resident memory of the released tool, `WINDROW`: tested at many limits,
//! and on inputs whose memory is hard to predict. `./scripts/test memory` runs these tests with the
//! released binary. Without `WINDROW` the tests run the binary built along with them, which takes
//! minutes longer.

#[path = "../tool/common/mod.rs"]
mod common;
mod limit_sweep;
mod memory;
mod memory_of_inputs;
mod near_the_floor;
mod refused;
