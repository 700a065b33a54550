//! The store: extents in a few unlinked files.
//!
//! ```text
//! file 0 (directory 0)   | extent | extent | free | extent |...
//! file 1 (directory 1)   | extent | extent |...
//! ```
//!
//! Files are made when first needed, one per directory, and have no name from the start: whatever
//! ends the process gives their space back. Extents are multiples of 4 KiB; freed ones are used
//! again, best fit first. No extent costs a create, an unlink or a rename.
//!
//! Invariant: an extent is read back whole and as written - its checksum covers the bytes, the file
//! and the offset, so that a misdirected or damaged block is [`Error::Corrupt`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::PoolOptions;
use super::codec::{Codec, compress, decompress};
use crate::error::{Error, Result};

const BLOCK: u64 = 4096;
/// A freed extent is used for one that needs at least this share of it, in quarters.
const FIT_QUARTERS: u64 = 3;

/// Temporary files and the free space in them.
#[derive(Debug)]
pub(super) struct Store {
    files: Vec<Arc<StoreFile>>,
    next: AtomicUsize,
    max_bytes: u64,
    codec: Codec,
}

#[derive(Debug)]
struct StoreFile {
    index: usize,
    directory: PathBuf,
    /// Made when the first extent is written.
    file: OnceLock<File>,
    space: Mutex<Space>,
}

#[derive(Debug, Default)]
struct Space {
    end: u64,
    /// Offsets of free extents by their size.
    free: BTreeMap<u64, Vec<u64>>,
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

    fn place(&self) -> String {
        format!("temporary file in {}, offset {}", self.file.directory.display(), self.offset)
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.file.space().free.entry(self.room).or_default().push(self.offset);
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
        let files = directories.into_iter().enumerate().map(|(index, directory)| {
            Arc::new(StoreFile { index, directory, file: OnceLock::new(), space: Mutex::default() })
        });
        Ok(Self {
            files: files.collect(),
            next: AtomicUsize::new(0),
            max_bytes: options.max_temp_bytes,
            codec: options.codec,
        })
    }

    /// Writes `bytes`, compressed if that makes them smaller.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<Extent> {
        let (codec, stored) = compress(self.codec, bytes);
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.files.len();
        let file = &self.files[turn];
        let (offset, room) = self.allocate(file, (stored.len() as u64).next_multiple_of(BLOCK))?;
        let extent = Extent {
            file: Arc::clone(file),
            offset,
            room,
            stored_len: stored.len(),
            len: bytes.len(),
            codec,
            checksum: checksum(&stored, file.index, offset),
        };
        file.handle()?
            .write_all_at(&stored, offset)
            .map_err(|error| file.error("writing", error))?;
        Ok(extent)
    }

    /// Reads `extent` so that it fills `out`.
    pub(super) fn read(&self, extent: &Extent, out: &mut [u8]) -> Result<()> {
        let raw = extent.codec == Codec::None;
        let mut scratch = vec![0; if raw { 0 } else { extent.stored_len }];
        let stored = if raw { &mut *out } else { &mut scratch[..] };
        let file = extent.file.handle()?;
        file.read_exact_at(stored, extent.offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::Corrupt {
                place: extent.place(),
                message: format!("expected {} bytes, the file ends before", stored.len()),
            },
            _ => extent.file.error("reading", error),
        })?;
        let got = checksum(stored, extent.file.index, extent.offset);
        if got != extent.checksum {
            return Err(Error::Corrupt {
                place: extent.place(),
                message: format!("expected checksum {:08x}, got {got:08x}", extent.checksum),
            });
        }
        if raw { Ok(()) } else { decompress(extent.codec, &scratch, out) }
    }

    /// Starts reading `extent` into the page cache. A hint: failure costs time alone.
    pub(super) fn prefetch(&self, extent: &Extent) {
        if let Some(file) = extent.file.file.get() {
            let len = std::num::NonZeroU64::new(extent.stored_len as u64);
            let advice = rustix::fs::Advice::WillNeed;
            let _hint = rustix::fs::fadvise(file, extent.offset, len, advice);
        }
    }

    /// Room for `room` bytes: where, and how much of it there is.
    fn allocate(&self, file: &StoreFile, room: u64) -> Result<(u64, u64)> {
        let others = self.files.iter().filter(|other| other.index != file.index);
        let taken: u64 = others.map(|other| other.space().end).sum();
        let mut space = file.space();
        let best = space.free.range(room..=room * 4 / FIT_QUARTERS).next().map(|(&size, _)| size);
        if let Some(size) = best {
            let offsets = space.free.get_mut(&size);
            if let Some(offset) = offsets.and_then(Vec::pop) {
                if space.free.get(&size).is_some_and(Vec::is_empty) {
                    space.free.remove(&size);
                }
                return Ok((offset, size));
            }
        }
        if taken + space.end + room > self.max_bytes {
            return Err(Error::TempSpace {
                dir: file.directory.display().to_string(),
                message: format!("the limit of {} bytes is reached", self.max_bytes),
            });
        }
        let offset = space.end;
        space.end += room;
        Ok((offset, room))
    }
}

impl StoreFile {
    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
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
}

/// The checksum of bytes in their place.
fn checksum(bytes: &[u8], file: usize, offset: u64) -> u32 {
    let place = offset ^ (file as u64) << 56;
    crc32c::crc32c_append(crc32c::crc32c(&place.to_le_bytes()), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(max_bytes: u64, codec: Codec) -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let directories = vec![directory.path().to_path_buf()];
        let options = PoolOptions { directories, max_temp_bytes: max_bytes, codec };
        (directory, Store::new(options).unwrap())
    }

    #[test]
    fn extents_come_back_as_written_and_leave_no_name() {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let (directory, store) = store(u64::MAX, codec);
            let extents: Vec<Extent> =
                (0..20u8).map(|i| store.write(&vec![i; 5000 + i as usize]).unwrap()).collect();
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            for (i, extent) in (0..20u8).zip(&extents) {
                let mut out = vec![0; extent.len()];
                store.read(extent, &mut out).unwrap();
                assert_eq!(out, vec![i; 5000 + i as usize]);
            }
        }
    }

    #[test]
    fn freed_space_is_used_again_and_the_limit_is_kept() {
        let (_directory, store) = store(64 << 10, Codec::None);
        for _ in 0..100 {
            let first = store.write(&[1; 20_000]).unwrap();
            let second = store.write(&[2; 20_000]).unwrap();
            let mut out = vec![0; 20_000];
            store.read(&first, &mut out).unwrap();
            assert!(out.iter().all(|&byte| byte == 1));
            drop((first, second));
        }
        let held: Vec<_> = (0..3).map(|_| store.write(&[3; 20_000])).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(matches!(store.write(&[4; 20_000]), Err(Error::TempSpace { .. })));
    }

    #[test]
    fn a_damaged_or_short_extent_is_corruption() {
        let (_directory, store) = store(u64::MAX, Codec::None);
        let extent = store.write(&[7; 10_000]).unwrap();
        let file = extent.file.file.get().unwrap();
        let mut out = vec![0; 10_000];
        for at in [0, 4_096, 9_999] {
            file.write_all_at(&[8], extent.offset + at).unwrap();
            assert!(matches!(store.read(&extent, &mut out), Err(Error::Corrupt { .. })));
            file.write_all_at(&[7], extent.offset + at).unwrap();
        }
        store.read(&extent, &mut out).unwrap();
        file.set_len(100).unwrap();
        assert!(matches!(store.read(&extent, &mut out), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn an_extent_read_from_another_place_is_corruption() {
        let (_directory, store) = store(u64::MAX, Codec::None);
        let mut first = store.write(&[7; 4096]).unwrap();
        let second = store.write(&[7; 4096]).unwrap();
        first.offset = second.offset;
        let mut out = vec![0; 4096];
        assert!(matches!(store.read(&first, &mut out), Err(Error::Corrupt { .. })));
        std::mem::forget(first);
    }
}
