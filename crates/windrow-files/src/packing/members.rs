//! Members of known length, which threads decompress side by side.
//!
//! ```text
//!  file   | member | member | member | member | member of unknown length | ...
//!         |---- slice 0 ----|---- slice 1 ----|------- the rest ---------------
//!              thread 0          thread 1            one decoder
//! ```
//! bgzip records the length of a member in the header of the member; zstd records the length of each
//! block of a frame. A member whose text may exceed the memory belongs to the rest.
//!
//! Invariant: the text is that of one decoder for the whole file, and damage is an error.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read};
use std::thread;

use super::{BUFFER, Packing, STATE, zstd_window};

/// Resources for decompressing one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decompressors {
    threads: usize,
    /// Maximum bytes of decompressed text.
    text: usize,
}

impl Decompressors {
    /// The memory limit's share for the text of all readers.
    const SHARE: u64 = 32;
    /// Maximum and minimum bytes of text for a thread.
    const MOST: usize = 8 << 20;
    const LEAST: usize = 256 << 10;

    /// Returns the share of a job with this limit of memory.
    pub(crate) fn within(limit: Option<u64>, threads: usize) -> Self {
        let share = limit.unwrap_or(u64::MAX) / Self::SHARE / threads.max(1) as u64;
        let text = usize::try_from(share).unwrap_or(usize::MAX).min(threads * Self::MOST);
        Self { threads, text }
    }

    /// Returns the share of each of `files`, which other threads read at the same time.
    pub(crate) fn shared_by(self, files: usize) -> Self {
        Self { threads: self.threads / files.max(1), ..self }
    }

    /// Returns whether more than one thread can be of use.
    pub(super) fn is_useful(self) -> bool {
        self.threads > 1 && self.text / self.threads >= Self::LEAST
    }

    /// Returns the memory for compressed bytes, a copy of them, text, and the decoders.
    pub(super) fn bytes(self) -> usize {
        3 * self.text + self.threads * STATE
    }
}

/// Text of consecutive members.
pub(super) struct Members {
    packing: Packing,
    /// Maximum window.
    window: u64,
    decompressors: Decompressors,
    /// Text to decompress next: little for the head of a file, which is read once more.
    step: usize,
    /// The file; `None` once the rest has it.
    packed: Option<Box<dyn Read + Send>>,
    /// Compressed bytes that belong to no slice yet.
    held: Vec<u8>,
    texts: VecDeque<Text>,
    /// A fault of the file, after all members before the fault.
    fault: Option<io::Error>,
    rest: Option<Box<dyn Read + Send>>,
}

/// Decompressed text of a slice.
struct Text {
    bytes: Cursor<Vec<u8>>,
    end: End,
}

enum End {
    /// The slice ends with the text.
    Whole,
    Fault(io::Error),
    /// The slice has more text than expected.
    More(Box<dyn Read + Send>),
}

/// Whole members, and the maximum length of their text.
#[derive(Default)]
struct Slice {
    bytes: Vec<u8>,
    text: usize,
}

impl Members {
    pub(super) fn new(
        packing: Packing,
        window: u64,
        decompressors: Decompressors,
        packed: Box<dyn Read + Send>,
    ) -> Self {
        Self {
            packing,
            window,
            decompressors,
            step: Decompressors::LEAST * decompressors.threads,
            packed: Some(packed),
            held: Vec::new(),
            texts: VecDeque::new(),
            fault: None,
            rest: None,
        }
    }

    /// Decompresses the next members, or opens the rest. Returns false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        let slices = self.slices();
        if !slices.is_empty() {
            self.texts = decompress(self.packing, self.window, &slices);
        } else if let Some(fault) = self.fault.take() {
            return Err(fault);
        } else if self.held.is_empty() {
            return Ok(false);
        } else if let Some(packed) = self.packed.take() {
            let held = std::mem::take(&mut self.held);
            let rest = Box::new(Cursor::new(held).chain(packed));
            self.rest = Some(self.packing.decoder(rest, self.window)?);
        }
        Ok(true)
    }

    /// Takes the next members, a slice for each thread.
    fn slices(&mut self) -> Vec<Slice> {
        let (mut slices, mut last, mut text) = (Vec::new(), Slice::default(), 0);
        while text < self.step
            && let Some(member) = self.next_member(self.decompressors.text - text)
        {
            text += member.text;
            last.text += member.text;
            last.bytes.extend_from_slice(&member.bytes);
            if last.text >= self.step / self.decompressors.threads {
                slices.push(std::mem::take(&mut last));
            }
        }
        self.step = (2 * self.step).min(self.decompressors.text);
        slices.extend(Some(last).filter(|slice| !slice.bytes.is_empty()));
        slices
    }

    /// Takes the next member; `None` if its length is unknown, if its text may be longer than
    /// `most`, at a fault, or at the end of the file.
    fn next_member(&mut self, most: usize) -> Option<Slice> {
        loop {
            let window = zstd_window(&self.held).filter(|_| self.packing == Packing::Zstd);
            if window > Some(self.window) {
                // The decoder of the rest reports the window.
                return None;
            }
            match self.packing.member(&self.held, most) {
                Length::Known { bytes, text } => {
                    let rest = self.held.split_off(bytes);
                    let bytes = std::mem::replace(&mut self.held, rest);
                    return Some(Slice { bytes, text });
                }
                Length::Unknown => return None,
                Length::Beyond => {}
            }
            let mut packed = self.packed.as_mut()?.take(BUFFER as u64);
            match packed.read_to_end(&mut self.held) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(fault) => {
                    self.fault = Some(fault);
                    return None;
                }
            }
        }
    }
}

impl Read for Members {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            while let Some(text) = self.texts.front_mut() {
                let read = text.read(bytes)?;
                if read > 0 {
                    return Ok(read);
                }
                self.texts.pop_front();
            }
            if let Some(rest) = &mut self.rest {
                return rest.read(bytes);
            }
            if !self.fill()? {
                return Ok(0);
            }
        }
    }
}

impl Read for Text {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match (self.bytes.read(bytes)?, &mut self.end) {
            (0, End::Fault(fault)) => Err(io::Error::new(fault.kind(), fault.to_string())),
            (0, End::More(rest)) => rest.read(bytes),
            (read, _) => Ok(read),
        }
    }
}

/// Decompresses each slice on a thread of its own, as far as the system has threads.
fn decompress(packing: Packing, window: u64, slices: &[Slice]) -> VecDeque<Text> {
    let Some((first, others)) = slices.split_first() else { return VecDeque::new() };
    thread::scope(|scope| {
        let spawn = |slice| {
            let work = move || text(packing, window, slice);
            (slice, thread::Builder::new().spawn_scoped(scope, work))
        };
        let others: Vec<_> = others.iter().map(spawn).collect();
        let first = text(packing, window, first);
        let others = others.into_iter().map(|(slice, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => text(packing, window, slice),
        });
        std::iter::once(first).chain(others).collect()
    })
}

/// Decompresses a slice.
fn text(packing: Packing, window: u64, slice: &Slice) -> Text {
    if packing == Packing::Zstd
        && let Ok(text) = zstd::bulk::decompress(&slice.bytes, slice.text)
    {
        // No window besides the text.
        return Text { bytes: Cursor::new(text), end: End::Whole };
    }
    let mut text = Vec::with_capacity(slice.text);
    let packed = Box::new(Cursor::new(slice.bytes.clone()));
    let decoded = packing.decoder(packed, window).and_then(|mut decoder| {
        let read = decoder.by_ref().take(slice.text as u64).read_to_end(&mut text)?;
        Ok((read == slice.text).then_some(decoder))
    });
    let end = match decoded {
        Ok(None) => End::Whole,
        Ok(Some(decoder)) => End::More(decoder),
        Err(fault) => End::Fault(fault),
    };
    Text { bytes: Cursor::new(text), end }
}

/// Length of the first member of some bytes.
#[derive(Debug, PartialEq)]
pub(super) enum Length {
    /// Compressed bytes, and the maximum length of the text.
    Known {
        bytes: usize,
        text: usize,
    },
    /// More bytes are needed.
    Beyond,
    Unknown,
}

impl Packing {
    /// Returns the length of the first member in `bytes`, if its text has at most `most` bytes.
    pub(super) fn member(self, bytes: &[u8], most: usize) -> Length {
        let found = match self {
            Self::Gzip => bgzip_member(bytes),
            Self::Zstd => zstd_frame(bytes, most),
            Self::Bzip2 | Self::Xz | Self::Lz4 => return Length::Unknown,
        };
        match found {
            Some(Length::Known { text, .. }) if text > most => Length::Unknown,
            Some(Length::Known { bytes: length, .. }) if length > bytes.len() => Length::Beyond,
            Some(length) => length,
            None => Length::Beyond,
        }
    }
}

/// Returns the length of a member of gzip by the header field of bgzip; `None` if `bytes` break off.
fn bgzip_member(bytes: &[u8]) -> Option<Length> {
    /// Maximum text of a member.
    const TEXT: usize = 64 << 10;
    const EXTRA: u8 = 4;
    let [0x1F, 0x8B, 8, flags, ..] = *bytes.get(..12)? else { return Some(Length::Unknown) };
    if flags & EXTRA == 0 {
        return Some(Length::Unknown);
    }
    let u16_at =
        |at: usize| Some(usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
    let end = 12 + u16_at(10)?;
    let mut at = 12;
    while at + 4 <= end {
        let length = u16_at(at + 2)?;
        if bytes[at..].starts_with(b"BC\x02\0") {
            let bytes = u16_at(at + 4)? + 1;
            return Some(if bytes > end {
                Length::Known { bytes, text: TEXT }
            } else {
                Length::Unknown
            });
        }
        at += 4 + length;
    }
    Some(Length::Unknown)
}

/// Returns the length of a frame of zstd by the headers of its blocks (RFC 8878, 3.1); `None` if
/// `bytes` break off.
fn zstd_frame(bytes: &[u8], most: usize) -> Option<Length> {
    /// Maximum text of a block.
    const BLOCK: usize = 128 << 10;
    let magic = u32::from_le_bytes(*bytes.first_chunk()?);
    if magic & !15 == 0x184D_2A50 {
        let length = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
        let fits = length <= most;
        return Some(if fits {
            Length::Known { bytes: 8 + length, text: 0 }
        } else {
            Length::Unknown
        });
    }
    if magic != 0xFD2F_B528 {
        return Some(Length::Unknown);
    }
    let descriptor = *bytes.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    let checksum = usize::from(descriptor & 4);
    let mut at = 5 + usize::from(!is_single) + dictionary + size;
    let mut text = 0;
    while text <= most {
        let [a, b, c] = *bytes.get(at..)?.first_chunk()?;
        let header = u32::from_le_bytes([a, b, c, 0]) as usize;
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 3, header >> 3);
        // A block of one repeated byte, and a compressed block.
        text += if kind == 2 { BLOCK } else { size };
        at += 3 + if kind == 1 { 1 } else { size };
        if is_last {
            return Some(Length::Known { bytes: at + checksum, text });
        }
    }
    Some(Length::Unknown)
}
