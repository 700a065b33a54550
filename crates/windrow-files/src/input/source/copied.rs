//! The temporary copy of an input that passes once, read by position.
//!
//! ```text
//! stream --> | 128 KiB | 128 KiB | ... | rest |    a file without a name
//!             CRC-32    CRC-32          CRC-32     in memory
//! ```
//! Invariant: a read returns the bytes that were written, or an error. Parquet and Arrow need not
//! have checksums of their own.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::FileExt;

/// Bytes with one checksum. Smaller blocks take more memory (32 bytes for each MiB of the copy), larger
/// ones make the read of a page header longer.
const BLOCK: usize = 128 << 10;

/// Writes a copy.
pub(super) struct Copying {
    file: File,
    sums: Vec<u32>,
    len: u64,
}

impl Copying {
    pub(super) fn new(file: File) -> Self {
        Self { file, sums: Vec::new(), len: 0 }
    }

    pub(super) fn finish(self) -> Copied {
        let Self { file, sums, len } = self;
        Copied { file, sums, len }
    }
}

impl Write for Copying {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let filled = (self.len % BLOCK as u64) as usize;
        let bytes = &bytes[..bytes.len().min(BLOCK - filled)];
        let written = self.file.write(bytes)?;
        if filled == 0 && written > 0 {
            self.sums.push(0);
        }
        if let Some(sum) = self.sums.last_mut() {
            let mut hasher = crc32fast::Hasher::new_with_initial(*sum);
            hasher.update(&bytes[..written]);
            *sum = hasher.finalize();
        }
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

/// A copy, whole.
#[derive(Debug)]
pub(super) struct Copied {
    file: File,
    sums: Vec<u32>,
    pub(super) len: u64,
}

impl Copied {
    /// Reads bytes from `offset` on, at most to the end of their block; 0 at the end of the copy.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        let number = offset / BLOCK as u64;
        let start = number * BLOCK as u64;
        let length = self.len.saturating_sub(start).min(BLOCK as u64) as usize;
        let from = (offset - start) as usize;
        if from >= length {
            return Ok(0);
        }
        if from == 0 && bytes.len() >= length {
            self.read_block(number, &mut bytes[..length])?;
            return Ok(length);
        }
        let mut block = vec![0; length];
        self.read_block(number, &mut block)?;
        let read = bytes.len().min(length - from);
        bytes[..read].copy_from_slice(&block[from..from + read]);
        Ok(read)
    }

    fn read_block(&self, number: u64, block: &mut [u8]) -> Result<()> {
        let start = number * BLOCK as u64;
        self.file.read_exact_at(block, start)?;
        if self.sums.get(number as usize) == Some(&crc32fast::hash(block)) {
            return Ok(());
        }
        let what = format!(
            "its temporary copy is damaged in the {} bytes from {start} on; replace the disk, or name \
             another directory for temporary files",
            block.len()
        );
        Err(Error::new(ErrorKind::InvalidData, what))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom};

    use super::*;

    fn copy(bytes: &[u8]) -> Copied {
        let mut copying = Copying::new(tempfile::tempfile().unwrap());
        bytes.chunks(77_777).for_each(|chunk| copying.write_all(chunk).unwrap());
        copying.finish()
    }

    #[test]
    fn bytes_are_those_written_or_an_error() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5] {
            let bytes: Vec<u8> = (0..len).map(|at| ((at * 7919) >> 5) as u8).collect();
            let mut copied = copy(&bytes);
            assert_eq!(copied.len, len as u64);
            let read = |copied: &Copied, from: usize, until: usize| {
                let mut read = vec![0; until - from];
                let mut at = 0;
                while at < read.len() {
                    at += copied.read_at(&mut read[at..], (from + at) as u64)?;
                }
                Ok::<_, Error>(read)
            };
            for from in [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3].into_iter().filter(|&at| at <= len)
            {
                for until in [from, (from + 9).min(len), len] {
                    assert!(read(&copied, from, until).unwrap() == bytes[from..until]);
                }
            }
            assert_eq!(copied.read_at(&mut [0; 9], len as u64).unwrap(), 0);
            if len > BLOCK {
                copied.file.seek(SeekFrom::Start(BLOCK as u64)).unwrap();
                let mut byte = [0];
                copied.file.read_exact(&mut byte).unwrap();
                copied.file.write_all_at(&[byte[0] ^ 4], BLOCK as u64).unwrap();
                assert!(read(&copied, 0, BLOCK).is_ok());
                let error = read(&copied, 0, len).unwrap_err().to_string();
                assert!(error.contains("from 131072 on"), "{error}");
            }
        }
    }
}
