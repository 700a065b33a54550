//! Asking for memory before it is needed.

/// Asks for the cache line at `place`, which need not be readable.
#[inline(always)]
pub(super) fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for all of `bytes`, which are to be in the second-level cache.
pub(crate) fn prefetch_all(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        // SAFETY: a hint; it faults at no address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes.chunks(LINE);
}
