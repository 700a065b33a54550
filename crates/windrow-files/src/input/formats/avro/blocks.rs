//! Blocks of an Avro file: location, decompression, validation, and the plain copy for the decoder.
//!
//! Invariant: the decoder reads only whole, decompressed and validated blocks. A block with more
//! decompressed bytes than planned is decompressed after its job has found memory for it.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_avro::compression::CompressionCodec as Codec;
use arrow_avro::reader::read_header_info;
use arrow_schema::ArrowError;

use crate::error::{Error, Result};
use crate::input::source::random::RandomFile;
use crate::thrift::put_integer;
use crate::watch::Watch;

use super::shape::{Shape, long};

pub(super) const MAGIC: &[u8; 4] = b"Obj\x01";

/// Bytes of the marker after the header and after each block.
const MARKER: usize = 16;

/// Maximum length of the two numbers in front of a block.
const NUMBERS: usize = 20;

/// Maximum memory of a decompressor: the dictionary of xz, the blocks of bzip2. xz data with higher
/// needs is refused.
const XZ_BYTES: usize = 16 << 20;
const BZIP2_BYTES: usize = 4 << 20;
const OTHER_BYTES: usize = 1 << 20;

/// A decompressed block.
pub(super) enum Plain {
    Whole(Vec<u8>),
    /// The block exceeds the limit. Holds its decompressed length, as far as known.
    Longer(u64),
}

/// Returns the memory of the decompressor, without its input and output.
pub(super) fn reader_bytes(codec: Option<Codec>) -> usize {
    match codec {
        None => 0,
        Some(Codec::Xz) => XZ_BYTES,
        Some(Codec::Bzip2) => BZIP2_BYTES,
        Some(Codec::Deflate | Codec::Snappy | Codec::ZStandard) => OTHER_BYTES,
    }
}

/// Decompresses a block to at most `limit` bytes.
pub(super) fn plain(codec: Option<Codec>, data: Vec<u8>, limit: usize) -> Result<Plain, String> {
    let Some(codec) = codec else {
        let is_longer = data.len() > limit;
        return Ok(if is_longer { Plain::Longer(data.len() as u64) } else { Plain::Whole(data) });
    };
    let bytes = data.as_slice();
    let damaged = |cause: io::Error| format!("the {codec:?} block is damaged: {cause}");
    let reader: Box<dyn Read + '_> = match codec {
        Codec::Snappy => return snappy(bytes, limit),
        Codec::Deflate => Box::new(flate2::read::DeflateDecoder::new(bytes)),
        Codec::ZStandard => Box::new(zstd::stream::read::Decoder::new(bytes).map_err(damaged)?),
        Codec::Bzip2 => Box::new(bzip2::read::BzDecoder::new(bytes)),
        Codec::Xz => {
            let kib = u32::try_from(XZ_BYTES >> 10).unwrap_or(u32::MAX);
            Box::new(lzma_rust2::XzReader::new_mem_limit(bytes, false, kib))
        }
    };
    let mut plain = Vec::new();
    let most = (limit as u64).saturating_add(1);
    let mut reader = reader.take(most);
    reader.read_to_end(&mut plain).map_err(damaged)?;
    if plain.len() <= limit {
        return Ok(Plain::Whole(plain));
    }
    let read = plain.len() as u64;
    drop(plain);
    reader.set_limit(u64::MAX);
    let rest = io::copy(&mut reader, &mut io::sink()).map_err(damaged)?;
    Ok(Plain::Longer(read + rest))
}

/// Decompresses Snappy data, and verifies the checksum after it.
fn snappy(data: &[u8], limit: usize) -> Result<Plain, String> {
    let damaged = || "the snappy block is damaged".to_owned();
    let (packed, sum) = data.split_last_chunk::<4>().ok_or_else(damaged)?;
    let length = snap::raw::decompress_len(packed).map_err(|_| damaged())?;
    if length > limit {
        return Ok(Plain::Longer(length as u64));
    }
    // Snappy's longest copy makes 64 bytes of three. This check keeps a damaged length from
    // allocating memory.
    if length / 64 > packed.len() {
        return Err(damaged());
    }
    let plain = snap::raw::Decoder::new().decompress_vec(packed).map_err(|_| damaged())?;
    match crc32fast::hash(&plain) == u32::from_be_bytes(*sum) {
        true => Ok(Plain::Whole(plain)),
        false => Err("the snappy block is damaged: its checksum is another".to_owned()),
    }
}

/// The header of a file.
pub(super) struct Header {
    schema: String,
    pub(super) codec: Option<Codec>,
    pub(super) shape: Shape,
    pub(super) marker: [u8; MARKER],
    pub(super) length: u64,
}

impl Header {
    /// Parses the header at the start of `head`.
    pub(super) fn parse(head: &[u8]) -> Result<Self, String> {
        if !head.starts_with(MAGIC) {
            return Err("not an Avro object file; name its format with `input_format`".to_owned());
        }
        let info = read_header_info(head)
            .map_err(|fault| format!("the Avro header is damaged, or too long: {fault}"))?;
        let schema = info.writer_schema().map_err(|fault| fault.to_string())?.json_string;
        let codec = info.compression().map_err(|fault| {
            format!("{fault}; known are null, deflate, snappy, zstandard, bzip2, xz")
        })?;
        let shape = Shape::parse(&schema)?;
        Ok(Self { schema, codec, shape, marker: info.sync(), length: info.header_len() })
    }

    /// Returns the header of a file with the same rows in plain blocks.
    pub(super) fn plain(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_integer(1, &mut bytes);
        for text in ["avro.schema", &self.schema] {
            put_integer(text.len() as i64, &mut bytes);
            bytes.extend_from_slice(text.as_bytes());
        }
        put_integer(0, &mut bytes);
        bytes.extend_from_slice(&self.marker);
        bytes
    }
}

/// A block of a file.
pub(super) struct Block {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    start: u64,
    /// Position after the block's marker.
    pub(super) end: u64,
}

impl Block {
    /// Reads the numbers of the block at `at`, and checks its marker.
    pub(super) fn at(file: &RandomFile, at: u64, marker: &[u8; MARKER]) -> Result<Self, String> {
        let length = usize::try_from(file.len - at).unwrap_or(usize::MAX).min(NUMBERS);
        let head = file.read_exact(at, length).map_err(|cause| cause.to_string())?;
        let cut = || cut_short(file.len);
        let block = Self::numbers(&head, at).ok_or_else(|| damaged_at(at))?;
        let end = block.end.checked_sub(MARKER as u64).ok_or_else(cut)?;
        if block.end > file.len {
            return Err(cut());
        }
        let found = file.read_exact(end, MARKER).map_err(|_| cut())?;
        if found == marker { Ok(block) } else { Err(damaged_at(at)) }
    }

    /// Parses the numbers in front of a block at `at`.
    fn numbers(head: &[u8], at: u64) -> Option<Self> {
        let mut rest = head;
        let rows = u64::try_from(long(&mut rest)?).ok()?;
        let bytes = u64::try_from(long(&mut rest)?).ok()?;
        let start = at + (head.len() - rest.len()) as u64;
        let end = start.checked_add(bytes)?.checked_add(MARKER as u64)?;
        Some(Self { rows, bytes, start, end })
    }

    /// Returns the first block of `bytes` and its data, or `None` if the block is incomplete.
    pub(super) fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let block = Self::numbers(bytes, 0)?;
        let start = usize::try_from(block.start).ok()?;
        let data = bytes.get(start..start.checked_add(usize::try_from(block.bytes).ok()?)?)?;
        Some((block, data))
    }

    /// Reads the block's data, still compressed.
    pub(super) fn read(&self, file: &RandomFile) -> Result<Vec<u8>, String> {
        let length = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        file.read_exact(self.start, length).map_err(|cause| cause.to_string())
    }
}

fn cut_short(length: u64) -> String {
    format!(
        "the Avro file is cut short, at {length} bytes; copy it again, or let its writer finish"
    )
}

fn damaged_at(at: u64) -> String {
    format!("the Avro file is damaged: there is no block at {at}")
}

/// Error of a source, and number of rows in its blocks.
#[derive(Default)]
struct Shared {
    fault: Mutex<Option<Error>>,
    rows: AtomicU64,
}

/// A handle to the error and the row count of a [`BlockReader`], for the code that drives the decoder.
pub(super) struct Told {
    name: Arc<str>,
    shared: Arc<Shared>,
}

impl Told {
    /// Returns the source's own error, or else wraps the decoder's error `fault`.
    pub(super) fn error(&self, fault: &ArrowError) -> Error {
        let mut own = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
        own.take().unwrap_or_else(|| {
            Error::data(format!("{}: {fault}", self.name)).in_file(Arc::clone(&self.name))
        })
    }

    /// Fails unless the decoder has decoded all rows of the blocks.
    pub(super) fn check(&self, read: u64) -> Result<()> {
        let rows = self.shared.rows.load(Ordering::Relaxed);
        if rows == read {
            return Ok(());
        }
        let name = &self.name;
        let what = format!("{name}: its blocks have {rows} rows, of which {read} could be decoded");
        Err(Error::data(what).in_file(Arc::clone(name)))
    }
}

/// A stream of plain blocks for the decoder, made from a possibly compressed file.
pub(super) struct BlockReader<R> {
    name: Arc<str>,
    input: R,
    header: Arc<Header>,
    /// Position of the next block in the file.
    at: u64,
    /// Decompressed bytes of a block to accept without an admission.
    planned: usize,
    watch: Watch,
    /// Bytes for the decoder; the first `taken` are consumed.
    bytes: Vec<u8>,
    taken: usize,
    shared: Arc<Shared>,
}

impl<R: BufRead> BlockReader<R> {
    /// Reads the blocks of `input`. `input` starts at byte `at` of the file `name`.
    pub(super) fn new(
        name: &Arc<str>,
        input: R,
        header: Arc<Header>,
        at: u64,
        planned: usize,
        watch: &Watch,
    ) -> Self {
        let bytes = header.plain();
        let (name, watch, shared) = (Arc::clone(name), watch.clone(), Arc::default());
        Self { name, input, header, at, planned, watch, bytes, taken: 0, shared }
    }

    pub(super) fn told(&self) -> Told {
        Told { name: Arc::clone(&self.name), shared: Arc::clone(&self.shared) }
    }

    /// Loads the next block into `bytes`. Returns false at the end.
    fn load(&mut self) -> Result<bool> {
        self.watch.pause()?;
        (self.bytes, self.taken) = (Vec::new(), 0);
        let next = self.input.fill_buf().map(<[u8]>::is_empty);
        if next.map_err(|cause| self.unreadable(&cause))? {
            return Ok(false);
        }
        let rows = self.number()?;
        let length = self.number()?;
        let data = self.take(length)?;
        let marker = self.take(MARKER as u64)?;
        if marker != self.header.marker {
            return Err(self.damaged(damaged_at(self.at)));
        }
        let plain = self.plain(data, length)?;
        let longest = self.header.shape.longest_of(rows, &plain);
        let longest = longest.map_err(|what| self.damaged(what))?;
        self.admit(longest as u64, "a row of the block")?;
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.reserve_exact(NUMBERS + plain.len() + MARKER);
        put_integer(i64::try_from(rows).unwrap_or(i64::MAX), &mut self.bytes);
        put_integer(i64::try_from(plain.len()).unwrap_or(i64::MAX), &mut self.bytes);
        self.bytes.extend_from_slice(&plain);
        self.bytes.extend_from_slice(&marker);
        Ok(true)
    }

    /// Decompresses the block just read.
    fn plain(&mut self, data: Vec<u8>, length: u64) -> Result<Vec<u8>> {
        let codec = self.header.codec;
        let limit = match self.watch.longest.planned() {
            u64::MAX => usize::MAX,
            planned => self.planned.max(usize::try_from(planned).unwrap_or(usize::MAX)),
        };
        if codec.is_none() {
            if data.len() > limit {
                self.admit(length, "the block")?;
            }
            return Ok(data);
        }
        let fault = |what: String| self.damaged(what);
        match plain(codec, data.clone(), limit).map_err(fault)? {
            Plain::Whole(plain) => Ok(plain),
            Plain::Longer(bytes) => {
                self.admit(bytes, "the block")?;
                match plain(codec, data, usize::MAX).map_err(|what| self.damaged(what))? {
                    Plain::Whole(plain) => Ok(plain),
                    Plain::Longer(_) => Err(self.damaged(damaged_at(self.at))),
                }
            }
        }
    }

    fn admit(&self, bytes: u64, what: &str) -> Result<()> {
        let need = self.watch.longest.admit(bytes);
        let at = format!("{what} at byte {}", self.at);
        need.map(drop).map_err(|need| need.error(&self.name, &at))
    }

    /// Reads a number in front of a block.
    fn number(&mut self) -> Result<u64> {
        let mut bytes = Vec::with_capacity(NUMBERS / 2);
        while bytes.len() < NUMBERS / 2 && bytes.last().is_none_or(|byte| byte & 0x80 > 0) {
            bytes.append(&mut self.take(1)?);
        }
        let number = long(&mut bytes.as_slice()).and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| self.damaged(damaged_at(self.at)))
    }

    /// Reads `length` bytes. The buffer grows with the bytes read, so that a damaged length
    /// allocates nothing.
    fn take(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(length).read_to_end(&mut bytes);
        let read = read.map_err(|cause| self.unreadable(&cause))? as u64;
        self.at += read;
        if read == length { Ok(bytes) } else { Err(self.damaged(cut_short(self.at))) }
    }

    fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::data(format!("{}: {what}", self.name)).in_file(Arc::clone(&self.name))
    }

    fn unreadable(&self, cause: &io::Error) -> Error {
        self.damaged(format!("cannot be read: {cause}"))
    }
}

impl<R: BufRead> BufRead for BlockReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.bytes.len()
            && let Err(error) = self.load()
        {
            let mut fault = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
            *fault = Some(error);
            return Err(io::Error::other("no more blocks"));
        }
        Ok(&self.bytes[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}

impl<R: BufRead> Read for BlockReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}
