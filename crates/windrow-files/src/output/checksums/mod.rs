//! Checksums of Parquet pages. The `parquet` crate (59.3) verifies checksums but does not write
//! them.
//!
//! ```text
//!  page --> put(header), put(body) --> crc32 of the body, as field 4 of the header, which grows by 2 to 6 bytes
//!  close --> sizes and places of the chunk, told anew from the pages that are there
//!  append --> without a dictionary   as the crate does, a page a write
//!             with one               as a column of another file, 8 KiB a write
//! ```
//!
//! The crate makes the dictionary page last but writes it first, and shifts the data pages by the
//! original size of the dictionary page. If the dictionary page grew, all data pages would be
//! misplaced, and the crate has no interface for a correction. Chunks with a dictionary therefore
//! bypass the crate's `ArrowColumnChunk` and are added by `append_column`, which copies. The writer
//! below the file writer should gather these small writes.
//!
//! Invariant: a file differs from a file without checksums only in field 4 of the headers, and in
//! sizes and offsets that include its bytes. No body is copied except by the crate. Unknown input
//! is an error, and never leads to a wrong checksum: encrypted pages above all, whose headers are
//! unreadable.

mod header;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::vec;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory,
};
use parquet::column::page_store::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedRowGroupWriter;

use header::Header;

/// Encodes the values of a leaf, as [`ArrowColumnWriter`] does.
pub(crate) struct ChunkWriter {
    writer: ArrowColumnWriter,
    pages: Arc<Mutex<Pages>>,
}

impl ChunkWriter {
    /// Makes writers for the leaves of a row group, in order. Their pages stay in memory, and have
    /// checksums if `checked` is set.
    pub(crate) fn of_row_group(
        factory: ArrowRowGroupWriterFactory,
        row_group: usize,
        checked: bool,
    ) -> Result<Vec<Self>> {
        let stores = Arc::new(Stores { checked, all: Mutex::default() });
        let factory = factory.with_page_store_factory(Arc::clone(&stores) as _);
        let writers = factory.create_column_writers(row_group)?;
        let pages = std::mem::take(&mut *lock(&stores.all)?);
        if writers.len() != pages.len() {
            return Err(unexpected("writers that share pages"));
        }
        let pairs = writers.into_iter().zip(pages);
        Ok(pairs.map(|(writer, pages)| Self { writer, pages }).collect())
    }

    /// Encodes values.
    pub(crate) fn write(&mut self, leaf: &ArrowLeafColumn) -> Result<()> {
        self.writer.write(leaf)
    }

    /// Completes the chunk.
    pub(crate) fn close(self) -> Result<Chunk> {
        let mut chunk = self.writer.close()?;
        let mut pages = lock(&self.pages)?;
        let close = chunk.close_mut();
        pages.correct(close)?;
        Ok(match pages.take_dictionary_first() {
            None => Chunk::Plain(Box::new(chunk)),
            Some(blobs) => Chunk::Dictionary(Box::new(close.clone()), blobs),
        })
    }
}

/// A finished column chunk. If checksums are on, each of its pages has one.
pub(crate) enum Chunk {
    Plain(Box<ArrowColumnChunk>),
    /// The blobs are in the order of the file.
    Dictionary(Box<ColumnCloseResult>, Vec<Bytes>),
}

impl Chunk {
    /// Returns the bytes that the chunk adds to a file: its pages, and an estimate of its entries
    /// in the footer and the page index.
    pub(crate) fn bytes(&self) -> usize {
        /// Bytes of metadata for a chunk, and for a page with a minimum and a maximum.
        const CHUNK: usize = 512;
        const PAGE: usize = 192;
        let close = match self {
            Self::Plain(chunk) => chunk.close(),
            Self::Dictionary(close, _) => close,
        };
        let pages = close.offset_index.as_ref().map_or(0, |index| index.page_locations.len());
        usize::try_from(close.bytes_written).unwrap_or(usize::MAX) + CHUNK + pages * PAGE
    }

    /// Writes the chunk as the next column of the row group. Each page is freed after it is
    /// written.
    pub(crate) fn append_to_row_group<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        match self {
            Self::Plain(chunk) => chunk.append_to_row_group(group),
            Self::Dictionary(close, blobs) => {
                let length = close.bytes_written;
                group.append_column(&Once { length, blobs: Mutex::new(blobs) }, *close)
            }
        }
    }
}

/// The pages of a chunk.
#[derive(Debug, Default)]
struct Pages {
    checked: bool,
    /// Header, body, next header, and so on, in the order of arrival. A taken blob is empty.
    blobs: Vec<Bytes>,
    /// Bytes of all checksums.
    added: usize,
    /// Index of the dictionary page's header.
    dictionary: Option<usize>,
}

/// Bytes below which a blob is copied into a buffer of its own length. The buffer of a body has its
/// uncompressed length, and the buffer of a header a kilobyte.
const SHORT: usize = 512;

fn short(blob: Bytes) -> Bytes {
    if blob.len() < SHORT { Bytes::copy_from_slice(&blob) } else { blob }
}

impl Pages {
    fn put(&mut self, blob: Bytes) -> Result<PageKey> {
        let place = self.blobs.len();
        let key = PageKey::new(place as u64);
        if !self.checked || place.is_multiple_of(2) {
            self.blobs.push(if self.checked { blob } else { short(blob) });
            return Ok(key);
        }
        let header = self.blobs.last_mut().ok_or_else(|| unexpected("a body without a header"))?;
        let found = Header::parse(header).ok_or_else(|| unexpected("a header of another form"))?;
        let crc = crc32fast::hash(&blob).cast_signed();
        if usize::try_from(found.body_bytes) != Ok(blob.len()) {
            return Err(unexpected("a body of another length than its header says"));
        }
        if found.kind == Header::DICTIONARY && self.dictionary.replace(place - 1).is_some() {
            return Err(unexpected("a second dictionary"));
        }
        match found.crc {
            // A later version of the crate writes checksums itself.
            Some(there) if there == crc => *header = Bytes::copy_from_slice(header),
            Some(_) => return Err(unexpected("another checksum")),
            None => {
                let longer = found.with_crc(crc);
                self.added += longer.len() - header.len();
                *header = longer.into();
            }
        }
        self.blobs.push(short(blob));
        Ok(key)
    }

    fn take(&mut self, key: PageKey) -> Result<Bytes> {
        let blob = usize::try_from(key.get()).ok().and_then(|place| self.blobs.get_mut(place));
        blob.map(std::mem::take).ok_or_else(|| unexpected("a page that was not kept"))
    }

    /// Updates the chunk's metadata to the actual pages, with the dictionary page first.
    fn correct(&self, close: &mut ColumnCloseResult) -> Result<()> {
        if !self.checked {
            return Ok(());
        }
        let pages = self.blobs.chunks(2).map(|page| page.iter().map(Bytes::len).sum::<usize>());
        let sizes = pages.map(i64::try_from).collect::<std::result::Result<Vec<_>, _>>()?;
        let dictionary = self.dictionary.map(|place| place / 2);
        let first = dictionary.and_then(|page| sizes.get(page)).copied().unwrap_or(0);

        let added = i64::try_from(self.added)?;
        let compressed = close.metadata.compressed_size() + added;
        if !self.blobs.len().is_multiple_of(2) || sizes.iter().sum::<i64>() != compressed {
            return Err(unexpected("pages that are not those of the chunk"));
        }
        close.bytes_written += self.added as u64;
        let metadata = close.metadata.clone().into_builder();
        close.metadata = metadata
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(close.metadata.uncompressed_size() + added)
            .set_dictionary_page_offset(dictionary.map(|_| 0))
            .set_data_page_offset(first)
            .build()?;

        let Some(index) = &mut close.offset_index else { return Ok(()) };
        let sizes = sizes.iter().enumerate().filter(|(page, _)| Some(*page) != dictionary);
        let mut sizes = sizes.map(|(_, size)| *size);
        let mut offset = first;
        for location in &mut index.page_locations {
            let size = sizes.next().ok_or_else(|| unexpected("an index of more pages"))?;
            location.offset = offset;
            location.compressed_page_size = i32::try_from(size)?;
            offset += size;
        }
        sizes.next().map_or(Ok(()), |_| Err(unexpected("an index of fewer pages")))
    }

    /// Takes all blobs in the order of the file, if they include a dictionary.
    fn take_dictionary_first(&mut self) -> Option<Vec<Bytes>> {
        self.blobs.get_mut(..self.dictionary? + 2)?.rotate_right(2);
        Some(std::mem::take(&mut self.blobs))
    }
}

/// Storage for the pages of one of the crate's column writers.
struct Store(Arc<Mutex<Pages>>);

impl PageStore for Store {
    fn put(&mut self, value: Bytes) -> Result<PageKey> {
        lock(&self.0)?.put(value)
    }

    fn take(&mut self, key: PageKey) -> Result<Bytes> {
        lock(&self.0)?.take(key)
    }

    fn memory_size(&self) -> usize {
        lock(&self.0).map_or(0, |pages| pages.blobs.iter().map(Bytes::len).sum())
    }
}

/// The pages of the columns of one row group, in order.
#[derive(Debug)]
struct Stores {
    checked: bool,
    all: Mutex<Vec<Arc<Mutex<Pages>>>>,
}

impl PageStoreFactory for Stores {
    fn create(&self, of: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let mut all = lock(&self.all)?;
        if of.column_index() != all.len() {
            return Err(unexpected("columns in another order"));
        }
        let pages = Arc::new(Mutex::new(Pages { checked: self.checked, ..Pages::default() }));
        all.push(Arc::clone(&pages));
        Ok(Box::new(Store(pages)))
    }
}

/// Blobs to read once, from first to last.
struct Once {
    length: u64,
    blobs: Mutex<Vec<Bytes>>,
}

impl Length for Once {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Once {
    type T = Blobs;

    fn get_read(&self, start: u64) -> Result<Blobs> {
        if start != 0 {
            return Err(unexpected("a read from the middle of a chunk"));
        }
        let blobs = std::mem::take(&mut *lock(&self.blobs)?);
        Ok(Blobs { current: Bytes::new(), rest: blobs.into_iter() })
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes> {
        Err(unexpected("a read of a part of a chunk"))
    }
}

/// A reader that frees each blob after reading it.
struct Blobs {
    current: Bytes,
    rest: vec::IntoIter<Bytes>,
}

impl Read for Blobs {
    /// Fills the buffer across blobs: the writer underneath passes a full buffer on without a copy.
    fn read(&mut self, mut buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len();
        while !buffer.is_empty() {
            if self.current.is_empty() {
                let Some(next) = self.rest.next() else { break };
                self.current = next;
            }
            let taken = buffer.write(&self.current)?;
            self.current.advance(taken);
        }
        Ok(length - buffer.len())
    }
}

fn lock<T>(of: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    of.lock().map_err(|_| unexpected("a thread that panicked"))
}

fn unexpected(what: &str) -> ParquetError {
    ParquetError::General(format!("internal error: page checksums met {what}"))
}
