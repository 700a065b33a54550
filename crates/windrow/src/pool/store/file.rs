//! Temporary files: without a name from the start, so that whatever ends the process frees them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

use super::space::Space;
use crate::error::{Error, Result};

/// One temporary file, made when it is first written to.
#[derive(Debug)]
pub(super) struct StoreFile {
    pub(super) index: usize,
    directory: PathBuf,
    file: OnceLock<File>,
    space: Mutex<Space>,
}

impl StoreFile {
    pub(super) fn new(index: usize, directory: &Path) -> Self {
        Self {
            index,
            directory: directory.to_path_buf(),
            file: OnceLock::new(),
            space: Mutex::default(),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Free ranges of the file.
    pub(super) fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all of `bytes` at `offset`. Where the disk is full, what is free in this file is given
    /// back to it and the write tried once more.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let file = self.handle()?;
        let written = file.write_all_at(bytes, offset).or_else(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded if self.punch(file) => {
                file.write_all_at(bytes, offset)
            }
            _ => Err(error),
        });
        written.map_err(|error| self.error("writing", error))
    }

    /// Fills `out` from `offset` on.
    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.handle()?.read_exact_at(out, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::Corrupt {
                place: self.place(offset),
                message: format!("expected {} bytes, the file ends before", out.len()),
            },
            _ => self.error("reading", error),
        })
    }

    /// Starts reading into the page cache. A hint: failure costs time alone.
    pub(super) fn prefetch(&self, offset: u64, length: usize) {
        if let Some(file) = self.file.get() {
            let length = std::num::NonZeroU64::new(length as u64);
            let _hint = fadvise(file, offset, length, Advice::WillNeed);
        }
    }

    pub(super) fn place(&self, offset: u64) -> String {
        format!("temporary file in {}, offset {offset}", self.directory.display())
    }

    /// Gives the blocks of free ranges back to the file system; false if there were none.
    fn punch(&self, file: &File) -> bool {
        let space = self.space();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let mut punched = false;
        for (offset, length) in space.holes() {
            punched |= fallocate(file, flags, offset, length).is_ok();
        }
        punched
    }

    fn handle(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let made = tempfile::tempfile_in(&self.directory).map_err(|error| Error::TempSpace {
            dir: self.directory.display().to_string(),
            message: format!("cannot create a temporary file: {error}"),
        })?;
        Ok(self.file.get_or_init(|| made))
    }

    fn error(&self, what: &str, error: io::Error) -> Error {
        let dir = self.directory.display().to_string();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Error::TempSpace { dir, message: error.to_string() }
            }
            _ => Error::Io { context: format!("{what} a temporary file in {dir}"), source: error },
        }
    }

    #[cfg(test)]
    pub(super) fn raw(&self) -> &File {
        self.file.get().expect("written to before")
    }
}
