//! A register of numbers.
//!
//! ```text
//! kernel    one loop over `trait Vector`                                    put.rs, take.rs
//! Vector    Portable: a number     Avx2: 32 bytes                           one file each
//! dispatch  the kernel compiled for each of them, one chosen at run time
//! ```
//!
//! Kernels and vectors are `#[inline(always)]` and hold no closures: only then is all of a kernel
//! compiled with the instruction set of the function it is inlined into, [`Level::run`](super::level::Level::run)'s.

use std::ops::{BitAnd, BitOr};

use super::places::Places;

/// A register of numbers of `W` bytes, 4, 8 or 16: one row of a column each.
///
/// Numbers of 16 bytes are moved and complemented; only [`Portable`](super::portable::Portable)
/// adds and compares them.
///
/// # Safety
/// All functions need a CPU with the instruction set. Each function names its further conditions.
pub(super) trait Vector: Copy {
    /// A bit for each number.
    type Mask: Copy + BitAnd<Output = Self::Mask> + BitOr<Output = Self::Mask>;
    /// The order of the bytes of each number.
    type Order: Copy;

    /// Returns the numbers of a register.
    fn rows(width: usize) -> usize;

    /// Returns the same number in all lanes.
    unsafe fn splat<const W: usize>(number: u128) -> Self;

    /// # Safety
    /// A register of numbers is readable at `from`.
    unsafe fn load<const W: usize>(from: *const u8) -> Self;

    /// # Safety
    /// A register of numbers is writable at `to`.
    unsafe fn store<const W: usize>(self, to: *mut u8);

    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn add<const W: usize>(self, other: Self) -> Self;
    unsafe fn sub<const W: usize>(self, other: Self) -> Self;

    /// XORs negative numbers with `float`. There are no floats of 16 bytes.
    unsafe fn turned<const W: usize>(self, float: Self) -> Self;

    /// Returns the order that reverses the bytes of a number, or keeps them.
    unsafe fn order<const W: usize>(reversed: bool) -> Self::Order;
    unsafe fn ordered<const W: usize>(self, order: Self::Order) -> Self;

    unsafe fn equal<const W: usize>(self, other: Self) -> Self::Mask;

    /// Returns which numbers are one of `pair`: a number and its successor.
    #[inline(always)]
    unsafe fn is_either<const W: usize>(self, pair: [Self; 2]) -> Self::Mask {
        // SAFETY: the caller promises a CPU with the instruction set.
        unsafe { self.equal::<W>(pair[0]) | self.equal::<W>(pair[1]) }
    }

    unsafe fn mask<const W: usize>(bits: u64) -> Self::Mask;
    unsafe fn bits<const W: usize>(mask: Self::Mask) -> u64;

    /// Returns `yes` where the bit is set, else `no`.
    unsafe fn select<const W: usize>(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Writes the rows of `N` columns: 1, 2 or 4. Rows of one column are adjacent.
    ///
    /// # Safety
    /// The columns of all rows are writable at their places.
    unsafe fn store_rows<const W: usize, const N: usize, P: Places>(
        columns: [Self; N],
        places: P,
        out: *mut u8,
    );

    /// Returns the columns of rows, as [`Vector::store_rows`] writes them.
    ///
    /// # Safety
    /// The columns of all rows are readable at their places.
    unsafe fn load_rows<const W: usize, const N: usize, P: Places>(
        places: P,
        bytes: *const u8,
    ) -> [Self; N];
}

/// A loop over any vectors.
pub(super) trait Kernel {
    type Output;

    /// # Safety
    /// The CPU has the instruction set of `V`, and the kernel keeps the invariant of its type.
    unsafe fn run<V: Vector>(self) -> Self::Output;
}
