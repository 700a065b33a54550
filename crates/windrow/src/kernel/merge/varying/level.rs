//! The loops of rows that vary, compiled for newer processors and for any.
//!
//! Each is a function of its own, as those of rows of one length: in one with others what one of them has in
//! registers follows from the others.

use super::super::Wrapped;
#[cfg(target_arch = "x86_64")]
use super::super::level::Avx2;
use super::super::level::Plain;
use super::block::Block;
use super::place::{Done, Place};

/// What loops are compiled for.
///
/// # Safety
/// To call a loop: as the loop of that name, and the processor has the level's instructions.
pub(super) trait Loops {
    unsafe fn led(block: &Block<'_>, rows: usize, place: Place, wrapped: &mut Wrapped<'_>) -> Done;
    unsafe fn summed(
        block: &Block<'_>,
        rows: usize,
        place: Place,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Done;
    unsafe fn deep<const SUMS: bool>(
        block: &Block<'_>,
        rows: usize,
        place: Place,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Done;
    unsafe fn streamed<const RUNS: bool>(block: &Block<'_>, rows: usize, place: Place) -> Done;
}

macro_rules! loops {
    ($level:ident $(, #[$features:meta])?) => {
        impl Loops for $level {
            #[inline(never)]
            $(#[$features])?
            unsafe fn led(
                block: &Block<'_>,
                rows: usize,
                place: Place,
                wrapped: &mut Wrapped<'_>,
            ) -> Done {
                // SAFETY: the caller's promise.
                unsafe { block.led(rows, place, wrapped) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn summed(
                block: &Block<'_>,
                rows: usize,
                place: Place,
                wrapped: &mut dyn FnMut(&[u8], i64),
            ) -> Done {
                // SAFETY: the caller's promise.
                unsafe { block.summed(rows, place, wrapped) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn deep<const SUMS: bool>(
                block: &Block<'_>,
                rows: usize,
                place: Place,
                wrapped: &mut dyn FnMut(&[u8], i64),
            ) -> Done {
                // SAFETY: the caller's promise.
                unsafe { block.deep::<SUMS>(rows, place, wrapped) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn streamed<const RUNS: bool>(
                block: &Block<'_>,
                rows: usize,
                place: Place,
            ) -> Done {
                // SAFETY: the caller's promise.
                unsafe { block.streamed::<RUNS>(rows, place) }
            }
        }
    };
}
loops!(Plain);
#[cfg(target_arch = "x86_64")]
loops!(Avx2, #[target_feature(enable = "avx2,movbe,bmi1,bmi2")]);
