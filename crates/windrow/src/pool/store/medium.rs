//! Where extents lie: a file on a disk, or memory that the system may swap out.
//!
//! Both are file descriptors read and written at positions, so the process maps none of it and
//! nothing of it counts as resident. Neither has a name: whatever ends the process frees it.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::direct;
use crate::kernel::region::page_out;
use rustix::fs::{Advice, FallocateFlags, MemfdFlags, fadvise, fallocate, memfd_create};

/// Bytes at positions.
pub(super) trait Medium: Debug + Send + Sync {
    /// Where this is, for messages.
    fn name(&self) -> String;

    /// Makes it, if it is not there yet.
    fn make(&self) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `out` from `offset` on.
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// `length` bytes at `offset` are read soon. A hint: failure costs time alone.
    fn prefetch(&self, offset: u64, length: usize);

    /// True if what is stored takes the machine's memory.
    fn is_memory(&self) -> bool;

    /// Gives what `length` bytes at `offset` take back to the system; false if that cannot be.
    fn discard(&self, offset: u64, length: u64) -> bool;
}

/// A temporary file without a name, or anonymous memory: made when first written to.
#[derive(Debug)]
pub(super) struct TempFile {
    /// `None`: memory.
    directory: Option<PathBuf>,
    /// Whether to pass the page cache by, where the file system can.
    direct: bool,
    ways: OnceLock<Ways>,
}

/// The ways to one file.
#[derive(Debug)]
struct Ways {
    file: File,
    direct: Option<File>,
}

impl TempFile {
    /// A file on the file system of `directory`.
    pub(super) fn on_disk(directory: PathBuf, direct: bool) -> Self {
        Self { directory: Some(directory), direct, ways: OnceLock::new() }
    }

    /// Memory outside of the process, swapped out by the system where there is swap.
    pub(super) fn in_memory() -> Self {
        Self { directory: None, direct: false, ways: OnceLock::new() }
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
            // What is written is read late. Where there is no swap it stays in memory.
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
        // What is not to pass the page cache is not to be read into it.
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
