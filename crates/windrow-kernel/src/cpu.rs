//! Properties of the CPU that choose between two paths: instruction sets, and the size of its
//! caches.
//!
//! Kernels test for the instructions of a path only with [`detected`]. The macro returns false
//! everywhere with the feature `portable` of this crate, and in builds with debug assertions where
//! `WINDROW_PORTABLE` is set: the paths of other CPUs can be measured and tested on this one.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid_count, CpuidResult};
#[cfg(target_arch = "x86_64")]
use std::sync::{LazyLock, OnceLock};

/// Returns whether this CPU has all of these instruction sets, and this build may use them.
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($feature:tt),+) => {
        $crate::cpu::may_use_them() $(&& std::arch::is_x86_feature_detected!($feature))+
    };
}
#[cfg(target_arch = "x86_64")]
pub(crate) use detected;

/// Returns whether kernels may use instruction sets at all.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn may_use_them() -> bool {
    static OFF: LazyLock<bool> = LazyLock::new(|| std::env::var_os("WINDROW_PORTABLE").is_some());
    let off = cfg!(feature = "portable") || cfg!(debug_assertions) && *OFF;
    !off
}

/// Defines a function that runs the always inlined loop `$each`, compiled for instruction sets of
/// this CPU, if available, and vectorised by the compiler. Not for loops with hand-written vector
/// code.
macro_rules! compiled_for {
    (
        [$($feature:tt)+]
        $(#[$doc:meta])*
        $visibility:vis fn $name:ident$(<$of:ident: $bound:path>)?($($argument:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $each:path
    ) => {
        $(#[$doc])*
        $visibility fn $name$(<$of: $bound>)?($($argument: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            if $crate::cpu::detected!($($feature),+) {
                #[target_feature($(enable = $feature),+)]
                fn wide$(<$of: $bound>)?($($argument: $type),*) $(-> $out)? {
                    $each($($argument),*)
                }
                // SAFETY: the features were detected.
                return unsafe { wide($($argument),*) };
            }
            $each($($argument),*)
        }
    };
}
pub(crate) use compiled_for;

/// Bytes of a wide second-level cache.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 2 << 20;

/// Returns whether the second-level cache is of 2 MiB or more, a sign of a slow third level:
/// Sapphire Rapids and later. Excluded are Zen 4 and 5, with 1 MiB and a fast third level, and Ice
/// Lake, whose gathers are slow since a security mitigation. The size of the first level does not
/// help: 48 KiB in all these CPUs but Zen 4.
#[cfg(target_arch = "x86_64")]
pub fn has_wide_caches() -> bool {
    second_level_cache() >= WIDE
}

/// No other architecture was measured.
#[cfg(not(target_arch = "x86_64"))]
pub fn has_wide_caches() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call from Rust 1.94 on")]
fn ask(leaf: u32, cache: u32) -> CpuidResult {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { __cpuid_count(leaf, cache) }
}

/// Returns the bytes of the second-level cache, or 0 if the CPU does not report its caches.
#[cfg(target_arch = "x86_64")]
fn second_level_cache() -> usize {
    /// The leaf with the description of caches, and the leaf with the highest valid number:
    /// Intel's, and AMD's in the same format.
    const LEAVES: [[u32; 2]; 2] = [[4, 0], [0x8000_001d, 0x8000_0000]];
    /// More caches than any CPU describes.
    const CACHES: u32 = 8;
    static BYTES: OnceLock<usize> = OnceLock::new();
    // In a virtual machine the instruction takes a microsecond or more.
    *BYTES.get_or_init(|| {
        let known = LEAVES.into_iter().filter(|[leaf, most]| ask(*most, 0).eax >= *leaf);
        let mut caches = known.flat_map(|[leaf, _]| (0..CACHES).map(move |cache| ask(leaf, cache)));
        let second = |found: &CpuidResult| found.eax & 0x1f != 0 && found.eax >> 5 & 7 == 2;
        caches.find(second).map_or(0, |found| {
            let [line, parts, ways] = [found.ebx & 0xfff, found.ebx >> 12 & 0x3ff, found.ebx >> 22];
            [line, parts, ways, found.ecx].iter().map(|less_one| *less_one as usize + 1).product()
        })
    })
}
