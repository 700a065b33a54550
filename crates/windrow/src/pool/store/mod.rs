//! The store: extents in a few unlinked files, or in memory that the system may swap out.
//!
//! ```text
//! file 0 (directory 0)   | extent | extent | free | extent |...
//! file 1 (directory 0)   | extent | extent |...
//! ```
//!
//! Several files a directory, since a file system lets one writer at a time into a file. Files are
//! made when first needed. Extents are multiples of 4 KiB; freed ones are joined with free
//! neighbours and used again, best fit first. No extent costs a create, an unlink or a rename. A
//! directory that is full is passed over while another has room.
//!
//! Invariant: an extent is read back whole and as written - its checksum covers the bytes, the file
//! and the offset, so that a misdirected or damaged block is [`Error::Corrupt`].

mod file;
mod space;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::PoolOptions;
use super::codec::{Codec, compress, decompress};
use crate::error::{Error, Result};
use file::StoreFile;

const BLOCK: u64 = 4096;
/// Files in each directory. Two threads that spill at once seldom meet in one of four.
const FILES: usize = 4;

/// Temporary files and the free space in them.
#[derive(Debug)]
pub(super) struct Store {
    files: Vec<Arc<StoreFile>>,
    next: AtomicUsize,
    /// Bytes that all files have, and may have.
    size: AtomicU64,
    max_bytes: u64,
    codec: Codec,
}

/// Bytes in a store; their space is free again when this drops.
#[derive(Debug)]
pub(crate) struct Extent {
    file: Arc<StoreFile>,
    offset: u64,
    room: u64,
    stored_len: usize,
    len: usize,
    codec: Codec,
    checksum: u32,
}

impl Extent {
    /// Bytes that are read back.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that they take in the file.
    pub(super) fn stored_len(&self) -> usize {
        self.stored_len
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.file.space().give(self.offset, self.room);
    }
}

impl Store {
    pub(super) fn new(options: PoolOptions) -> Result<Self> {
        let mut directories = options.directories;
        if directories.is_empty() {
            directories.push(std::env::temp_dir());
        }
        for directory in &directories {
            if !directory.is_dir() {
                return Err(Error::TempSpace {
                    dir: directory.display().to_string(),
                    message: "not a directory".into(),
                });
            }
        }
        let places = (0..FILES).flat_map(|_| &directories).enumerate();
        let files = places.map(|(index, directory)| Arc::new(StoreFile::new(index, directory)));
        Ok(Self {
            files: files.collect(),
            next: AtomicUsize::new(0),
            size: AtomicU64::new(0),
            max_bytes: options.max_temp_bytes,
            codec: options.codec,
        })
    }

    /// Writes `bytes`, compressed if that makes them smaller.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<Extent> {
        let (codec, stored) = compress(self.codec, bytes);
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.files.len();
        let (before, from) = self.files.split_at(turn);
        let files = || from.iter().chain(before);
        let room = (stored.len() as u64).next_multiple_of(BLOCK);
        let mut full = None;
        // What is free in any file comes before more of one.
        let free = files().filter_map(|file| Some((file, file.space().take(room)?)));
        let more = files().map(|file| self.grow(file, room).map(|offset| (file, offset)));
        for place in free.map(Ok).chain(more) {
            let written = place.and_then(|(file, offset)| {
                // Made before writing: should that fail, it gives the room back.
                let extent = Extent {
                    file: Arc::clone(file),
                    offset,
                    room,
                    stored_len: stored.len(),
                    len: bytes.len(),
                    codec,
                    checksum: checksum(&stored, file.index, offset),
                };
                file.write(&stored, offset).map(|()| extent)
            });
            match written {
                Err(error @ Error::TempSpace { .. }) => full = full.or(Some(error)),
                written => return written,
            }
        }
        Err(full.unwrap_or_else(|| unreachable!("a store has files")))
    }

    /// Reads `extent` so that it fills `out`.
    pub(super) fn read(&self, extent: &Extent, out: &mut [u8]) -> Result<()> {
        let raw = extent.codec == Codec::None;
        let mut scratch = vec![0; if raw { 0 } else { extent.stored_len }];
        let stored = if raw { &mut *out } else { &mut scratch[..] };
        extent.file.read(stored, extent.offset)?;
        let got = checksum(stored, extent.file.index, extent.offset);
        if got != extent.checksum {
            return Err(Error::Corrupt {
                place: extent.file.place(extent.offset),
                message: format!("expected checksum {:08x}, got {got:08x}", extent.checksum),
            });
        }
        if raw { Ok(()) } else { decompress(extent.codec, &scratch, out) }
    }

    /// Starts reading `extent` into the page cache.
    pub(super) fn prefetch(&self, extent: &Extent) {
        extent.file.prefetch(extent.offset, extent.stored_len);
    }

    /// Makes `file` longer by `room` bytes; where they are.
    fn grow(&self, file: &StoreFile, room: u64) -> Result<u64> {
        let fits = |size: u64| size.checked_add(room).filter(|&size| size <= self.max_bytes);
        match self.size.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(file.space().grow(room)),
            Err(_) => Err(Error::TempSpace {
                dir: file.directory().display().to_string(),
                message: format!("the limit of {} bytes is reached", self.max_bytes),
            }),
        }
    }
}

/// The checksum of bytes in their place.
fn checksum(bytes: &[u8], file: usize, offset: u64) -> u32 {
    let place = offset ^ (file as u64) << 56;
    crc32c::crc32c_append(crc32c::crc32c(&place.to_le_bytes()), bytes)
}

#[cfg(test)]
mod tests;
