//! What of a CPU decides which of two ways is the faster one, where both would run.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid_count, CpuidResult};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Bytes of a first-level cache that is wide.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 48 << 10;

/// Whether the first-level cache is of 48 KiB or more, which stands for the wide path to a large second level, and the slow
/// third level behind that, that came with it: Sapphire Rapids and later. Not Ice Lake, whose gathers were made slow to be
/// safe: it has no `bf16`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_wide_caches() -> bool {
    std::arch::is_x86_feature_detected!("avx512bf16") && first_level_cache() >= WIDE
}

/// No other CPU was measured.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn has_wide_caches() -> bool {
    false
}

/// Bytes of the first-level data cache; 0 if the CPU does not say.
#[cfg(target_arch = "x86_64")]
fn first_level_cache() -> usize {
    #[allow(unused_unsafe, reason = "safe to call from Rust 1.94 on")]
    fn ask(leaf: u32) -> CpuidResult {
        // SAFETY: CPUs of 64 bits have the instruction.
        unsafe { __cpuid_count(leaf, 0) }
    }
    /// What describes caches, and what says whether that is there: Intel's, and AMD's of the same form.
    const LEAVES: [[u32; 2]; 2] = [[4, 0], [0x8000_001d, 0x8000_0000]];
    static BYTES: OnceLock<usize> = OnceLock::new();
    // A virtual machine takes a microsecond or more to answer.
    *BYTES.get_or_init(|| {
        let known = LEAVES.into_iter().filter(|[leaf, most]| ask(*most).eax >= *leaf);
        let mut first = known.map(|[leaf, _]| ask(leaf)).filter(|found| found.eax & 0x1f == 1);
        first.next().map_or(0, |found| {
            let [line, parts, ways] = [found.ebx & 0xfff, found.ebx >> 12 & 0x3ff, found.ebx >> 22];
            [line, parts, ways, found.ecx].iter().map(|less_one| *less_one as usize + 1).product()
        })
    })
}
