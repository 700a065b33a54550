//! Reads and writes past the page cache (`O_DIRECT`).
//!
//! ```text
//! bytes    |  whole blocks, written in place    | tail |
//! file     | block | block | block | block | block | tail, zeros |   copied to a separate block
//! ```
//! The system transfers blocks of [`BLOCK`] bytes; addresses and offsets must be multiples of it.
//! Extents start at such offsets and extend to the end of their last block.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{preadv, pwritev, retry_on_intr};

/// Largest block size that devices require.
const BLOCK: usize = 4096;

/// A block, aligned to its size.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

/// Reopens `file` with direct I/O; `None` if the file system does not support it.
pub(super) fn reopen(file: &File) -> Option<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).ok().map(File::from)
}

/// Returns true if `bytes` and `offset` are aligned for direct I/O.
pub(super) fn is_aligned(bytes: &[u8], offset: u64) -> bool {
    bytes.as_ptr().addr().is_multiple_of(BLOCK) && offset.is_multiple_of(BLOCK as u64)
}

/// Writes all of `bytes`, padded with zeros to whole blocks. `bytes` and `offset` are
/// [aligned](is_aligned).
pub(super) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let (whole, tail) = bytes.split_at(bytes.len() & !(BLOCK - 1));
    if tail.is_empty() {
        return file.write_all_at(whole, offset);
    }
    let mut last = Block([0; BLOCK]);
    last.0[..tail.len()].copy_from_slice(tail);
    let parts = [IoSlice::new(whole), IoSlice::new(&last.0)];
    let written = retry_on_intr(|| pwritev(file, &parts, offset))?;
    if written == whole.len() + BLOCK {
        return Ok(());
    }
    // After a short write, writing the rest returns the reason.
    let done = (written & !(BLOCK - 1)).min(whole.len());
    file.write_all_at(&whole[done..], offset + done as u64)?;
    file.write_all_at(&last.0, offset + whole.len() as u64)
}

/// Fills `out` from `offset` on. `out` and `offset` are [aligned](is_aligned).
pub(super) fn read(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    let len = out.len();
    let (whole, tail) = out.split_at_mut(len & !(BLOCK - 1));
    if tail.is_empty() {
        return file.read_exact_at(whole, offset);
    }
    let mut last = Block([0; BLOCK]);
    let mut parts = [IoSliceMut::new(whole), IoSliceMut::new(&mut last.0)];
    let read = retry_on_intr(|| preadv(file, &mut parts, offset))?;
    if read < len {
        let done = (read & !(BLOCK - 1)).min(whole.len());
        file.read_exact_at(&mut whole[done..], offset + done as u64)?;
        file.read_exact_at(&mut last.0, offset + whole.len() as u64)?;
    }
    tail.copy_from_slice(&last.0[..tail.len()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_kernel::region::Region;

    #[test]
    fn bytes_of_any_length_come_back() {
        let file = tempfile::tempfile().unwrap();
        // Without direct I/O, there is nothing to test.
        let Some(direct) = reopen(&file) else { return };
        for len in [0, 1, 4095, 4096, 4097, 3 * 4096, 100_001] {
            let mut bytes = Region::new(len.max(1)).unwrap();
            bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 251) as u8);
            assert!(is_aligned(&bytes, 8192) && !is_aligned(&bytes, 1));
            write(&direct, &bytes[..len], 8192).unwrap();
            let mut back = Region::new(len.max(1)).unwrap();
            read(&direct, &mut back[..len], 8192).unwrap();
            assert_eq!(&back[..len], &bytes[..len]);
            let mut cached = vec![0; len];
            file.read_exact_at(&mut cached, 8192).unwrap();
            assert_eq!(cached, &bytes[..len]);
        }
        assert!(read(&direct, &mut Region::new(8192).unwrap(), 1 << 20).is_err(), "past the end");
    }
}
