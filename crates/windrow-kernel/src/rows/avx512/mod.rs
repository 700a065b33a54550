//! The AVX-512 paths for strings, and for the heads of a sort.

pub(super) mod binary;
pub(super) mod blocks;
pub(super) mod exact;
pub(super) mod heads;
pub(super) mod take_blocks;
pub(super) mod take_text;

/// Numbers of eight bytes in a register.
const GROUP: usize = 8;

/// Returns whether this CPU has the instructions of this folder's kernels.
#[inline]
pub(super) fn detected() -> bool {
    crate::cpu::detected!(
        "avx512f",
        "avx512bw",
        "avx512vl",
        "avx512vbmi",
        "avx512vbmi2",
        "bmi1",
        "bmi2",
        "popcnt"
    )
}
