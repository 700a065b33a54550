//! A register of one number: for any CPU, and for rows too few for a wider register.

use std::hint::select_unpredictable;

use super::places::Places;
use super::vector::Vector;

/// A number of up to 16 bytes, with zeros in the unused upper bytes.
#[derive(Clone, Copy)]
pub(super) struct Portable(u128);

impl Vector for Portable {
    type Mask = bool;
    type Order = bool;

    #[inline(always)]
    fn rows(_width: usize) -> usize {
        1
    }

    #[inline(always)]
    unsafe fn splat<const W: usize>(number: u128) -> Self {
        Self(number)
    }

    #[inline(always)]
    unsafe fn load<const W: usize>(from: *const u8) -> Self {
        // SAFETY: the caller promises `W` readable bytes at `from`.
        unsafe {
            Self(match W {
                4 => from.cast::<u32>().read_unaligned().into(),
                8 => from.cast::<u64>().read_unaligned().into(),
                _ => from.cast::<u128>().read_unaligned(),
            })
        }
    }

    #[inline(always)]
    unsafe fn store<const W: usize>(self, to: *mut u8) {
        // SAFETY: the caller promises `W` writable bytes at `to`.
        unsafe {
            match W {
                4 => to.cast::<u32>().write_unaligned(self.0 as u32),
                8 => to.cast::<u64>().write_unaligned(self.0 as u64),
                _ => to.cast::<u128>().write_unaligned(self.0),
            }
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    #[inline(always)]
    unsafe fn add<const W: usize>(self, other: Self) -> Self {
        Self(match W {
            4 => (self.0 as u32).wrapping_add(other.0 as u32).into(),
            8 => (self.0 as u64).wrapping_add(other.0 as u64).into(),
            _ => self.0.wrapping_add(other.0),
        })
    }

    #[inline(always)]
    unsafe fn sub<const W: usize>(self, other: Self) -> Self {
        Self(match W {
            4 => (self.0 as u32).wrapping_sub(other.0 as u32).into(),
            8 => (self.0 as u64).wrapping_sub(other.0 as u64).into(),
            _ => self.0.wrapping_sub(other.0),
        })
    }

    #[inline(always)]
    unsafe fn turned<const W: usize>(self, float: Self) -> Self {
        // Without a branch: signs are unpredictable.
        let negative = match W {
            4 => (self.0 as i32 >> 31) as u32 as u128,
            8 => (self.0 as i64 >> 63) as u64 as u128,
            _ => 0,
        };
        Self(self.0 ^ negative & float.0)
    }

    #[inline(always)]
    unsafe fn order<const W: usize>(reversed: bool) -> bool {
        reversed
    }

    #[inline(always)]
    unsafe fn ordered<const W: usize>(self, reversed: bool) -> Self {
        if !reversed {
            return self;
        }
        Self(match W {
            4 => (self.0 as u32).swap_bytes().into(),
            8 => (self.0 as u64).swap_bytes().into(),
            _ => self.0.swap_bytes(),
        })
    }

    #[inline(always)]
    unsafe fn equal<const W: usize>(self, other: Self) -> bool {
        match W {
            16 => self.0 == other.0,
            _ => self.0 as u64 == other.0 as u64,
        }
    }

    #[inline(always)]
    unsafe fn is_either<const W: usize>(self, [least, _]: [Self; 2]) -> bool {
        // SAFETY: `sub` needs no instruction set here.
        let above = unsafe { self.sub::<W>(least) };
        match W {
            16 => above.0 <= 1,
            _ => above.0 as u64 <= 1,
        }
    }

    #[inline(always)]
    unsafe fn mask<const W: usize>(bits: u64) -> bool {
        bits & 1 == 1
    }

    #[inline(always)]
    unsafe fn bits<const W: usize>(mask: bool) -> u64 {
        mask.into()
    }

    #[inline(always)]
    unsafe fn select<const W: usize>(mask: bool, yes: Self, no: Self) -> Self {
        Self(match W {
            16 => select_unpredictable(mask, yes.0, no.0),
            _ => select_unpredictable(mask, yes.0 as u64, no.0 as u64).into(),
        })
    }

    #[inline(always)]
    unsafe fn store_rows<const W: usize, const N: usize, P: Places>(
        columns: [Self; N],
        places: P,
        out: *mut u8,
    ) {
        // SAFETY: the caller promises writable columns of one row at its place.
        unsafe {
            let to = out.add(places.place(0));
            for (at, column) in columns.into_iter().enumerate() {
                column.store::<W>(to.add(at * W));
            }
        }
    }

    #[inline(always)]
    unsafe fn load_rows<const W: usize, const N: usize, P: Places>(
        places: P,
        bytes: *const u8,
    ) -> [Self; N] {
        let mut columns = [Self(0); N];
        // SAFETY: the caller promises readable columns of one row at its place.
        unsafe {
            let from = bytes.add(places.place(0));
            for (at, column) in columns.iter_mut().enumerate() {
                *column = Self::load::<W>(from.add(at * W));
            }
        }
        columns
    }
}
