//! Media of extents: a file on a disk, or memory that the system may swap out.
//!
//! Both are file descriptors, read and written at offsets: the process maps nothing, so nothing
//! counts as resident. Neither has a name, so the end of the process frees it in any case.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::direct;
use rustix::fs::{Advice, FallocateFlags, MemfdFlags, fadvise, fallocate, memfd_create};
use windrow_kernel::region::page_out;

/// Bytes at offsets.
pub(super) trait Medium: Debug + Send + Sync {
    /// Returns the location, for messages.
    fn name(&self) -> String;

    /// Creates the medium on first use.
    fn make(&self) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `out` from `offset` on.
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// Hints that `length` bytes at `offset` are read soon. Failures only cost time.
    fn prefetch(&self, offset: u64, length: usize);

    /// Returns true if stored bytes occupy the machine's memory.
    fn is_memory(&self) -> bool;

    /// Returns the storage of `length` bytes at `offset` to the system; false on failure.
    fn discard(&self, offset: u64, length: u64) -> bool;
}

/// A temporary file without a name, or anonymous memory; created on the first write.
#[derive(Debug)]
pub(super) struct TempFile {
    /// Directory of the file; `None` for memory.
    directory: Option<PathBuf>,
    /// Whether to bypass the page cache, if the file system supports it.
    direct: bool,
    ways: OnceLock<Ways>,
}

/// The open descriptors of one file.
#[derive(Debug)]
struct Ways {
    file: File,
    direct: Option<File>,
}

impl TempFile {
    /// Returns a file on the file system of `directory`; without one, memory outside of the
    /// process, swapped out by the system if there is swap.
    pub(super) fn new(directory: Option<PathBuf>, direct: bool) -> Self {
        Self { directory, direct, ways: OnceLock::new() }
    }

    fn ways(&self) -> io::Result<&Ways> {
        if let Some(ways) = self.ways.get() {
            return Ok(ways);
        }
        let file = match &self.directory {
            Some(directory) => tempfile::tempfile_in(directory)?,
            None => File::from(memfd_create("windrow-spill", MemfdFlags::CLOEXEC)?),
        };
        let direct = if self.direct { direct::reopen(&file) } else { None };
        Ok(self.ways.get_or_init(|| Ways { file, direct }))
    }
}

impl Medium for TempFile {
    fn name(&self) -> String {
        match &self.directory {
            Some(directory) => directory.display().to_string(),
            None => "memory".to_owned(),
        }
    }

    fn make(&self) -> io::Result<()> {
        self.ways().map(|_| ())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Ways { file, direct } = self.ways()?;
        if let Some(direct) = direct
            && direct::is_aligned(bytes, offset)
        {
            return direct::write(direct, bytes, offset);
        }
        file.write_all_at(bytes, offset)?;
        if self.is_memory() {
            // Written data is read late. Without swap, the data stays in memory.
            let _hint = page_out(file, offset, bytes.len());
        }
        Ok(())
    }

    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let Ways { file, direct } = self.ways()?;
        match direct {
            Some(direct) if direct::is_aligned(out, offset) => direct::read(direct, out, offset),
            _ => file.read_exact_at(out, offset),
        }
    }

    fn prefetch(&self, offset: u64, length: usize) {
        // With direct I/O, prefetching would fill the page cache that reads bypass.
        if let Some(Ways { file, direct: None }) = self.ways.get() {
            let length = std::num::NonZeroU64::new(length as u64);
            let _hint = fadvise(file, offset, length, Advice::WillNeed);
        }
    }

    fn is_memory(&self) -> bool {
        self.directory.is_none()
    }

    fn discard(&self, offset: u64, length: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.ways.get().is_some_and(|ways| fallocate(&ways.file, flags, offset, length).is_ok())
    }
}
