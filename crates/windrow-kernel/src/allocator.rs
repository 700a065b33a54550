//! Limits on the freed memory that the C library's allocator keeps.
//!
//! At first, glibc maps large blocks individually and unmaps each when it is freed. The first such
//! free raises the threshold: from then on, blocks up to the size of the freed one, at most 32 MiB,
//! come from a heap, where freed blocks stay resident between live ones. A merge of Parquet files
//! with one dictionary of 20 MB each held 42 MB of dictionaries at a time: 81 MiB were resident,
//! and 59 MiB with mappings.

/// Blocks of this size or more always get their own mapping. Buffers of record batches and pages
/// are smaller and come from the heap: mapping each anew makes a sort of 6M rows 4 % slower
/// (threshold of 1 MiB, Sapphire Rapids). The cost of 4 MiB is too small to measure.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 4 << 20;

/// Tells the allocator to return every large block to the system as soon as it is freed, and to
/// return free memory at the end of its heap. Meant for processes with a memory limit. Returns true
/// if the allocator has such a setting (glibc).
///
/// The setting applies to the whole process and is best made before threads start. Leases of a
/// `Budget` do not come from the allocator; the setting is for all other memory:
/// readers and writers of files, record batches.
///
/// ```
/// let _set = windrow_kernel::allocator::give_back_large_blocks();
/// ```
pub fn give_back_large_blocks() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let set = |parameter| {
            // SAFETY: `mallopt` takes the lock of the allocator and may be called at any time. The
            // call changes where future blocks come from, not existing blocks.
            unsafe { libc::mallopt(parameter, LARGE) == 1 }
        };
        // Setting one parameter also stops the allocator from adjusting the other.
        [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD].into_iter().all(set)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Tells the allocator to share one heap among all threads, for a process whose address space is
/// limited (`ulimit -v`). glibc otherwise maps 64 MiB of address space for each thread, and tries
/// again at each allocation if the address space has no room for that. Call it before the process
/// starts threads. Returns true if the allocator has such a setting (glibc).
///
/// ```
/// let _set = windrow_kernel::allocator::share_heap();
/// ```
pub fn share_heap() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes the lock of the allocator, and may be called at any time. It
        // changes where later blocks come from, not the existing blocks.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Tells the allocator to return the pages of all free blocks, including those between live blocks.
/// Aligned allocations, such as Arrow's buffers, leave holes too small for the next block of their
/// size. Takes a few milliseconds. Returns true if the allocator returned memory.
///
/// ```
/// let _any = windrow_kernel::allocator::give_back_free_blocks();
/// ```
pub fn give_back_free_blocks() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `malloc_trim` takes the locks of the allocator, may be called at any time, and
        // touches no block in use.
        unsafe { libc::malloc_trim(0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}
