//! Memory of an open Parquet reader, estimated from the footer and the headers of pages.
//!
//! For each leaf column, the reader holds a decompressed page, the values of the dictionary, and
//! the values of the current record batch, which grow by doubling. In addition, one page at a time
//! is held compressed, and one dictionary at a time as its page.
//!
//! ```text
//!  held = footer + batch + max over leaves(compressed page) + max over leaves(dictionary)
//!       + sum over leaves(page + dictionary + codec + decoder)
//! ```

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::chosen::Chosen;
use super::leaf::Leaf;
use super::profile::Profile;
use super::widths::{decoded_row, size};

/// The buffers of the file and the batch reader itself.
const FIXED: u64 = 64 << 10;

/// The reader of a leaf, and its decoder with 1,024 dictionary indices.
const LEAF: u64 = 5 << 10;
/// The same for byte strings, in addition.
const WORDS: u64 = 4 << 10;

/// A zstd context for decompression (`ZSTD_estimateDCtxSize()` is 95 KiB), one per leaf.
const ZSTD_CONTEXT: u64 = 128 << 10;

/// Memory for reading any row group of a file, collected group by group.
#[derive(Default)]
pub(super) struct Reader {
    leaves: Vec<Leaf>,
    batch: u64,
    /// Bytes of the longest row, as far as known.
    pub(super) longest: u64,
}

impl Reader {
    /// Includes a row group that is read in batches of at most `batch_rows`.
    pub(super) fn note(&mut self, profile: &Profile, batch_rows: usize) {
        self.leaves.resize(self.leaves.len().max(profile.leaves.len()), Leaf::default());
        for (leaf, other) in self.leaves.iter_mut().zip(&profile.leaves) {
            *leaf = leaf.or(*other);
        }
        let segments = profile.segments(batch_rows);
        let mut batch = profile.batch_bytes(&segments);
        if segments.iter().any(|segment| segment.batch_rows == 1) {
            // A batch of one row is released before the next page is read beside the last.
            batch = batch.max(profile.leaves.iter().map(|leaf| leaf.page).sum());
        }
        self.batch = self.batch.max(batch);
        self.longest = self.longest.max(profile.longest);
    }

    /// Returns the heap of the reader, including another read of the `footer`.
    pub(super) fn bytes(&self, metadata: &ParquetMetaData, chosen: &Chosen, footer: u64) -> usize {
        let mut held = FIXED.saturating_add(footer).saturating_add(self.batch);
        let group = metadata.row_groups().first();
        let leaves = self.leaves.iter().enumerate();
        for (place, leaf) in leaves.filter(|(place, _)| chosen.reads(*place)) {
            let chunk = group.filter(|group| place < group.num_columns());
            let chunk = chunk.map(|group| group.column(place));
            let (codec, kind) =
                chunk.map(|chunk| (chunk.compression(), chunk.column_type())).unzip();
            let codec = if matches!(codec, Some(Compression::ZSTD(_))) { ZSTD_CONTEXT } else { 0 };
            let words = if kind == Some(Type::BYTE_ARRAY) { WORDS } else { 0 };
            let fixed = codec + LEAF + words;
            let read = leaf.page.saturating_add(leaf.dictionary).saturating_add(fixed);
            // INT96 may be read by two readers at a time.
            let times = if kind == Some(Type::INT96) { 2 } else { 1 };
            held = held.saturating_add(read.saturating_mul(times));
        }
        let most = |bytes: fn(&Leaf) -> u64| self.leaves.iter().map(bytes).max().unwrap_or(0);
        // A dictionary is read before any page of its column.
        let dictionary = most(|leaf| leaf.dictionary.saturating_sub(leaf.page));
        let held = held.saturating_add(most(|leaf| leaf.packed)).saturating_add(dictionary);
        usize::try_from(held).unwrap_or(usize::MAX)
    }
}

/// Returns the average bytes of a row's needed columns, in the row group with the longest rows: as
/// stored or, if a dictionary shortens the stored form, as decoded.
pub(super) fn mean_row(metadata: &ParquetMetaData, chosen: &Chosen) -> usize {
    let row_bytes = |group: &RowGroupMetaData| {
        let chunks = || chosen.chunks(group);
        let written: u64 = chunks().map(|chunk| size(chunk.uncompressed_size())).sum();
        (written / size(group.num_rows()).max(1)).max(decoded_row(group, chunks()))
    };
    let longest = metadata.row_groups().iter().map(row_bytes).max().unwrap_or(0);
    usize::try_from(longest).unwrap_or(usize::MAX)
}
