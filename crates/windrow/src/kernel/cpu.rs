//! What of a CPU decides which of two ways is taken: the instructions it has, and how its caches are built.
//!
//! Every kernel asks [`detected`] for the instructions of a path, and nothing else. With the feature `portable` of this
//! crate the answer is no everywhere, and so it is in builds with debug assertions where `WINDROW_PORTABLE` is set: what
//! other CPUs run is measured and tested on this one.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid_count, CpuidResult};
#[cfg(target_arch = "x86_64")]
use std::sync::{LazyLock, OnceLock};

/// Whether this CPU has all of these instruction sets, and this build may use them.
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($feature:tt),+) => {
        $crate::kernel::cpu::may_use_them() $(&& std::arch::is_x86_feature_detected!($feature))+
    };
}
#[cfg(target_arch = "x86_64")]
pub(crate) use detected;

/// Whether instruction sets are to be used at all.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn may_use_them() -> bool {
    static OFF: LazyLock<bool> = LazyLock::new(|| std::env::var_os("WINDROW_PORTABLE").is_some());
    let off = cfg!(feature = "portable") || cfg!(debug_assertions) && *OFF;
    !off
}

/// Defines a function that runs the loop `$each`, which is always inlined, compiled for instruction sets that this CPU has:
/// a compiler makes vectors of it. What has to be written for each of them by hand is not for this.
macro_rules! compiled_for {
    (
        [$($feature:tt)+]
        $(#[$doc:meta])*
        $visibility:vis fn $name:ident$(<$of:ident: $bound:path>)?($($argument:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $each:path
    ) => {
        $(#[$doc])*
        $visibility fn $name$(<$of: $bound>)?($($argument: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            if $crate::kernel::cpu::detected!($($feature),+) {
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

/// Bytes of a second-level cache that is wide.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 2 << 20;

/// Whether the second-level cache is of 2 MiB or more, which stands for the slow third level behind it: Sapphire Rapids
/// and later. Not Zen 4 and 5, of 1 MiB beside a third level that answers soon, nor Ice Lake, whose gathers were made
/// slow to be safe. The first level tells nothing: it is of 48 KiB in all of them but Zen 4.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_wide_caches() -> bool {
    second_level_cache() >= WIDE
}

/// No other CPU was measured.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn has_wide_caches() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call from Rust 1.94 on")]
fn ask(leaf: u32, cache: u32) -> CpuidResult {
    // SAFETY: CPUs of 64 bits have the instruction.
    unsafe { __cpuid_count(leaf, cache) }
}

/// Bytes of the second-level cache; 0 if the CPU does not say.
#[cfg(target_arch = "x86_64")]
fn second_level_cache() -> usize {
    /// What describes caches, and what says whether that is there: Intel's, and AMD's of the same form.
    const LEAVES: [[u32; 2]; 2] = [[4, 0], [0x8000_001d, 0x8000_0000]];
    /// More than any CPU describes.
    const CACHES: u32 = 8;
    static BYTES: OnceLock<usize> = OnceLock::new();
    // A virtual machine takes a microsecond or more to answer.
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
