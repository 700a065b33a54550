//! Instruction sets of the CPU, which choose between two paths.
//!
//! Kernels test for the instructions of a path only with [`detected`]. The macro returns false
//! everywhere with the feature `portable` of this crate, and in builds with debug assertions where
//! `WINDROW_PORTABLE` is set: the paths of other CPUs can be measured and tested on this one.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

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
