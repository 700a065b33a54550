//! The store: extents in a few unlinked files, or in memory outside of the process.
//!
//! ```text
//! volume 0 (directory 0)   | extent | extent | free | extent |...
//! volume 1 (directory 0)   | extent | extent |...
//! volume n (memory)        | extent |...
//! ```
//!
//! Each directory has several files, since a file system admits one writer at a time per file.
//! Files are created on first use. Extents are multiples of 4 KiB. Freed extents are merged with
//! free neighbours and reused, best fit first. No extent costs a create, an unlink or a rename. A
//! full directory is skipped while another has space.
//!
//! Invariant: reads return the bytes as written. Checksums cover the bytes, the volume and the
//! offset, so a misdirected or damaged block is [`Error::Corrupt`]. An extent has one checksum and
//! is read whole, or one per block and can be read in parts.

mod direct;
mod medium;
mod part;
mod space;
mod volume;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::budget::Budget;
use crate::buffer::Buffer;
use crate::codec::{Codec, compress, decompress, scratch_bytes};
use crate::lock::lock;
use crate::options::PoolOptions;
use crate::policy::SpillTo;
use medium::{Medium, TempFile};
pub use part::Part;
use volume::Volume;
use windrow_rows::{Error, Result};

const BLOCK: u64 = 4096;
/// Files per directory. Two concurrent spill threads seldom use the same of four files.
const FILES: usize = 4;

/// Volumes and their free space.
#[derive(Debug)]
pub(super) struct Store {
    disks: Vec<Arc<Volume>>,
    memory: Vec<Arc<Volume>>,
    next: AtomicUsize,
    /// Total bytes of all volumes.
    size: AtomicU64,
    max_bytes: u64,
    /// Budget of the compression workspaces.
    budget: Budget,
    /// Most bytes of an extent, apart from rows longer than a chunk.
    usual: usize,
    /// Compression workspaces for reuse.
    scratch: Mutex<Vec<Buffer>>,
}

/// Bytes in a store; dropping the extent frees its space.
#[derive(Debug)]
pub struct Extent {
    volume: Arc<Volume>,
    offset: u64,
    room: u64,
    /// The bytes in the store.
    pub(super) stored_len: usize,
    len: usize,
    codec: Codec,
    checksums: Checksums,
}

/// Checksums of an extent.
#[derive(Clone, Debug)]
enum Checksums {
    Whole(u32),
    /// One checksum per [`BLOCK`].
    Blocks(Box<[u32]>),
}

impl Extent {
    /// Returns the uncompressed length.
    #[expect(clippy::len_without_is_empty, reason = "an extent is not empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if parts of the extent can be read.
    pub fn has_parts(&self) -> bool {
        matches!(self.checksums, Checksums::Blocks(_))
    }

    /// Fails unless `stored`, the bytes from block `first` on, has the expected checksums.
    fn check(&self, stored: &[u8], first: usize) -> Result<()> {
        let check = |stored: &[u8], offset: u64, expected: u32| {
            let got = checksum(stored, self.volume.index, offset);
            if got == expected {
                return Ok(());
            }
            Err(Error::Corrupt {
                place: self.volume.place(offset),
                message: format!("expected checksum {expected:08x}, got {got:08x}"),
            })
        };
        match &self.checksums {
            Checksums::Whole(expected) => check(stored, self.offset, *expected),
            Checksums::Blocks(all) => {
                let blocks = stored.chunks(BLOCK as usize).zip(&all[first..]);
                let offsets = (self.offset + first as u64 * BLOCK..).step_by(BLOCK as usize);
                blocks.zip(offsets).try_for_each(|((block, &sum), at)| check(block, at, sum))
            }
        }
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.volume.give(self.offset, self.room);
    }
}

impl Store {
    /// Returns a store of chunks of up to `usual` bytes, and of longer rows.
    pub(super) fn new(options: PoolOptions, budget: &Budget, usual: usize) -> Result<Self> {
        let mut directories = options.directories;
        for directory in &directories {
            if !directory.is_dir() {
                return Err(Error::TempSpace {
                    dir: directory.display().to_string(),
                    message: "not a directory".into(),
                });
            }
        }
        if directories.is_empty() {
            // The default directory must exist only if something is spilled.
            directories.push(std::env::temp_dir());
        }
        let file = |dir, direct| Box::new(TempFile::new(dir, direct)) as Box<dyn Medium>;
        let disks = (0..FILES).flat_map(|_| directories.iter().cloned().map(Some));
        let disks = disks.map(|dir| file(dir, options.direct_io)).collect();
        let memory = (0..FILES).map(|_| file(None, false)).collect();
        Ok(Self::of_media(disks, memory, options.max_temp_bytes, budget, usual))
    }

    fn of_media(
        disks: Vec<Box<dyn Medium>>,
        memory: Vec<Box<dyn Medium>>,
        max_bytes: u64,
        budget: &Budget,
        usual: usize,
    ) -> Self {
        let first = disks.len();
        let volumes = |from: usize, media: Vec<Box<dyn Medium>>| {
            (from..)
                .zip(media)
                .map(|(index, medium)| Arc::new(Volume::new(index, medium)))
                .collect()
        };
        Self {
            disks: volumes(0, disks),
            memory: volumes(first, memory),
            next: AtomicUsize::new(0),
            size: AtomicU64::new(0),
            max_bytes,
            budget: budget.clone(),
            usual,
            scratch: Mutex::default(),
        }
    }

    /// Returns the total bytes of all volumes.
    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Writes `bytes` to the target `to`. Chunks are compressed if this makes them smaller. With
    /// `in_parts`, an uncompressed extent can be read in parts.
    pub(super) fn write(
        &self,
        bytes: &[u8],
        (to, codec): (SpillTo, Codec),
        in_parts: bool,
    ) -> Result<Extent> {
        // Rows longer than a chunk exceed the compression workspace.
        if codec == Codec::None || bytes.len() > self.usual {
            return self.write_packed(to, (Codec::None, in_parts), bytes, bytes.len());
        }
        let mut scratch = self.scratch_for(codec)?;
        let (codec, stored) = compress(codec, bytes, &mut scratch);
        let in_parts = in_parts && codec == Codec::None;
        let extent = self.write_packed(to, (codec, in_parts), stored, bytes.len());
        lock(&self.scratch).push(scratch);
        extent
    }

    /// Frees the compression workspaces.
    pub(super) fn release_scratch(&self) {
        lock(&self.scratch).clear();
    }

    /// Returns a workspace to compress into or decompress from.
    fn scratch_for(&self, codec: Codec) -> Result<Buffer> {
        let needed = scratch_bytes(codec, self.usual);
        let shelved = lock(&self.scratch).pop().filter(|scratch| scratch.len() >= needed);
        shelved.map_or_else(|| Buffer::mapped(needed, self.budget.lease(needed)), Ok)
    }

    /// Writes `stored`, the possibly compressed form of `len` bytes.
    fn write_packed(
        &self,
        to: SpillTo,
        (codec, in_parts): (Codec, bool),
        stored: &[u8],
        len: usize,
    ) -> Result<Extent> {
        let volumes = match to {
            SpillTo::Disk => &self.disks,
            SpillTo::Memory => &self.memory,
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % volumes.len();
        let (before, from) = volumes.split_at(turn);
        let volumes = || from.iter().chain(before);
        let room = (stored.len() as u64).next_multiple_of(BLOCK);
        let mut full = None;
        // Free extents of any volume come before growth of a volume.
        let free = volumes().filter_map(|volume| Some((volume, lock(&volume.space).take(room)?)));
        let more = volumes().map(|volume| self.grow(volume, room).map(|offset| (volume, offset)));
        for place in free.map(Ok).chain(more) {
            let written = place.and_then(|(volume, offset)| {
                // Constructed before the write: if the write fails, dropping the extent frees its
                // space.
                let extent = Extent {
                    volume: Arc::clone(volume),
                    offset,
                    room,
                    stored_len: stored.len(),
                    len,
                    codec,
                    checksums: checksums(stored, volume.index, offset, in_parts),
                };
                volume.write(stored, offset).map(|()| extent)
            });
            match written {
                Err(error @ Error::TempSpace { .. }) => full = full.or(Some(error)),
                written => return written,
            }
        }
        Err(full.unwrap_or_else(|| unreachable!("a store has volumes")))
    }

    /// Reads `extent`, which must fill `out`.
    pub(super) fn read(&self, extent: &Extent, out: &mut [u8]) -> Result<()> {
        if extent.codec == Codec::None {
            return self.read_packed(extent, out);
        }
        let mut scratch = self.scratch_for(extent.codec)?;
        let stored = &mut scratch[..extent.stored_len];
        let read =
            self.read_packed(extent, stored).and_then(|()| decompress(extent.codec, stored, out));
        lock(&self.scratch).push(scratch);
        read
    }

    /// Reads the stored form of `extent` and verifies its checksums.
    fn read_packed(&self, extent: &Extent, stored: &mut [u8]) -> Result<()> {
        extent.volume.read(stored, extent.offset)?;
        extent.check(stored, 0)
    }

    /// Extends `volume` by `room` bytes and returns their offset.
    fn grow(&self, volume: &Volume, room: u64) -> Result<u64> {
        let fits = |size: u64| size.checked_add(room).filter(|&size| size <= self.max_bytes);
        match self.size.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(lock(&volume.space).grow(room)),
            Err(_) => Err(Error::TempSpace {
                dir: volume.medium.name(),
                message: format!("the limit of {} bytes is reached", self.max_bytes),
            }),
        }
    }
}

/// Returns the checksum of bytes at their position, or one checksum per block.
fn checksums(bytes: &[u8], volume: usize, offset: u64, blocks: bool) -> Checksums {
    if !blocks {
        return Checksums::Whole(checksum(bytes, volume, offset));
    }
    let offsets = (offset..).step_by(BLOCK as usize);
    let blocks = bytes.chunks(BLOCK as usize).zip(offsets);
    Checksums::Blocks(blocks.map(|(block, offset)| checksum(block, volume, offset)).collect())
}

/// Returns the checksum of bytes at their position.
fn checksum(bytes: &[u8], volume: usize, offset: u64) -> u32 {
    let place = offset ^ (volume as u64) << 56;
    crc32c::crc32c_append(crc32c::crc32c(&place.to_le_bytes()), bytes)
}

#[cfg(test)]
mod tests;
