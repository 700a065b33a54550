//! What loops are compiled for: newer CPUs, and any.
//!
//! ```text
//! by_level!(L => ..)    the best level of this CPU
//! L::run(loop)          the loop as a function of its own, compiled for the level
//! ```
//!
//! Each loop is a function of its own: within another one its selections become branches, and its pointers go to
//! the stack.

use super::super::prefix;
use super::bytes;

/// The instructions that a loop may use.
///
/// # Safety
/// To call anything of a level: the CPU has its instructions; the rest is said at each function.
pub(super) trait Level {
    /// Runs `work` as a function of its own, compiled for the level.
    unsafe fn run<T>(work: impl FnOnce() -> T) -> T;

    /// The bits of a word under a mask, moved together.
    unsafe fn extract(word: u64, mask: u64) -> u64;

    /// True if the first `len` bytes of `p` and `q` differ; both have as many, at least 32.
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
        // SAFETY: as the function's.
        unsafe { bytes::differ(p, q, len) }
    }
}

/// AVX2, MOVBE, BMI1 and BMI2: 32 bytes move in one register, words are loaded in their order, bits extracted.
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
        // SAFETY: the CPU has BMI2, by the function's promise.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    /// Written out: the compiler makes shuffles of the portable one where `len` is a constant.
    #[inline(always)]
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
        use std::arch::x86_64::{
            __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_testz_si256, _mm256_xor_si256,
        };
        // SAFETY: every load ends at `len` or before, which is 32 at least; the CPU has AVX2.
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

/// True if the CPU has the instructions of [`Avx2`].
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx2() -> bool {
    crate::kernel::cpu::detected!("bmi1", "bmi2", "avx2", "movbe")
}

/// Evaluates an expression for the best level of this CPU, which it calls `$level`.
macro_rules! by_level {
    ($level:ident => $run:expr) => {{
        #[cfg(target_arch = "x86_64")]
        if $crate::kernel::merge::level::has_avx2() {
            type $level = $crate::kernel::merge::level::Avx2;
            $run
        } else {
            type $level = $crate::kernel::merge::level::Plain;
            $run
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            type $level = $crate::kernel::merge::level::Plain;
            $run
        }
    }};
}
pub(super) use by_level;
