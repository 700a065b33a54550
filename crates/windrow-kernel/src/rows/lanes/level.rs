//! The choice of the widest vectors of a CPU.

use super::vector::{Kernel, Vector};

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
