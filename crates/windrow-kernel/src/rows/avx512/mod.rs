//! The AVX-512 paths for strings.

pub(super) mod binary;
pub(super) mod blocks;
pub(super) mod exact;
pub(super) mod take_blocks;
pub(super) mod take_text;

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
