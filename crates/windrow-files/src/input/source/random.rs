//! Reads by position, in a file or in an object of a store.
//!
//! A file serves each read directly. An object is fetched in ranges, announced beforehand by
//! [`hold`](RandomFile::hold), since a header is not worth a request.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::store::{Object, Window};

use super::copied::Copied;

/// Bytes to read at a time to decode a page header. The `parquet` crate opens such a reader for
/// every page, decodes some tens of bytes, drops the reader, and then requests the page by its
/// length: a larger buffer would read bytes twice.
const HEADER_BUFFER: usize = 4 << 10;

/// A file or object to read by position, from any thread.
#[derive(Clone)]
pub(crate) struct RandomFile {
    at: At,
    /// The length at the time of opening.
    pub(crate) len: u64,
}

#[derive(Clone)]
enum At {
    File(Arc<File>),
    Copy(Arc<Copied>),
    Object(Arc<Window>),
}

impl At {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(bytes, offset),
            Self::Copy(copied) => copied.read_at(bytes, offset),
            Self::Object(window) => window.read_at(bytes, offset),
        }
    }
}

impl RandomFile {
    pub(super) fn new(mut file: File) -> std::io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        Ok(Self { at: At::File(Arc::new(file)), len })
    }

    /// The temporary copy of a stream.
    pub(super) fn of_copy(copied: Copied) -> Self {
        Self { len: copied.len, at: At::Copy(Arc::new(copied)) }
    }

    /// An object without loaded bytes yet.
    pub(super) fn of_object(object: &Arc<Object>) -> Self {
        Self { at: At::Object(Arc::new(Window::of(object))), len: object.len() }
    }

    /// An object to read from start to end.
    pub(super) fn of_stream(object: &Arc<Object>) -> Self {
        Self { at: At::Object(Arc::new(Window::stream(object))), len: object.len() }
    }

    /// Returns true if each read without an announcement is a request.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self.at, At::Object(_))
    }

    /// Announces reads in these ranges, side by side, of `total` bytes together.
    pub(crate) fn hold(&self, ranges: &[Range<u64>], total: u64) {
        if let At::Object(window) = &self.at {
            window.hold(ranges, total);
        }
    }

    /// Reads `length` bytes at `start`. The length is checked before memory is allocated.
    pub(crate) fn read_exact(&self, start: u64, length: usize) -> std::io::Result<Vec<u8>> {
        self.check(start, length)?;
        if let At::Object(window) = &self.at {
            return window.bytes(start, length).map(Vec::from);
        }
        let mut bytes = vec![0; length];
        self.reader_at(start).read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn check(&self, start: u64, length: usize) -> std::io::Result<()> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!(
                    "{length} bytes at {start} are past the end, at {}: the file is cut short",
                    self.len
                ),
            ));
        }
        Ok(())
    }

    /// Returns a reader of the bytes from `offset` on.
    pub(crate) fn reader_at(&self, offset: u64) -> PositionedReader {
        PositionedReader { at: self.at.clone(), offset }
    }
}

/// A reader with its own offset in a shared file or object.
pub(crate) struct PositionedReader {
    at: At,
    offset: u64,
}

impl Read for PositionedReader {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.at.read_at(bytes, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Length for RandomFile {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for RandomFile {
    type T = BufReader<PositionedReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::with_capacity(HEADER_BUFFER, self.reader_at(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = match &self.at {
            // A slice of the loaded bytes.
            At::Object(window) => {
                self.check(start, length).and_then(|()| window.bytes(start, length))
            }
            At::File(_) | At::Copy(_) => self.read_exact(start, length).map(Bytes::from),
        };
        bytes.map_err(|cause| ParquetError::EOF(cause.to_string()))
    }
}
