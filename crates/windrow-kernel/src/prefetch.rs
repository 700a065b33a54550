//! Prefetching of memory.

macro_rules! hint {
    ($(#[$doc:meta])* $name:ident, $hint:ident) => {
        $(#[$doc])*
        #[inline(always)]
        pub(super) fn $name(place: *const u8) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch is a hint and faults at no address.
            unsafe {
                use std::arch::x86_64::{$hint, _mm_prefetch};
                _mm_prefetch::<$hint>(place.cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = place;
        }
    };
}
hint! {
    /// Prefetches the cache line at `place`, readable or not.
    prefetch, _MM_HINT_T0
}
hint! {
    /// Prefetches the cache line at `place` into the second-level cache.
    prefetch_near, _MM_HINT_T1
}
hint! {
    /// Prefetches the cache line at `place` for writing; `place` need not be writable. Neither the
    /// first store to the line nor loads after that store then wait for it. Has no effect on a CPU
    /// without the instruction.
    prefetch_written, _MM_HINT_ET0
}

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Prefetches a row for an immediate read.
#[inline(always)]
pub fn prefetch_row(row: &[u8]) {
    /// The hardware prefetches the rest of longer rows.
    const MOST: usize = 256;
    let (start, last) = (row.as_ptr(), row.len().clamp(1, MOST) - 1);
    prefetch(start);
    for line in 1..last / LINE {
        prefetch(start.wrapping_add(line * LINE));
    }
    prefetch(start.wrapping_add(last));
}

/// Prefetches `bytes` into the second-level cache.
#[inline]
pub fn prefetch_all(bytes: &[u8]) {
    let start = bytes.as_ptr();
    for at in (0..bytes.len()).step_by(LINE) {
        prefetch_near(start.wrapping_add(at));
    }
}

/// Prefetches all of `value`.
pub fn prefetch_value<T>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for at in (0..size_of::<T>()).step_by(LINE) {
        prefetch(start.wrapping_add(at));
    }
}

/// Memory to prefetch a few lines at a time between other work: the memory bus is idle while words
/// are sorted in a cache.
#[derive(Debug, Default)]
pub struct Ahead<'a> {
    ranges: &'a [&'a [u8]],
    rest: &'a [u8],
}

impl<'a> Ahead<'a> {
    /// Queues the bytes of `ranges`, in this order.
    pub fn new(ranges: &'a [&'a [u8]]) -> Self {
        Self { ranges, rest: &[] }
    }

    /// Queues the lines of `bytes`.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { ranges: &[], rest: bytes }
    }

    /// Prefetches the next `lines` lines, or all that are left.
    #[inline(always)]
    pub fn ask(&mut self, mut lines: usize) {
        while lines > 0 {
            if self.rest.is_empty() {
                let [next, others @ ..] = self.ranges else { return };
                (self.rest, self.ranges) = (next, others);
            }
            let count = self.rest.len().div_ceil(LINE).min(lines);
            let (now, rest) = self.rest.split_at(self.rest.len().min(count * LINE));
            prefetch_all(now);
            self.rest = rest;
            lines -= count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_asked_for_once_and_in_order() {
        let ranges = [&[0; 200][..], &[], &[0; 64], &[0; 1]];
        // Lines of each: 4, 0, 1, 1.
        for step in 1..9 {
            let (mut ahead, mut asked) = (Ahead::new(&ranges), 0);
            while asked < 6 {
                ahead.ask(step);
                asked += step;
                let left = ahead.rest.len().div_ceil(LINE);
                let behind: usize =
                    ahead.ranges.iter().map(|range| range.len().div_ceil(LINE)).sum();
                assert_eq!(left + behind, 6usize.saturating_sub(asked), "{step} at once");
            }
            ahead.ask(step);
        }
        let mut ahead = Ahead::of(&[0; 130]);
        ahead.ask(2);
        assert_eq!(ahead.rest.len(), 2);
        // Any length, also zero.
        for len in 0..300 {
            let bytes = vec![1; len];
            prefetch_all(&bytes);
            prefetch_row(&bytes);
        }
        prefetch_value(&[0u64; 20]);
    }
}
