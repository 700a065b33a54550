//! Memory that comes straight from the operating system and goes straight back.
//!
//! The buffers of the engine are large, few and recycled. Taken from the allocator they would
//! fragment its heap, and what is freed would stay in the resident set; mapped by themselves they
//! count while they live and vanish when they drop, so the budget's figures are the kernel's.

use std::ops::{Deref, DerefMut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of a huge page. Regions of whole huge pages ask for them: first touching 2 MiB costs one
/// fault instead of 512, which made filling fresh chunks 2-3 times faster.
const HUGE: usize = 2 << 20;

/// An owned, zero-initialised, page-aligned run of bytes.
#[derive(Debug)]
pub(crate) struct Region {
    start: *mut u8,
    len: usize,
    /// What was mapped: the region, and what aligned it.
    mapped: (*mut u8, usize),
}

// SAFETY: a region owns its mapping alone, as a `Vec<u8>` owns its allocation.
unsafe impl Send for Region {}
// SAFETY: shared access only reads.
unsafe impl Sync for Region {}

impl Region {
    /// A region without memory.
    pub(crate) const fn empty() -> Self {
        let null = std::ptr::null_mut();
        Self { start: null, len: 0, mapped: (null, 0) }
    }

    /// Maps `len` bytes. Physical memory is taken page by page, as they are first written.
    pub(crate) fn new(len: usize) -> std::io::Result<Self> {
        if len == 0 {
            return Ok(Self::empty());
        }
        let huge = len.is_multiple_of(HUGE);
        let mapped_len = if huge { len + HUGE } else { len };
        // SAFETY: an anonymous private mapping at an address of the kernel's choice aliases nothing.
        let mapped: *mut u8 = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped_len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?
        .cast();
        let skip = if huge { mapped.align_offset(HUGE) } else { 0 };
        let start = mapped.wrapping_add(skip);
        if huge {
            // SAFETY: `start..start + len` lies in the mapping made above: `skip` is below `HUGE`.
            // Advice changes no contents; without huge pages the region works all the same.
            let _advised = unsafe { madvise(start.cast(), len, Advice::LinuxHugepage) };
        }
        Ok(Self { start, len, mapped: (mapped, mapped_len) })
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `start..start + len` is mapped readable, initialised by the kernel, and owned.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as for `deref`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: the mapping was made by `new` with this length and nothing borrows it any more.
            let unmapped = unsafe { munmap(self.mapped.0.cast(), self.mapped.1) };
            debug_assert!(unmapped.is_ok(), "munmap of an own mapping");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zeroed_writable_and_may_be_empty() {
        let mut region = Region::new(10_000).unwrap();
        assert!(region.iter().all(|&byte| byte == 0));
        region[9_999] = 7;
        assert_eq!(region[9_999], 7);
        let mut huge = Region::new(2 * HUGE).unwrap();
        huge.fill(3);
        assert!(huge.as_ptr().align_offset(HUGE) == 0 && huge.iter().all(|&byte| byte == 3));
        assert!(Region::new(0).unwrap().is_empty());
    }
}
