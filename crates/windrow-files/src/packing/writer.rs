//! Writer of compressed members.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use lzma_rust2::{LzmaOptions, XzOptions, XzWriter};

use super::Packing;

/// Bytes per call of an encoder: a member must not depend on the division of its rows into record
/// batches.
const CHUNK: usize = 64 << 10;

/// Window of xz: a part of text is a few times as long.
const XZ_WINDOW: u32 = 1 << 20;

/// Writes one member.
pub(crate) struct Packer<W: Write> {
    encoder: Encoder<W>,
    chunk: Vec<u8>,
}

enum Encoder<W: Write> {
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
    Xz(Box<XzWriter<W>>),
    Lz4(Box<FrameEncoder<W>>),
}

impl Packing {
    /// Returns the memory of a writer.
    pub(crate) fn writer_bytes(self, level: u32) -> usize {
        let state = match self {
            Self::Gzip => 320 << 10,
            Self::Zstd => zstd_bytes(level),
            Self::Bzip2 => 8 << 20,
            Self::Xz => xz_options(level).get_memory_usage() as usize * 1024 + (1 << 20),
            Self::Lz4 => 2 << 20,
        };
        state + CHUNK
    }
}

/// Returns the bytes of zstd's state, as measured.
pub(crate) fn zstd_bytes(level: u32) -> usize {
    match level {
        ..=1 => 600 << 10,
        2..=3 => 1300 << 10,
        4..=6 => 5 << 20,
        7..=9 => 13 << 20,
        10..=15 => 32 << 20,
        16.. => 96 << 20,
    }
}

fn xz_options(level: u32) -> LzmaOptions {
    let mut options = LzmaOptions::with_preset(level);
    options.dict_size = options.dict_size.min(XZ_WINDOW);
    options
}

impl<W: Write> Packer<W> {
    /// Starts a member in `out`.
    pub(crate) fn new(packing: Packing, level: u32, out: W) -> io::Result<Self> {
        let encoder = match packing {
            Packing::Gzip => Encoder::Gzip(GzEncoder::new(out, flate2::Compression::new(level))),
            Packing::Bzip2 => Encoder::Bzip2(BzEncoder::new(out, bzip2::Compression::new(level))),
            Packing::Zstd => {
                let level = i32::try_from(level).unwrap_or(i32::MAX);
                let mut encoder = zstd::stream::write::Encoder::new(out, level)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
            Packing::Lz4 => {
                let frame = FrameInfo::new()
                    .block_size(BlockSize::Max256KB)
                    .block_mode(BlockMode::Independent)
                    .content_checksum(true);
                Encoder::Lz4(Box::new(FrameEncoder::with_frame_info(frame, out)))
            }
            Packing::Xz => {
                let mut options = XzOptions::with_preset(level);
                options.lzma_options = xz_options(level);
                Encoder::Xz(Box::new(XzWriter::new(out, options)?))
            }
        };
        Ok(Self { encoder, chunk: Vec::with_capacity(CHUNK) })
    }

    /// Ends the member.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.encode()?;
        match self.encoder {
            Encoder::Gzip(encoder) => encoder.finish().map(drop),
            Encoder::Zstd(encoder) => encoder.finish().map(drop),
            Encoder::Bzip2(encoder) => encoder.finish().map(drop),
            Encoder::Xz(encoder) => encoder.finish().map(drop),
            Encoder::Lz4(encoder) => encoder.finish().map(drop).map_err(io::Error::from),
        }
    }

    fn encode(&mut self) -> io::Result<()> {
        let chunk = &self.chunk;
        match &mut self.encoder {
            Encoder::Gzip(encoder) => encoder.write_all(chunk),
            Encoder::Zstd(encoder) => encoder.write_all(chunk),
            Encoder::Bzip2(encoder) => encoder.write_all(chunk),
            Encoder::Xz(encoder) => encoder.write_all(chunk),
            Encoder::Lz4(encoder) => encoder.write_all(chunk),
        }?;
        self.chunk.clear();
        Ok(())
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == CHUNK {
            self.encode()?;
        }
        Ok(taken)
    }

    /// Does nothing: writers of text flush after each record batch, but only the rows determine the
    /// end of a member.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
