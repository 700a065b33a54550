//! The limit is the peak resident memory: the tool that users have, `WINDROW`, at many limits and on inputs whose memory is hard
//! to foresee. `./scripts/test memory` runs these tests with the released binary; without `WINDROW` they run the one that was
//! built with them, which takes minutes longer.

#[path = "../tool/common/mod.rs"]
mod common;
mod limit_sweep;
mod memory;
mod memory_of_inputs;
mod near_the_floor;
mod refused;
