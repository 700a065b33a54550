//! Compression of text: gzip, zstd, bzip2, xz and LZ4 frames, read and written.
//!
//! ```text
//!  file --magic number--> Packing --reader--> text, of all members one behind the other
//!  text of a part --writer--> a member; members are appended
//! ```
//! Every format permits a sequence of members, so that threads compress parts independently.
//!
//! Invariant: a reader takes at most the memory of [`Packing::reader_bytes`] for the head of its
//! file. A later member with higher needs is an error.

mod members;
mod writer;

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;

use members::{Length, Members};

pub(crate) use members::Decompressors;
pub(crate) use writer::{Packer, zstd_bytes};

/// A compression format of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
}

/// Length of a file's head, from which the format and its memory for reading are determined.
pub(crate) const HEAD: usize = 64;

/// Compressed bytes to read at a time.
const BUFFER: usize = 64 << 10;

/// Bytes for tables of any format, and for the blocks of zstd.
const STATE: usize = 512 << 10;

/// Minimum window in a reader's memory plan: enough for zstd at levels 1 to 19 and for xz at levels
/// 0 to 6, the usual ones.
const WINDOW: u64 = 8 << 20;
/// Maximum window; files with a larger one are refused.
const MOST_WINDOW: u64 = 128 << 20;

impl Packing {
    const ALL: [Self; 5] = [Self::Gzip, Self::Zstd, Self::Bzip2, Self::Xz, Self::Lz4];

    /// Returns the name, the extensions of files, and the magic number at their start.
    fn facts(self) -> (&'static str, &'static [&'static str], &'static [u8]) {
        match self {
            Self::Gzip => ("gzip", &["gz", "gzip"], b"\x1f\x8b\x08"),
            Self::Zstd => ("zstd", &["zst", "zstd"], b"\x28\xb5\x2f\xfd"),
            Self::Bzip2 => ("bzip2", &["bz2"], b"BZh"),
            Self::Xz => ("xz", &["xz"], b"\xfd7zXZ\0"),
            Self::Lz4 => ("lz4", &["lz4"], b"\x04\x22\x4d\x18"),
        }
    }

    /// Returns the compression of a file by its head.
    pub(crate) fn of_magic(head: &[u8]) -> Option<Self> {
        if behind_skippable(head).starts_with(Self::Zstd.facts().2) {
            return Some(Self::Zstd);
        }
        let found = Self::ALL.into_iter().find(|packing| head.starts_with(packing.facts().2))?;
        // The magic number of bzip2 alone is also text, so the header of the first block, or of the
        // end, is checked too.
        let is_block = matches!(head.get(4..10), Some(b"1AY&SY" | b"\x17\x72\x45\x38\x50\x90"));
        (found != Self::Bzip2 || is_block).then_some(found)
    }

    /// Returns the compression of `path` by its extension, and the path without this extension.
    pub(crate) fn of_path(path: &Path) -> Option<(Self, PathBuf)> {
        let extension = path.extension()?;
        let known = |packing: &Self| {
            packing.facts().1.iter().any(|known| extension.eq_ignore_ascii_case(known))
        };
        Self::ALL.into_iter().find(known).map(|packing| (packing, path.with_extension("")))
    }

    /// Returns the extension for output files.
    pub(crate) fn extension(self) -> &'static str {
        self.facts().1[0]
    }

    /// Returns the name.
    pub(crate) fn name(self) -> &'static str {
        self.facts().0
    }

    /// Returns the memory for reading a file with this head.
    pub(crate) fn reader_bytes(self, head: &[u8], decompressors: Decompressors) -> usize {
        let window = usize::try_from(self.window(head)).unwrap_or(usize::MAX);
        let own = match self {
            Self::Gzip => 0,
            Self::Zstd | Self::Xz => window,
            // Indices of the 900,000 bytes of a block.
            Self::Bzip2 => 4 << 20,
            // A compressed block, and twice its text.
            Self::Lz4 => 3 * (4 << 20),
        };
        let members = if self.has_members(head, decompressors) { decompressors.bytes() } else { 0 };
        own + STATE + 2 * BUFFER + members
    }

    /// Returns whether threads may decompress the members of a file with this head.
    fn has_members(self, head: &[u8], decompressors: Decompressors) -> bool {
        decompressors.is_useful() && self.member(head, usize::MAX) != Length::Unknown
    }

    /// Returns the maximum window of members.
    fn window(self, head: &[u8]) -> u64 {
        let told = match self {
            Self::Zstd => zstd_window(head),
            Self::Xz => xz_window(head),
            Self::Gzip | Self::Bzip2 | Self::Lz4 => None,
        };
        told.unwrap_or(0).clamp(WINDOW, MOST_WINDOW)
    }

    /// Decompresses `packed`, a file with this head.
    pub(crate) fn reader(
        self,
        packed: Box<dyn Read + Send>,
        head: &[u8],
        decompressors: Decompressors,
    ) -> io::Result<Box<dyn Read + Send>> {
        let text = match self.has_members(head, decompressors) {
            true => Box::new(Members::new(self, self.window(head), decompressors, packed))
                as Box<dyn Read + Send>,
            false => self.decoder(packed, self.window(head))?,
        };
        Ok(Box::new(Unpacked { packing: self, text, ended: false, failed: None }))
    }

    /// Decompresses `packed`, members with at most this window.
    fn decoder(
        self,
        packed: Box<dyn Read + Send>,
        window: u64,
    ) -> io::Result<Box<dyn Read + Send>> {
        let packed = BufReader::with_capacity(BUFFER, packed);
        Ok(match self {
            Self::Gzip => Box::new(Gzip { packed: Some(packed), member: None }),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
            Self::Lz4 => Box::new(Lz4(FrameDecoder::new(ToItsEnd { packed, ended: false }))),
            Self::Xz => {
                let kib = u32::try_from(window / 1024 + 256).unwrap_or(u32::MAX);
                Box::new(XzReader::new_mem_limit(packed, true, kib))
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
                decoder.window_log_max(window.next_power_of_two().ilog2())?;
                Box::new(decoder)
            }
        })
    }
}

/// A compressed file.
type Packed = BufReader<Box<dyn Read + Send>>;

/// Members of gzip. Zeros after a member are padding, from tapes or `dd`.
struct Gzip {
    /// The file between two members; `None` within a member, and after the last.
    packed: Option<Packed>,
    member: Option<GzDecoder<Packed>>,
}

impl Read for Gzip {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(member) = &mut self.member {
                let read = member.read(bytes)?;
                if read > 0 {
                    return Ok(read);
                }
                self.packed = self.member.take().map(GzDecoder::into_inner);
            }
            let Some(packed) = &mut self.packed else { return Ok(0) };
            let ahead = packed.fill_buf()?;
            match ahead.iter().position(|&byte| byte != 0) {
                Some(0) => self.member = self.packed.take().map(GzDecoder::new),
                None if ahead.is_empty() => self.packed = None,
                zeros => {
                    let zeros = zeros.unwrap_or(ahead.len());
                    packed.consume(zeros);
                }
            }
        }
    }
}

/// LZ4 frames. The decoder ends its text both at the end mark of a frame and at the end of the
/// file. This reader reports a file that ends within a frame as truncated.
struct Lz4(FrameDecoder<ToItsEnd>);

/// A compressed file that records a read beyond its end.
struct ToItsEnd {
    packed: Packed,
    ended: bool,
}

impl Read for ToItsEnd {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.packed.read(bytes)?;
        self.ended |= read == 0 && !bytes.is_empty();
        Ok(read)
    }
}

impl Read for Lz4 {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(bytes)?;
            let file = self.0.get_mut();
            if read == 0 && file.ended {
                let what = "a frame without its end mark";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
            if read > 0 || file.packed.fill_buf()?.is_empty() {
                return Ok(read);
            }
        }
    }
}

/// Decompressed text. Errors name the compression and the kind of fault.
struct Unpacked {
    packing: Packing,
    text: Box<dyn Read + Send>,
    ended: bool,
    /// The first error: decoders are not called again after an error.
    failed: Option<(io::ErrorKind, String)>,
}

impl Read for Unpacked {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some((kind, what)) = &self.failed {
            return Err(io::Error::new(*kind, what.clone()));
        }
        if self.ended || bytes.is_empty() {
            return Ok(0);
        }
        let read = self.text.read(bytes).map_err(|cause| {
            let what = match cause.kind() {
                io::ErrorKind::Interrupted => return cause,
                io::ErrorKind::UnexpectedEof => "the compressed data is cut short",
                io::ErrorKind::OutOfMemory => "a part of it needs a larger window than the first",
                _ => "the compressed data is damaged",
            };
            let what = format!("{}: {what}: {cause}", self.packing.name());
            self.failed = Some((cause.kind(), what.clone()));
            io::Error::new(cause.kind(), what)
        })?;
        self.ended = read == 0;
        Ok(read)
    }
}

/// Returns the bytes after a skippable frame (RFC 8878, 3.1.2): pzstd starts files with one.
fn behind_skippable(head: &[u8]) -> &[u8] {
    match head {
        [0x50..=0x5F, 0x2A, 0x4D, 0x18, length, 0, 0, 0, rest @ ..] => {
            rest.get(usize::from(*length)..).unwrap_or_default()
        }
        _ => head,
    }
}

/// Returns the window of the first frame, from its header (RFC 8878, 3.1.1.1).
fn zstd_window(head: &[u8]) -> Option<u64> {
    let head = behind_skippable(head);
    let descriptor = *head.get(4)?;
    let single = descriptor & 0x20 != 0;
    if !single {
        let window = *head.get(5)?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut size = [0; 8];
    size[..length].copy_from_slice(head.get(5 + dictionary..5 + dictionary + length)?);
    let size = u64::from_le_bytes(size);
    Some(if length == 2 { size + 256 } else { size })
}

/// Returns the dictionary size of the first block, if LZMA2 is its first filter, as in the output
/// of `xz`.
fn xz_window(head: &[u8]) -> Option<u64> {
    let flags = *head.get(13)?;
    let mut at = 14;
    // Skip the optional sizes.
    for flag in [0x40, 0x80] {
        if flags & flag != 0 {
            at += head.get(at..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
        }
    }
    let bits = match head.get(at..at + 3)? {
        [0x21, 1, bits] if *bits < 40 => u32::from(*bits),
        _ => return None,
    };
    Some(u64::from(2 | bits & 1) << (bits / 2 + 11))
}

#[cfg(test)]
mod tests;
