//! What the loop is compiled for: newer processors, and any.

use super::super::super::prefix;
use super::super::bytes;
use super::game::Game;
use super::play::{Place, Stop, play};
use super::stream::Rows;

/// The instructions that a loop may use.
///
/// # Safety
/// To call anything of a level: the processor has its instructions; the rest is said at what is called.
pub(super) trait Level {
    /// The bits of a word under a mask, moved together.
    unsafe fn extract(word: u64, mask: u64) -> u64;

    /// True if the first `len` bytes of `p` and `q` differ, at least 32; both have as many.
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool;

    /// [`Game::start`].
    unsafe fn start<R: Rows, const EXACT: bool>(game: &mut Game, rows: R);

    /// [`play`].
    unsafe fn play<R: Rows, const SUMS: bool, const EXACT: bool, const TIES: bool>(
        rows: R,
        game: &mut Game,
        place: &mut Place,
        count: usize,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Stop;
}

/// Any processor.
pub(super) struct Plain;

/// AVX2, MOVBE, BMI1 and BMI2, as [`super::super::level::has_avx2`] says.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

macro_rules! loops {
    ($level:ident $(, #[$features:meta])?) => {
        #[inline(never)]
        $(#[$features])?
        unsafe fn start<R: Rows, const EXACT: bool>(game: &mut Game, rows: R) {
            // SAFETY: the caller's promise.
            unsafe { game.start::<R, $level, EXACT>(rows) }
        }

        #[inline(never)]
        $(#[$features])?
        unsafe fn play<R: Rows, const SUMS: bool, const EXACT: bool, const TIES: bool>(
            rows: R,
            game: &mut Game,
            place: &mut Place,
            count: usize,
            wrapped: &mut dyn FnMut(&[u8], i64),
        ) -> Stop {
            // SAFETY: the caller's promise.
            unsafe { play::<R, $level, SUMS, EXACT, TIES>(rows, game, place, count, wrapped) }
        }
    };
}

impl Level for Plain {
    #[inline(always)]
    unsafe fn extract(word: u64, mask: u64) -> u64 {
        prefix::extract(word, mask)
    }

    #[inline(always)]
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { bytes::differ(p, q, len) }
    }

    loops!(Plain);
}

#[cfg(target_arch = "x86_64")]
impl Level for Avx2 {
    #[inline(always)]
    unsafe fn extract(word: u64, mask: u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    /// Written out: the compiler makes shuffles of the portable one where `len` is a constant.
    #[inline(always)]
    unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
        use std::arch::x86_64::{
            __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_testz_si256, _mm256_xor_si256,
        };
        // SAFETY: every load ends at `len` or before, which is 32 at least.
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

    loops!(Avx2, #[target_feature(enable = "avx2,movbe,bmi1,bmi2")]);
}
