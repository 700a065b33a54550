//! Instruction levels that loops are compiled for: newer CPUs, and any CPU.
//!
//! ```text
//! by_level!(L => ..)    the best level of this CPU
//! L::run(loop)          the loop as a function of its own, compiled for the level
//! ```
//!
//! Each loop is a function of its own: inlined into another loop, its selections would become
//! branches, and its pointers would move to the stack.

use crate::prefix;

/// The instructions that a loop may use.
///
/// # Safety
/// The CPU must have the level's instructions to call any function of a level. Each function names
/// its further conditions.
pub(super) trait Level {
    /// Runs `work` as a function of its own, compiled for the level.
    unsafe fn run<T>(work: impl FnOnce() -> T) -> T;

    /// Returns the bits of a word under a mask, moved together.
    unsafe fn extract(word: u64, mask: u64) -> u64;
}

/// Any CPU.
pub(super) struct Plain;

impl Level for Plain {
    #[inline(never)]
    unsafe fn run<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(always)]
    unsafe fn extract(word: u64, mask: u64) -> u64 {
        prefix::extract(word, mask)
    }
}

/// AVX2, MOVBE, BMI1 and BMI2: moves of 32 bytes in one register, big-endian loads, bit extraction.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Level for Avx2 {
    #[inline(never)]
    #[target_feature(enable = "avx2,movbe,bmi1,bmi2")]
    unsafe fn run<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(always)]
    unsafe fn extract(word: u64, mask: u64) -> u64 {
        // SAFETY: the caller promises a CPU with BMI2.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }
}

/// Returns whether the CPU has the instructions of [`Avx2`].
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx2() -> bool {
    crate::cpu::detected!("bmi1", "bmi2", "avx2", "movbe")
}

/// Evaluates an expression with the type `$level` bound to the best level of this CPU.
macro_rules! by_level {
    ($level:ident => $run:expr) => {{
        #[cfg(target_arch = "x86_64")]
        if $crate::merge::level::has_avx2() {
            type $level = $crate::merge::level::Avx2;
            $run
        } else {
            type $level = $crate::merge::level::Plain;
            $run
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            type $level = $crate::merge::level::Plain;
            $run
        }
    }};
}
pub(super) use by_level;
