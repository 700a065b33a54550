//! What the C library's allocator keeps of blocks that were freed.
//!
//! glibc maps large blocks by themselves, and gives them back when they are freed - until the first of them
//! is: from then on blocks up to that size, at most 32 MiB, are cut from a heap instead, where those that
//! were freed stay resident between others. A merge of Parquet files that each have a dictionary of 20 MB held
//! 42 MB of one at a time: 81 MiB were resident, and 59 with mappings.

/// Blocks from this size on are mappings of their own for ever. The buffers of record batches and pages are
/// smaller, and go through the heap: mapped anew each time they make a sort of 6M rows 4 % slower (a
/// threshold of 1 MiB, on a Sapphire Rapids; this one is not to be measured).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 4 << 20;

/// Tells the allocator to give every large block back to the system as soon as it is freed, and what is free at
/// the end of its heap, for a process that is to stay below a limit. True if there is such a setting (glibc).
///
/// It is of the whole process, and best made before there are threads. What the engine leases from a
/// [`Budget`](crate::Budget) does not come from the allocator; this is for all else: readers and writers of
/// files, record batches.
///
/// ```
/// let _set = windrow::give_back_large_blocks();
/// ```
pub fn give_back_large_blocks() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let set = |parameter| {
            // SAFETY: `mallopt` takes the lock of the allocator, may be called at any time, and changes where
            // blocks to come are from, not those that there are.
            unsafe { libc::mallopt(parameter, LARGE) == 1 }
        };
        // One of them alone would leave the other at a value that the allocator no longer moves.
        [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD].into_iter().all(set)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Tells the allocator to have one heap for all threads, for a process whose address space is limited (`ulimit -v`): glibc
/// else maps 64 MiB of it for each thread, and where there is no room for that it tries anew at each allocation. True if
/// there is such a setting (glibc). It is best made before there are threads.
///
/// ```
/// let _set = windrow::share_heap();
/// ```
pub fn share_heap() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes the lock of the allocator, may be called at any time, and changes where blocks to come
        // are from, not those that there are.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Tells the allocator to give back the pages of all blocks that are free, also those between others: blocks
/// that ask for an alignment, as Arrow's buffers do, leave holes that the next one of their size does not fit
/// into. A few milliseconds; true if there was anything to give back.
///
/// ```
/// let _any = windrow::give_back_free_blocks();
/// ```
pub fn give_back_free_blocks() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `malloc_trim` takes the locks of the allocator, may be called at any time, and touches no
        // block that is in use.
        unsafe { libc::malloc_trim(0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}
