//! Memory to decode a column of a Parquet row group.

use parquet::basic::PageType;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};

use super::widths::{scale, size};

/// Memory to decode a leaf column, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The dictionary, before compression.
    pub(super) dictionary: u64,
    /// The largest data page, before compression.
    pub(super) page: u64,
    /// The largest page in the file.
    pub(super) packed: u64,
}

impl Leaf {
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            dictionary: self.dictionary.max(other.dictionary),
            page: self.page.max(other.page),
            packed: self.packed.max(other.packed),
        }
    }

    /// Limits the estimate by the footer's count of pages, under two assumptions: a page has at
    /// most twice the mean length, and the dictionary compresses at most twice as well as the whole
    /// chunk.
    pub(super) fn counted(mut self, chunk: &ColumnChunkMetaData) -> Self {
        let (plain, packed) = (size(chunk.uncompressed_size()), size(chunk.compressed_size()));
        let is_data = |stats: &&PageEncodingStats| {
            matches!(stats.page_type, PageType::DATA_PAGE | PageType::DATA_PAGE_V2)
        };
        let counts = chunk.page_encoding_stats().into_iter().flatten();
        let pages: u64 = counts.filter(is_data).map(|stats| size(i64::from(stats.count))).sum();
        if pages > 0 {
            self.page = self.page.min(plain.saturating_mul(2).div_ceil(pages));
            self.packed = self.packed.min(packed.saturating_mul(2).div_ceil(pages));
        }
        let dictionary = chunk.dictionary_page_offset();
        let dictionary = dictionary.and_then(|at| chunk.data_page_offset().checked_sub(at));
        if let Some(dictionary @ 1..) = dictionary {
            let unpacked = scale(plain.saturating_mul(2), size(dictionary), packed);
            self.dictionary = self.dictionary.min(unpacked);
            self.packed = self.packed.max(size(dictionary));
        }
        self
    }
}
