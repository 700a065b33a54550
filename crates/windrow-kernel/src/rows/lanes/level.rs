//! The choice of the widest vectors of a CPU.

use super::vector::{Kernel, Vector};

/// The widest vectors of this CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn detected() -> Self {
        if crate::cpu::detected!("avx2") { Self::Avx2 } else { Self::Portable }
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
        ];
        let widest = Self::detected();
        let count = levels.iter().position(|level| *level == widest).map_or(0, |at| at + 1);
        levels[..count].to_vec()
    }

    /// Returns the numbers of `width` bytes in a register.
    pub(super) fn rows(self, width: usize) -> usize {
        match self {
            Self::Portable => super::portable::Portable::rows(width),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => super::avx2::Avx2::rows(width),
        }
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
        // SAFETY: the caller promises a detected level and the kernel's invariant.
        unsafe {
            match self {
                Self::Portable => kernel.run::<super::portable::Portable>(),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => avx2(kernel),
            }
        }
    }
}
