//! Memory that comes straight from the operating system and goes straight back.
//!
//! The buffers of the engine are large, few and recycled. Taken from the allocator they would
//! fragment its heap, and what is freed would stay in the resident set; mapped by themselves they
//! count while they live and vanish when they drop, so the budget's figures are the kernel's. A few
//! bytes that are kept for long come from the allocator: a mapping is whole pages.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Bytes of addresses behind each region, without memory. Regions of one length stand one behind the other:
/// without a gap, what lies at the same place in them is in the way of each other in the caches. A merge of
/// runs reads there: of 8 and 64 runs of rows of 96 bytes it is an eighth faster with a page between.
const GAP: usize = 4096;

/// An owned, zero-initialised run of bytes, page-aligned if it is mapped.
#[derive(Debug)]
pub(crate) struct Region {
    start: *mut u8,
    len: usize,
    /// Mapped, or else the allocator's.
    mapped: bool,
}

// SAFETY: a region owns its mapping alone, as a `Vec<u8>` owns its allocation.
unsafe impl Send for Region {}
// SAFETY: shared access only reads.
unsafe impl Sync for Region {}

impl Region {
    /// A region without memory.
    pub(crate) const fn empty() -> Self {
        Self { start: std::ptr::null_mut(), len: 0, mapped: false }
    }

    /// Maps `len` bytes, physical memory included: one call is a quarter cheaper than a fault for
    /// every page. Huge pages are not asked for: in virtual machines they come from memory that the
    /// host has to supply first, see `docs/decisions/009-small-pages.md`.
    pub(crate) fn new(len: usize) -> std::io::Result<Self> {
        if len == 0 {
            return Ok(Self::empty());
        }
        // SAFETY: an anonymous private mapping at an address of the kernel's choice aliases nothing.
        let start: *mut u8 = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len.saturating_add(GAP),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?
        .cast();
        // SAFETY: `start..start + len` is of the mapping made above. The advice changes no contents; a
        // system that does not know it (before Linux 5.14) takes a fault a page instead.
        let _advised = unsafe { madvise(start.cast(), len, Advice::LinuxPopulateWrite) };
        Ok(Self { start, len, mapped: true })
    }

    /// A copy of `bytes` that the allocator has the memory for.
    pub(crate) fn of_allocator(bytes: &[u8]) -> Self {
        let len = bytes.len();
        let start = Box::into_raw(Box::<[u8]>::from(bytes)).cast();
        Self { start, len, mapped: false }
    }

    /// Where the bytes are, for whoever hands out parts of them by itself. Null for none.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.start
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `start..start + len` is readable, initialised by the kernel or from a slice, and owned.
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
        if !self.mapped {
            if !self.start.is_null() {
                let bytes = std::ptr::slice_from_raw_parts_mut(self.start, self.len);
                // SAFETY: `start` and `len` are those of a box that `of_allocator` took apart, once.
                drop(unsafe { Box::from_raw(bytes) });
            }
        } else if self.len != 0 {
            // SAFETY: the mapping was made by `new` with this length and nothing borrows it any more.
            let unmapped = unsafe { munmap(self.start.cast(), self.len + GAP) };
            debug_assert!(unmapped.is_ok(), "munmap of an own mapping");
        }
    }
}

/// Asks the system to swap out `len` bytes of `file`, which is memory, from `offset` on, a multiple of
/// the page size. Only mapped pages can be asked for, so they are mapped for as long as that takes.
pub(crate) fn page_out(file: &File, offset: u64, len: usize) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: the address is the kernel's choice, so the mapping aliases nothing of this process.
    let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, file, offset) }?;
    // SAFETY: `start..start + len` is the mapping made above. The advice changes no contents.
    let advised = unsafe { madvise(start, len, Advice::LinuxPageOut) };
    // SAFETY: as above, and no reference into the mapping was ever made.
    unsafe { munmap(start, len) }?;
    Ok(advised?)
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
        assert!(Region::new(0).unwrap().is_empty());
    }

    #[test]
    fn a_region_of_the_allocator_is_a_copy() {
        let mut region = Region::of_allocator(&[1, 2, 3]);
        region[1] = 7;
        assert_eq!(&region[..], [1, 7, 3]);
        assert!(Region::of_allocator(&[]).is_empty());
    }
}
