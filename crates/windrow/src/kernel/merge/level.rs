//! The loops, compiled for newer processors and for any.
//!
//! Each is a function of its own: in one with others its selections become branches, and its
//! pointers go to the stack.

use super::Wrapped;
use super::runs::runs;
use super::shape::{Lead, Shape};
use super::steps::{Work, led, streamed, summed};
use super::sum::add_up;
use super::two::Merged;

/// What loops are compiled for.
///
/// # Safety
/// To call a loop: as the loop of that name, and the processor has the level's instructions.
pub(super) trait Level {
    unsafe fn led<const S: usize, const W: usize, L: Lead>(
        shape: Shape<S, W>,
        work: Work,
        rows: usize,
        wrapped: &mut Wrapped<'_>,
    ) -> Merged;
    unsafe fn streamed<const S: usize, const W: usize, const LEAD: usize>(
        shape: Shape<S, W>,
        work: Work,
        rows: usize,
    ) -> (Merged, bool);
    unsafe fn runs<const S: usize, const W: usize>(
        shape: Shape<S, W>,
        work: Work,
        rows: usize,
    ) -> (Merged, bool);
    unsafe fn summed<const S: usize, const W: usize>(
        shape: Shape<S, W>,
        work: Work,
        rows: usize,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Merged;
    unsafe fn add_up<const S: usize, const W: usize>(
        shape: Shape<S, W>,
        start: *mut u8,
        rows: usize,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> usize;
}

/// Any processor.
pub(super) struct Plain;

/// AVX2, MOVBE, BMI1 and BMI2: rows of 32 bytes move in one register, words are loaded in their
/// order.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

/// True if the processor has the instructions of [`Avx2`].
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx2() -> bool {
    let has_bmi = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
    has_bmi && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("movbe")
}

macro_rules! level {
    ($level:ident $(, #[$features:meta])?) => {
        impl Level for $level {
            #[inline(never)]
            $(#[$features])?
            unsafe fn led<const S: usize, const W: usize, L: Lead>(
                shape: Shape<S, W>,
                work: Work,
                rows: usize,
                wrapped: &mut Wrapped<'_>,
            ) -> Merged {
                // SAFETY: the caller's promise.
                unsafe { led::<S, W, L>(shape, work, rows, wrapped) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn streamed<const S: usize, const W: usize, const LEAD: usize>(
                shape: Shape<S, W>,
                work: Work,
                rows: usize,
            ) -> (Merged, bool) {
                // SAFETY: the caller's promise.
                unsafe { streamed::<S, W, LEAD>(shape, work, rows) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn runs<const S: usize, const W: usize>(
                shape: Shape<S, W>,
                work: Work,
                rows: usize,
            ) -> (Merged, bool) {
                // SAFETY: the caller's promise.
                unsafe { runs(shape, work, rows) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn summed<const S: usize, const W: usize>(
                shape: Shape<S, W>,
                work: Work,
                rows: usize,
                wrapped: &mut dyn FnMut(&[u8], i64),
            ) -> Merged {
                // SAFETY: the caller's promise.
                unsafe { summed(shape, work, rows, wrapped) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn add_up<const S: usize, const W: usize>(
                shape: Shape<S, W>,
                start: *mut u8,
                rows: usize,
                wrapped: &mut dyn FnMut(&[u8], i64),
            ) -> usize {
                // SAFETY: the caller's promise.
                unsafe { add_up(shape, start, rows, wrapped) }
            }
        }
    };
}
level!(Plain);
#[cfg(target_arch = "x86_64")]
level!(Avx2, #[target_feature(enable = "avx2,movbe,bmi1,bmi2")]);
