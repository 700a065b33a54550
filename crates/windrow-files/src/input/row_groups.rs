//! Unmodified row groups of a Parquet file, to pass on to another file.

use std::ops::Range;

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::ChunkReader;

use crate::input::source::random::RandomFile;

/// A footer and its Arrow schema.
pub(crate) type Footer = ArrowReaderMetadata;

/// An open file, its footer with all statistics, and its page index.
pub(crate) struct RowGroups {
    pub(super) file: RandomFile,
    /// The footer.
    pub(crate) footer: Footer,
    /// Whether copies have the Bloom filters of the file.
    pub(super) has_bloom_filters: bool,
}

/// Returns the bytes of a column chunk in its file.
pub(crate) fn bytes_of(chunk: &ColumnChunkMetaData) -> Range<u64> {
    let (start, length) = chunk.byte_range();
    start..start.saturating_add(length)
}

impl RowGroups {
    /// Returns the metadata of a row group.
    pub(crate) fn group(&self, index: usize) -> &RowGroupMetaData {
        self.metadata().row_group(index)
    }

    /// Announces the copy of a row group: an object is then fetched in few requests.
    pub(crate) fn announce(&self, index: usize) {
        let ranges: Vec<_> = self.group(index).columns().iter().map(bytes_of).collect();
        self.file.hold(&ranges, ranges.iter().map(|range| range.end - range.start).sum());
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> &(impl ChunkReader + use<>) {
        &self.file
    }

    /// Returns the column chunks of a row group, in the form in which a writer describes chunks.
    ///
    /// # Errors
    /// For damaged Bloom filters.
    pub(crate) fn chunks(&self, index: usize) -> impl Iterator<Item = Result<ColumnCloseResult>> {
        let (metadata, group) = (self.metadata(), self.group(index));
        group.columns().iter().enumerate().map(move |(place, chunk)| {
            let column_index = metadata.column_index().map(|all| all[index][place].clone());
            let bloom_filter = match self.has_bloom_filters {
                true => Sbbf::read_from_column_chunk(chunk, &self.file)?,
                false => None,
            };
            Ok(ColumnCloseResult {
                bytes_written: chunk.compressed_size().unsigned_abs(),
                rows_written: group.num_rows().unsigned_abs(),
                metadata: chunk.clone(),
                bloom_filter,
                column_index: column_index.filter(|pages| *pages != ColumnIndexMetaData::NONE),
                offset_index: metadata.offset_index().map(|all| all[index][place].clone()),
            })
        })
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.footer.metadata()
    }
}
