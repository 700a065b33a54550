//! The option `--compression CODEC[:LEVEL]`, and its meaning for each format.

use std::path::Path;
use std::str::FromStr;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::IpcWriteOptions;
use parquet::basic::{BrotliLevel, Compression as ParquetCodec, GzipLevel, ZstdLevel};

use crate::error::{Error, Result};
use crate::input::Footer;
use crate::packing::{Packing, zstd_bytes};
use crate::settings::Format;

/// A codec, with its level if it has levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// Snappy, in Parquet.
    Snappy,
    /// LZ4, in Parquet, Arrow and text.
    Lz4,
    /// Zstandard at a level from 1 to 22, in all formats.
    Zstd(i32),
    /// gzip at a level from 0 to 9, in Parquet and text.
    Gzip(u32),
    /// Brotli at a level from 0 to 11, in Parquet.
    Brotli(u32),
    /// bzip2 at a level from 1 to 9, in text.
    Bzip2(u32),
    /// xz at a level from 0 to 9, in text.
    Xz(u32),
}

impl Compression {
    /// On text, level 2 saves 6 % over level 1 for a sixth more time; level 3 saves 2 % more for
    /// another third.
    pub(super) const PARQUET_DEFAULT: Self = Self::Zstd(2);

    /// Returns the codec of a Parquet file; `None` for a file without rows, and for codecs that are
    /// not written. Files do not state the level.
    pub(crate) fn of_footer(footer: &Footer) -> Option<Self> {
        Some(match footer.metadata().row_groups().first()?.columns().first()?.compression() {
            ParquetCodec::UNCOMPRESSED => Self::None,
            ParquetCodec::SNAPPY => Self::Snappy,
            ParquetCodec::LZ4 | ParquetCodec::LZ4_RAW => Self::Lz4,
            ParquetCodec::GZIP(_) => Self::Gzip(6),
            ParquetCodec::BROTLI(_) => Self::Brotli(1),
            ParquetCodec::ZSTD(_) | ParquetCodec::LZO => return None,
        })
    }

    /// Returns the codec's name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd(_) => "zstd",
            Self::Gzip(_) => "gzip",
            Self::Brotli(_) => "brotli",
            Self::Bzip2(_) => "bzip2",
            Self::Xz(_) => "xz",
        }
    }

    fn refused(self, lacks: &str, known: &str) -> Error {
        Error::usage(format!("{lacks} {} compression; use {known}", self.name()))
    }

    pub(super) fn parquet(self) -> Result<ParquetCodec> {
        let level = |error: parquet::errors::ParquetError| Error::usage(error.to_string());
        Ok(match self {
            Self::None => ParquetCodec::UNCOMPRESSED,
            Self::Snappy => ParquetCodec::SNAPPY,
            Self::Lz4 => ParquetCodec::LZ4_RAW,
            Self::Zstd(n) => ParquetCodec::ZSTD(ZstdLevel::try_new(n).map_err(level)?),
            Self::Gzip(n) => ParquetCodec::GZIP(GzipLevel::try_new(n).map_err(level)?),
            Self::Brotli(n) => ParquetCodec::BROTLI(BrotliLevel::try_new(n).map_err(level)?),
            Self::Bzip2(_) | Self::Xz(_) => {
                let known = "none, snappy, lz4, zstd, gzip or brotli";
                return Err(self.refused("Parquet knows no", known));
            }
        })
    }

    pub(super) fn ipc(self) -> Result<IpcWriteOptions> {
        let options = IpcWriteOptions::default();
        let options = match self {
            Self::None => Ok(options),
            Self::Lz4 => options.try_with_compression(Some(CompressionType::LZ4_FRAME)),
            Self::Zstd(level) => options
                .try_with_compression(Some(CompressionType::ZSTD))
                .and_then(|options| options.try_with_compression_level(Some(level))),
            Self::Snappy | Self::Gzip(_) | Self::Brotli(_) | Self::Bzip2(_) | Self::Xz(_) => {
                return Err(self.refused("Arrow files know no", "none, lz4 or zstd"));
            }
        };
        options.map_err(|error| Error::usage(error.to_string()))
    }

    /// Returns the compression and level of text output; `None` for uncompressed text.
    pub(crate) fn text(self) -> Result<Option<(Packing, u32)>> {
        Ok(Some(match self {
            Self::None => return Ok(None),
            Self::Lz4 => (Packing::Lz4, 0),
            Self::Zstd(level) => (Packing::Zstd, level.unsigned_abs()),
            Self::Gzip(level) => (Packing::Gzip, level),
            Self::Bzip2(level) => (Packing::Bzip2, level),
            Self::Xz(level) => (Packing::Xz, level),
            Self::Snappy | Self::Brotli(_) => {
                let known = "none, gzip, zstd, lz4, bzip2 or xz";
                return Err(self.refused("CSV and NDJSON are written without", known));
            }
        }))
    }

    /// Returns the codec of an output called `path`, with or without an explicit `codec`.
    ///
    /// # Errors
    /// `Usage` if the name contradicts the codec or the format.
    pub(crate) fn of_name(
        path: &Path,
        format: Format,
        codec: Option<Self>,
    ) -> Result<Option<Self>> {
        let Some((packing, _)) = Packing::of_path(path) else { return Ok(codec) };
        let name = path.display();
        if !matches!(format, Format::Csv | Format::Ndjson) {
            return Err(Error::usage(format!(
                "{name}: {format} is compressed within, and its name has no .{}; see `compression`",
                packing.extension()
            )));
        }
        match codec.map(Self::text).transpose()? {
            None => packing.name().parse().map(Some).map_err(Error::usage),
            Some(Some((same, _))) if same == packing => Ok(codec),
            Some(_) => Err(Error::usage(format!(
                "{name}: its name is that of {} data; give it another, or leave `compression` out",
                packing.name()
            ))),
        }
    }

    /// Returns the bytes of a codec's state for one column: measured for zstd, rounded up for
    /// others.
    pub(super) fn context_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Snappy | Self::Lz4 => 64 << 10,
            Self::Gzip(_) => 320 << 10,
            Self::Brotli(level) => (1 << 20) << (level / 4).min(4),
            Self::Bzip2(level) => Packing::Bzip2.writer_bytes(level),
            Self::Xz(level) => Packing::Xz.writer_bytes(level),
            Self::Zstd(level) => zstd_bytes(u32::try_from(level).unwrap_or(0)),
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let within = |default: u8, range: std::ops::RangeInclusive<u8>| match level {
            None => Ok(default),
            Some(level) => {
                level.parse().ok().filter(|level| range.contains(level)).ok_or_else(|| {
                    let (least, most) = (range.start(), range.end());
                    format!("the level of {name} is a number from {least} to {most}, not {level:?}")
                })
            }
        };
        let plain = |compression: Self| match level {
            None => Ok(compression),
            Some(_) => Err(format!("{name} has no levels")),
        };
        match name {
            "none" => plain(Self::None),
            "snappy" => plain(Self::Snappy),
            "lz4" => plain(Self::Lz4),
            "zstd" => within(2, 1..=22).map(|level| Self::Zstd(level.into())),
            "gzip" => within(6, 0..=9).map(|level| Self::Gzip(level.into())),
            "brotli" => within(1, 0..=11).map(|level| Self::Brotli(level.into())),
            "bzip2" => within(9, 1..=9).map(|level| Self::Bzip2(level.into())),
            "xz" => within(6, 0..=9).map(|level| Self::Xz(level.into())),
            _ => Err(format!(
                "{name:?} is no compression; use none, snappy, lz4, zstd[:LEVEL], gzip[:LEVEL], brotli[:LEVEL], \
                 bzip2[:LEVEL] or xz[:LEVEL]"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_codecs_and_levels() {
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(2)));
        assert_eq!("zstd:19".parse(), Ok(Compression::Zstd(19)));
        assert_eq!("gzip:9".parse(), Ok(Compression::Gzip(9)));
        assert_eq!("bzip2".parse(), Ok(Compression::Bzip2(9)));
        assert_eq!("xz:0".parse(), Ok(Compression::Xz(0)));
        assert_eq!("none".parse(), Ok(Compression::None));
        for wrong in
            ["zstd:23", "zstd:0", "zstd:", "lz4:1", "zip", "brotli:12", "bzip2:0", "xz:10", ""]
        {
            assert!(wrong.parse::<Compression>().is_err(), "{wrong}");
        }
    }
}
