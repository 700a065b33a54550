//! Code shared by registers of 32 and of 64 bytes: the same instructions under different names.

use std::arch::x86_64::*;

/// Functions of [`Vector`](super::vector::Vector) that are one instruction each.
macro_rules! instructions {
    (
        load $load:ident, store $store:ident, xor $xor:ident, add $add_4:ident $add_8:ident,
        sub $sub_4:ident $sub_8:ident, shuffle $shuffle:ident, broadcast $broadcast:ident,
        splat $splat_4:ident $splat_8:ident
    ) => {
        type Order = Self;

        #[inline(always)]
        unsafe fn splat<const W: usize>(number: u128) -> Self {
            // SAFETY: the caller promises a CPU with the instruction set.
            unsafe {
                Self(match W {
                    4 => $splat_4(number as i32),
                    8 => $splat_8(number as i64),
                    _ => $broadcast(_mm_set_epi64x((number >> 64) as i64, number as i64)),
                })
            }
        }

        #[inline(always)]
        unsafe fn load<const W: usize>(from: *const u8) -> Self {
            // SAFETY: the caller promises a CPU with the instruction set, and a readable register
            // at `from`.
            Self(unsafe { $load(from.cast()) })
        }

        #[inline(always)]
        unsafe fn store<const W: usize>(self, to: *mut u8) {
            // SAFETY: the caller promises a CPU with the instruction set, and a writable register
            // at `to`.
            unsafe { $store(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller promises a CPU with the instruction set.
            Self(unsafe { $xor(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn add<const W: usize>(self, other: Self) -> Self {
            // SAFETY: the caller promises a CPU with the instruction set.
            unsafe {
                Self(match W {
                    4 => $add_4(self.0, other.0),
                    8 => $add_8(self.0, other.0),
                    _ => self.0,
                })
            }
        }

        #[inline(always)]
        unsafe fn sub<const W: usize>(self, other: Self) -> Self {
            // SAFETY: the caller promises a CPU with the instruction set.
            unsafe {
                Self(match W {
                    4 => $sub_4(self.0, other.0),
                    8 => $sub_8(self.0, other.0),
                    _ => self.0,
                })
            }
        }

        #[inline(always)]
        unsafe fn order<const W: usize>(reversed: bool) -> Self {
            let order = $crate::rows::lanes::x86::order::<W>(reversed);
            // SAFETY: the caller promises a CPU with the instruction set.
            Self(unsafe { $broadcast(order) })
        }

        #[inline(always)]
        unsafe fn ordered<const W: usize>(self, order: Self) -> Self {
            // SAFETY: the caller promises a CPU with the instruction set.
            Self(unsafe { $shuffle(self.0, order.0) })
        }
    };
}
pub(super) use instructions;

/// Returns the source of each byte of numbers of `W` bytes.
#[inline(always)]
pub(super) fn order<const W: usize>(reversed: bool) -> __m128i {
    let from = |at: usize| if reversed { at / W * W + W - 1 - at % W } else { at };
    let order: [u8; 16] = std::array::from_fn(|at| from(at) as u8);
    // SAFETY: both types have sixteen bytes and any bit pattern is valid.
    unsafe { std::mem::transmute(order) }
}
