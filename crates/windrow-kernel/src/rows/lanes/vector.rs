//! A register of numbers, and the choice of the widest one of a CPU.
//!
//! ```text
//! kernel    one loop over `trait Vector`                                    put.rs, take.rs
//! Vector    Portable: a number     Avx2: 32 bytes     Avx512: 64 bytes      one file each
//! dispatch  the kernel compiled for each of them, one chosen at run time
//! ```
//!
//! Kernels and vectors are `#[inline(always)]` and hold no closures: only then is all of a kernel
//! compiled with the instruction set of the function it is inlined into, [`Level::run`]'s.

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
    /// Columns of eight bytes that are transposed together.
    const COLUMNS: usize;

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

    /// Writes the rows of `N` columns: 1, 2, 4 or [`Vector::COLUMNS`]. Rows of one column are
    /// adjacent.
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

/// The widest vectors of this CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Evaluates `$of` with the type `$vectors` bound to the vectors of a level.
macro_rules! of_level {
    ($level:expr, $vectors:ident => $of:expr) => {{
        #[cfg(target_arch = "x86_64")]
        use super::{avx2::Avx2, avx512::Avx512};
        match $level {
            Self::Portable => {
                type $vectors = super::portable::Portable;
                $of
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                type $vectors = Avx2;
                $of
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                type $vectors = Avx512;
                $of
            }
        }
    }};
}

impl Level {
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn detected() -> Self {
        use std::sync::OnceLock;
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            if crate::cpu::detected!("avx512f", "avx512bw", "avx512vl") {
                Self::Avx512
            } else if crate::cpu::detected!("avx2") {
                Self::Avx2
            } else {
                Self::Portable
            }
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn detected() -> Self {
        Self::Portable
    }

    /// Returns all levels of this CPU.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let levels = [
            Self::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512,
        ];
        let widest = Self::detected();
        let count = levels.iter().position(|level| *level == widest).map_or(0, |at| at + 1);
        levels[..count].to_vec()
    }

    /// Returns the numbers of `width` bytes in a register.
    pub(super) fn rows(self, width: usize) -> usize {
        of_level!(self, V => V::rows(width))
    }

    /// Returns how many of `left` columns of `width` bytes are transposed at once.
    pub(super) fn columns(self, left: usize, width: usize) -> usize {
        let most = if width == 8 { of_level!(self, V => V::COLUMNS) } else { 4 };
        // The greatest power of two that is at most `left`.
        most.min(1 << left.max(1).ilog2())
    }

    /// Runs `kernel` with the vectors of this level.
    ///
    /// # Safety
    /// The level was detected, or is portable. The kernel keeps the invariant of its type.
    pub(super) unsafe fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
            // SAFETY: AVX2 is enabled here. The caller of `run` promises the kernel's invariant.
            unsafe { kernel.run::<super::avx2::Avx2>() }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
            // SAFETY: AVX-512 F, BW and VL are enabled here. The caller of `run` promises the
            // kernel's invariant.
            unsafe { kernel.run::<super::avx512::Avx512>() }
        }
        // SAFETY: the caller promises a detected level and the kernel's invariant.
        unsafe {
            match self {
                Self::Portable => kernel.run::<super::portable::Portable>(),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => avx2(kernel),
                #[cfg(target_arch = "x86_64")]
                Self::Avx512 => avx512(kernel),
            }
        }
    }
}
