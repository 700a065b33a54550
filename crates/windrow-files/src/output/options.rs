//! How outputs are written, as callers say it.

use super::{Compression, LONG_ROW, OutputOptions, Target};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::input::{CsvOptions, DeclaredColumn};
use crate::setting::Setting;
use crate::size::Size;
use crate::store::Stores;
use crate::watch::Watch;

/// The encodings of Parquet columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encodings {
    /// Those that make small files: of integers, times and text their differences and lengths.
    #[default]
    Delta,
    /// Values as they are, and dictionaries: for readers that do not know the others. Files are about a fifth larger.
    Plain,
}

/// How outputs are written.
///
/// ```
/// use windrow_files::{Compression, Format, WriteOptions};
///
/// let write = WriteOptions::default().format(Format::Parquet).compression(Compression::Zstd(3));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The format; told by the extension of the target unless given, Parquet for partitions.
    pub format: Option<Format>,
    /// The codec; zstd level 2 for Parquet and none for other formats unless given.
    pub compression: Option<Compression>,
    /// Row bytes of a Parquet row group, before encoding. Row groups end at 122,880 rows, and are not cut below
    /// 8,192 rows or 2 MiB.
    pub row_group_bytes: u64,
    /// Bytes of a Parquet page, before compression.
    pub page_bytes: u64,
    /// Whether Parquet pages and column chunks carry minima and maxima.
    pub statistics: bool,
    /// Whether Parquet pages carry checksums, by which readers notice damage.
    pub checksums: bool,
    /// The encodings of Parquet columns.
    pub encodings: Encodings,
    /// How CSV is written down; as the inputs are unless given.
    pub csv: Option<CsvOptions>,
    /// Bytes of a file: sorted output then goes to a directory of files that follow from one another,
    /// `part-00000.parquet` and on, whose ranges of the order do not overlap. Rows that are equal in it stay in one file,
    /// which may be larger for them.
    pub max_file_bytes: Option<u64>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            format: None,
            compression: None,
            row_group_bytes: 16 << 20,
            // Small enough that a page of every column of a row group is a few MB, large enough that
            // zstd loses about 2 %.
            page_bytes: 512 << 10,
            statistics: true,
            checksums: true,
            encodings: Encodings::default(),
            csv: None,
            max_file_bytes: None,
        }
    }
}

impl WriteOptions {
    /// Sets the format.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the codec.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Sets the row bytes of a Parquet row group.
    pub fn row_group_bytes(mut self, bytes: u64) -> Self {
        self.row_group_bytes = bytes;
        self
    }

    /// Sets the bytes of a Parquet page.
    pub fn page_bytes(mut self, bytes: u64) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// Sets whether Parquet pages and column chunks carry minima and maxima.
    pub fn statistics(mut self, statistics: bool) -> Self {
        self.statistics = statistics;
        self
    }

    /// Sets whether Parquet pages carry checksums.
    pub fn checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// Sets the encodings of Parquet columns.
    pub fn encodings(mut self, encodings: Encodings) -> Self {
        self.encodings = encodings;
        self
    }

    /// Sets how CSV is written down.
    pub fn csv(mut self, csv: CsvOptions) -> Self {
        self.csv = Some(csv);
        self
    }

    /// Sets the bytes of a file, of which there are then as many as needed.
    pub fn max_file_bytes(mut self, bytes: u64) -> Self {
        self.max_file_bytes = Some(bytes);
        self
    }

    /// Whether nothing of how Parquet is written was set.
    fn is_usual(&self) -> bool {
        let usual = Self::default();
        self.compression.is_none()
            && self.max_file_bytes.is_none()
            && (self.row_group_bytes, self.page_bytes) == (usual.row_group_bytes, usual.page_bytes)
            && (self.statistics, self.checksums) == (usual.statistics, usual.checksums)
            && self.encodings == usual.encodings
    }

    /// The format of what a job writes to `target`, as far as that is told; for partitions it is
    /// [`format`](Self::format) alone.
    pub fn format_of(&self, target: &Target) -> Option<Format> {
        match target {
            Target::Path(path) if self.max_file_bytes.is_none() => {
                self.format.or_else(|| Format::of_path(path))
            }
            _ => self.format,
        }
    }

    /// What is to be written in `format`: rows sorted by `sorting`, of `row_bytes` on average.
    ///
    /// # Errors
    /// `Usage` if pages or row groups would be mostly headers.
    pub(crate) fn bind(
        &self,
        format: Format,
        sorting: Vec<DeclaredColumn>,
        csv: CsvOptions,
        row_bytes: usize,
    ) -> Result<OutputOptions> {
        if !Format::WRITTEN.contains(&format) {
            return Err(super::not_written(format));
        }
        /// A page has a header, a row group a footer's worth of figures for every column: smaller ones are
        /// mostly those.
        const LEAST: [(Setting, u64); 3] = [
            (Setting::PageSize, 4 << 10),
            (Setting::RowGroupSize, 64 << 10),
            (Setting::MaxFileSize, 64 << 10),
        ];
        let given = [Some(self.page_bytes), Some(self.row_group_bytes), self.max_file_bytes];
        let given = given.into_iter().zip(LEAST).filter_map(|(size, least)| Some((size?, least)));
        if let Some((size, (setting, least))) =
            given.into_iter().find(|(size, (_, least))| size < least)
        {
            let (size, least) = (Size(size), Size(least));
            return Err(Error::usage(format!("{setting} {size}: takes {least} at the least")));
        }
        Ok(OutputOptions {
            format,
            compression: self.compression,
            sorting,
            page_bytes: usize::try_from(self.page_bytes).unwrap_or(usize::MAX),
            statistics: self.statistics,
            checksums: self.checksums,
            encodings: self.encodings,
            columns_in_turn: false,
            long_rows: row_bytes >= LONG_ROW,
            as_usual: self.is_usual(),
            csv,
            max_file_bytes: self.max_file_bytes,
            stores: Stores::default(),
            upload: None,
            watch: Watch::default(),
        })
    }
}
