//! Memory mapped directly from the operating system.
//!
//! The engine's buffers are large, few and recycled. In the allocator they would fragment the heap,
//! and freed buffers would stay in the resident set. A mapped buffer counts while it lives and
//! vanishes when it drops, so the budget agrees with the kernel's figures. A few long-lived bytes
//! come from the allocator, since a mapping takes whole pages.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Bytes of unbacked addresses after each region. The system places regions of one length next to
/// each other: without a gap, equal offsets in them compete for the same cache sets. A merge of
/// runs reads at such offsets: with a page between the regions, merging 8 and 64 runs of rows of 96
/// bytes is an eighth faster.
const GAP: usize = 4096;

/// An owned, zero-initialised run of bytes, page-aligned if it is mapped.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    len: usize,
    /// Whether the bytes are mapped; otherwise the allocator owns them.
    mapped: bool,
}

// SAFETY: a region owns its mapping alone, as a `Vec<u8>` owns its allocation.
unsafe impl Send for Region {}
// SAFETY: shared access only reads.
unsafe impl Sync for Region {}

impl Region {
    /// Returns a region without memory.
    pub const fn empty() -> Self {
        Self { start: std::ptr::null_mut(), len: 0, mapped: false }
    }

    /// Maps `len` bytes and populates them: one call costs a quarter less than a fault for every
    /// page. Huge pages are not requested: in virtual machines the host has to supply their memory
    /// first, see `docs/decisions/009-small-pages.md`.
    pub fn new(len: usize) -> std::io::Result<Self> {
        if len == 0 {
            return Ok(Self::empty());
        }
        // SAFETY: an anonymous private mapping at an address that the kernel chooses aliases
        // nothing.
        let start: *mut u8 = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len.saturating_add(GAP),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?
        .cast();
        // SAFETY: `start..start + len` lies in the mapping made above. The advice changes no
        // contents. A system without this advice (before Linux 5.14) takes one fault a page
        // instead.
        let _advised = unsafe { madvise(start.cast(), len, Advice::LinuxPopulateWrite) };
        Ok(Self { start, len, mapped: true })
    }

    /// Copies `bytes` into memory of the allocator.
    pub fn of_allocator(bytes: &[u8]) -> Self {
        let len = bytes.len();
        let start = Box::into_raw(Box::<[u8]>::from(bytes)).cast();
        Self { start, len, mapped: false }
    }

    /// Returns a pointer to the bytes, for callers that divide the region themselves. The pointer
    /// of an empty region is null.
    pub fn start(&mut self) -> *mut u8 {
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
        // SAFETY: `start..start + len` is readable, writable, initialised and owned. `&mut self`
        // makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.mapped {
            if !self.start.is_null() {
                let bytes = std::ptr::slice_from_raw_parts_mut(self.start, self.len);
                // SAFETY: `start` and `len` come from a box that `of_allocator` took apart. Only
                // this drop restores the box.
                drop(unsafe { Box::from_raw(bytes) });
            }
        } else if self.len != 0 {
            // SAFETY: `new` made the mapping with this length and gap, and nothing borrows it any
            // more.
            let unmapped = unsafe { munmap(self.start.cast(), self.len + GAP) };
            debug_assert!(unmapped.is_ok(), "munmap of an own mapping");
        }
    }
}

/// Asks the system to swap out `len` bytes of the memory file `file` from `offset` on, a multiple
/// of the page size. The advice takes mapped pages only, so the function maps them for the duration
/// of the call.
pub fn page_out(file: &File, offset: u64, len: usize) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: the kernel chooses the address, so the mapping aliases nothing of this process.
    let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, file, offset) }?;
    // SAFETY: `start..start + len` is the mapping made above. The advice changes no contents.
    let advised = unsafe { madvise(start, len, Advice::LinuxPageOut) };
    // SAFETY: `start..start + len` is the mapping made above, and no reference into it was ever
    // made.
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
