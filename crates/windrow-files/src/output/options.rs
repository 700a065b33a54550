//! The caller's options for outputs.

use super::compression::Compression;
use super::target::Target;
use crate::error::{Error, Result};
use crate::input::{CsvOptions, DeclaredColumn};
use crate::settings::{Encodings, Existing, Format, Setting, setters};
use crate::size::Size;
use crate::store::Stores;
use crate::watch::Watch;

/// Options for outputs.
///
/// ```
/// use windrow_files::{Compression, Format, WriteOptions};
///
/// let write = WriteOptions::default().format(Format::Parquet).compression(Compression::Zstd(3));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Format. By default the extension of the target determines it; for partitions the default is
    /// Parquet.
    pub format: Option<Format>,
    /// Codec. By default zstd level 2 for Parquet, and none for other formats.
    pub compression: Option<Compression>,
    /// Row bytes of a Parquet row group, before encoding. Row groups end at 122,880 rows at the
    /// latest, and are not cut below 8,192 rows or 2 MiB.
    pub row_group_bytes: u64,
    /// Bytes of a Parquet page, before compression.
    pub page_bytes: u64,
    /// Whether Parquet pages and column chunks carry minima and maxima.
    pub statistics: bool,
    /// Whether Parquet pages carry checksums, for readers to detect damage.
    pub checksums: bool,
    /// The encodings of Parquet columns.
    pub encodings: Encodings,
    /// Dialect of CSV; by default the inputs' dialect.
    pub csv: Option<CsvOptions>,
    /// Maximum size of a file in bytes. Sorted output becomes a directory of files
    /// `part-00000.parquet` and on, in order, with disjoint key ranges. Rows with equal keys stay
    /// in one file, even beyond this size.
    pub max_file_bytes: Option<u64>,
    /// What becomes of the files in the directory of an output of several files.
    pub existing: Existing,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            format: None,
            compression: None,
            row_group_bytes: 16 << 20,
            // Small enough that one page of each column of a row group is a few MB, large enough
            // that zstd loses about 2 %.
            page_bytes: 512 << 10,
            statistics: true,
            checksums: true,
            encodings: Encodings::default(),
            csv: None,
            max_file_bytes: None,
            existing: Existing::default(),
        }
    }
}

impl WriteOptions {
    setters! {
        /// Sets the format.
        format: Format => Some(format);
        /// Sets the codec.
        compression: Compression => Some(compression);
        /// Sets the row bytes of a Parquet row group.
        row_group_bytes: u64;
        /// Sets the bytes of a Parquet page.
        page_bytes: u64;
        /// Sets whether Parquet pages and column chunks carry minima and maxima.
        statistics: bool;
        /// Sets whether Parquet pages carry checksums.
        checksums: bool;
        /// Sets the encodings of Parquet columns.
        encodings: Encodings;
        /// Sets the dialect of CSV.
        csv: CsvOptions => Some(csv);
        /// Sets the maximum size of a file. The output becomes a directory of as many files as
        /// needed.
        max_file_bytes: u64 => Some(max_file_bytes);
        /// Sets what becomes of the files in the directory of an output of several files.
        existing: Existing;
    }

    /// Returns true if all options of Parquet are the defaults.
    fn is_usual(&self) -> bool {
        let usual = Self::default();
        self.compression.is_none()
            && self.max_file_bytes.is_none()
            && (self.row_group_bytes, self.page_bytes) == (usual.row_group_bytes, usual.page_bytes)
            && (self.statistics, self.checksums) == (usual.statistics, usual.checksums)
            && self.encodings == usual.encodings
    }

    /// Returns the format of an output at `target`, if known. For a directory, only
    /// [`format`](Self::format) counts.
    pub fn format_of(&self, target: &Target) -> Option<Format> {
        match target {
            Target::Path(path) if self.max_file_bytes.is_none() => {
                self.format.or_else(|| Format::of_path(path))
            }
            _ => self.format,
        }
    }

    /// Binds the options to `format`, to rows sorted by `sorting`, and to an average of
    /// `row_bytes`.
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
            return Err(not_written(format));
        }
        /// Minimum sizes. A page has a header, and a row group has an entry in the footer for every
        /// column; below these sizes most bytes are metadata.
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
            write: self.clone(),
            format,
            sorting,
            row_group_bytes: usize::try_from(self.row_group_bytes).unwrap_or(usize::MAX),
            page_bytes: usize::try_from(self.page_bytes).unwrap_or(usize::MAX),
            columns_in_turn: false,
            page_index: true,
            bloom_filters: Vec::new(),
            long_rows: row_bytes >= LONG_ROW,
            as_usual: self.is_usual(),
            csv,
            stores: Stores::default(),
            upload: None,
            watch: Watch::default(),
        })
    }
}

/// Mean length in bytes from which each row is a chunk, a batch and a part of its own.
pub(crate) const LONG_ROW: usize = 1 << 20;

/// Options of one output: [`WriteOptions`] and settings of the job.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    /// The options of the caller.
    pub(crate) write: WriteOptions,
    pub(crate) format: Format,
    /// The order of the rows, as declared by a Parquet footer.
    pub(crate) sorting: Vec<DeclaredColumn>,
    /// Maximum row bytes of a Parquet row group.
    pub(crate) row_group_bytes: usize,
    /// Size at which a Parquet page is closed, before compression.
    pub(crate) page_bytes: usize,
    /// Whether the columns of a Parquet part are encoded one after the other, which holds the
    /// part's rows and few writers in memory. The bytes are the same.
    pub(crate) columns_in_turn: bool,
    /// Whether Parquet files have an index of their pages.
    pub(crate) page_index: bool,
    /// Paths of the Parquet columns with Bloom filters.
    pub(crate) bloom_filters: Vec<String>,
    /// Whether the mean row has [`LONG_ROW`] bytes or more.
    pub(crate) long_rows: bool,
    /// Whether all options except the format and the order are the defaults.
    pub(crate) as_usual: bool,
    /// Options of CSV.
    pub(crate) csv: CsvOptions,
    /// Access to object stores, and the size of uploads.
    pub(crate) stores: Stores,
    pub(crate) upload: Option<Uploads>,
    /// The checks before large allocations.
    pub(crate) watch: Watch,
}

/// Uploads of an output to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uploads {
    /// Bytes of a part.
    pub(crate) part: usize,
    /// Whether every writer uploads an object of its own.
    pub(crate) many: bool,
}

impl OutputOptions {
    /// Returns the file name extension, for generated names.
    pub(crate) fn extension(&self) -> String {
        let format = self.format.extension();
        match self.write.compression.map(Compression::text) {
            Some(Ok(Some((packing, _)))) if matches!(self.format, Format::Csv | Format::Ndjson) => {
                format!("{format}.{}", packing.extension())
            }
            _ => format.to_owned(),
        }
    }
}

#[cfg(test)]
impl OutputOptions {
    /// The defaults of a format.
    pub(crate) fn new(format: Format) -> Self {
        Self {
            write: WriteOptions::default(),
            format,
            sorting: Vec::new(),
            row_group_bytes: 16 << 20,
            page_bytes: 512 << 10,
            columns_in_turn: false,
            page_index: true,
            bloom_filters: Vec::new(),
            long_rows: false,
            as_usual: true,
            csv: CsvOptions::default(),
            stores: Stores::default(),
            upload: None,
            watch: Watch::default(),
        }
    }
}

/// Returns the error of an output in a format that windrow only reads.
pub(crate) fn not_written(format: Format) -> Error {
    let names = Format::WRITTEN.map(Format::name).join(", ");
    Error::usage(format!("{format} is read, and not written; `output_format` is one of {names}"))
}
