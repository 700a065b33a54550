//! Instruction levels that loops are compiled for: newer CPUs, and any CPU.
//!
//! ```text
//! by_level!(L => ..)    the best level of this CPU
//! L::run(loop)          the loop as a function of its own, compiled for the level
//! ```
//!
//! Each loop is a function of its own: inlined into another loop, its selections would become
//! branches, and its pointers would move to the stack.

use super::bytes;
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

    /// Returns whether the first `len` bytes of `p` and `q` differ. Both have `len` readable bytes,
    /// at least 32.
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool;
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

    #[inline(always)]
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
        // SAFETY: the caller provides `len` readable bytes of both, at least 32.
        unsafe { bytes::differ(p, q, len) }
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

    /// Hand-written: the compiler turns the portable form into shuffles if `len` is a constant.
    #[inline(always)]
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
        use std::arch::x86_64::{
            __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_testz_si256, _mm256_xor_si256,
        };
        // SAFETY: every load ends at `len` or before, and `len` is at least 32. The caller promises
        // a CPU with AVX2.
        unsafe {
            let look = |at: usize| {
                let x = _mm256_loadu_si256(p.add(at).cast::<__m256i>());
                _mm256_xor_si256(x, _mm256_loadu_si256(q.add(at).cast::<__m256i>()))
            };
            let mut different = look(len - 32);
            for at in (0..len - 32).step_by(32) {
                different = _mm256_or_si256(different, look(at));
            }
            _mm256_testz_si256(different, different) == 0
        }
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
