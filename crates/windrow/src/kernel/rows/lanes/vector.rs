//! A register of numbers, and the choice of the widest one that a CPU has.
//!
//! ```text
//! kernel    one loop over `trait Vector`                                    put.rs, take.rs
//! Vector    Portable: a number     Avx2: 32 bytes     Avx512: 64 bytes      a file each: so would a fourth be
//! dispatch  the kernel compiled for each of them, one chosen at run time
//! ```
//!
//! Kernels and vectors are `#[inline(always)]` and hold no closures: only so is all of a kernel compiled with the
//! instruction set of the function it is inlined into, [`dispatch`]'s.

use std::ops::{BitAnd, BitOr};

use super::places::Places;

/// A register of numbers of `W` bytes, 4, 8 or 16: a row of a column each.
///
/// Of 16 bytes numbers are moved and complemented; only [`Portable`](super::portable::Portable) adds to them, and compares
/// them.
///
/// # Safety
/// Of all functions: the CPU has the instruction set. What else there is to be seen to is said of each.
pub(super) trait Vector: Copy {
    /// A bit for each number.
    type Mask: Copy + BitAnd<Output = Self::Mask> + BitOr<Output = Self::Mask>;
    /// The order of the bytes of each number.
    type Order: Copy;
    /// Columns of eight bytes that are turned into rows together.
    const COLUMNS: usize;

    /// Numbers of a register.
    fn rows(width: usize) -> usize;

    /// The same number everywhere.
    unsafe fn splat<const W: usize>(number: u128) -> Self;

    /// # Safety
    /// As many numbers may be read.
    unsafe fn load<const W: usize>(from: *const u8) -> Self;

    /// # Safety
    /// As many numbers may be written.
    unsafe fn store<const W: usize>(self, to: *mut u8);

    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn add<const W: usize>(self, other: Self) -> Self;
    unsafe fn sub<const W: usize>(self, other: Self) -> Self;

    /// Numbers that are negative complemented by `float`. There are no floats of 16 bytes.
    unsafe fn turned<const W: usize>(self, float: Self) -> Self;

    /// Bytes reversed, or as they are.
    unsafe fn order<const W: usize>(reversed: bool) -> Self::Order;
    unsafe fn ordered<const W: usize>(self, order: Self::Order) -> Self;

    unsafe fn equal<const W: usize>(self, other: Self) -> Self::Mask;

    /// Whether numbers are one of `pair`: a number and the next one.
    #[inline(always)]
    unsafe fn is_either<const W: usize>(self, pair: [Self; 2]) -> Self::Mask {
        // SAFETY: as this function's.
        unsafe { self.equal::<W>(pair[0]) | self.equal::<W>(pair[1]) }
    }

    unsafe fn mask<const W: usize>(bits: u64) -> Self::Mask;
    unsafe fn bits<const W: usize>(mask: Self::Mask) -> u64;

    /// `yes` where the bit is set, else `no`.
    unsafe fn select<const W: usize>(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Writes the rows of `N` columns, 1, 2, 4 or as many as are turned together; of one column they are adjacent.
    ///
    /// # Safety
    /// The columns of all rows may be written at their places.
    unsafe fn store_rows<const W: usize, const N: usize, P: Places>(
        columns: [Self; N],
        places: P,
        out: *mut u8,
    );

    /// The columns of rows, as of [`Vector::store_rows`].
    ///
    /// # Safety
    /// The columns of all rows may be read at their places.
    unsafe fn load_rows<const W: usize, const N: usize, P: Places>(
        places: P,
        bytes: *const u8,
    ) -> [Self; N];
}

/// A loop over any vectors.
pub(super) trait Kernel {
    type Output;

    /// # Safety
    /// The CPU has the instruction set of `V`; the kernel was made as its type says.
    unsafe fn run<V: Vector>(self) -> Self::Output;
}

/// The widest vectors that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Evaluates `$of` for the vectors of a level, which it calls `$vectors`.
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
            if crate::kernel::cpu::detected!("avx512f", "avx512bw", "avx512vl") {
                Self::Avx512
            } else if crate::kernel::cpu::detected!("avx2") {
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

    /// All that this machine has.
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

    /// Numbers of `width` bytes in a register.
    pub(super) fn rows(self, width: usize) -> usize {
        of_level!(self, V => V::rows(width))
    }

    /// How many of `left` columns of `width` bytes are turned into rows at once.
    pub(super) fn columns(self, left: usize, width: usize) -> usize {
        let most = if width == 8 { of_level!(self, V => V::COLUMNS) } else { 4 };
        // The greatest power of two of which there are as many.
        most.min(1 << left.max(1).ilog2())
    }

    /// Runs `kernel` by the vectors of this level.
    ///
    /// # Safety
    /// It was detected, or is portable; the kernel was made as its type says.
    pub(super) unsafe fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
            // SAFETY: AVX2 is enabled here; the rest as `run`'s.
            unsafe { kernel.run::<super::avx2::Avx2>() }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
            // SAFETY: AVX-512 F, BW and VL are enabled here; the rest as `run`'s.
            unsafe { kernel.run::<super::avx512::Avx512>() }
        }
        // SAFETY: as this function's.
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
