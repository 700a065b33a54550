//! What an open Parquet reader holds in memory, told from the footer and the headers of pages.
//!
//! For each leaf column the reader holds a page as it was before compression and the values of the dictionary, and
//! the values of the record batch being built, which grow by doubling. One page at a time is also there
//! compressed, and one dictionary at a time also as its page.
//!
//! ```text
//!  held = footer + batch + max over leaves(compressed page) + max over leaves(dictionary)
//!       + sum over leaves(page + dictionary + codec + decoder)
//! ```

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::chosen::Chosen;
use super::leaf::Leaf;
use super::profile::{Profile, decoded_row, size};

/// The buffers of the file and the batch reader itself.
const FIXED: u64 = 64 << 10;

/// The reader of a leaf, and its decoder: 1,024 places of a dictionary.
const LEAF: u64 = 5 << 10;
/// As many again, of byte strings.
const WORDS: u64 = 4 << 10;

/// A zstd context for decompression (`ZSTD_estimateDCtxSize()` is 95 KiB), one per leaf.
const ZSTD_CONTEXT: u64 = 128 << 10;

/// What reading any one row group of a file takes, as it is found out group by group.
#[derive(Default)]
pub(super) struct Reader {
    leaves: Vec<Leaf>,
    batch: u64,
    /// Bytes of the longest row, as far as that is known.
    pub(super) longest: u64,
}

impl Reader {
    /// Takes note of a row group that is read in batches of `batch_rows` at the most.
    pub(super) fn note(&mut self, profile: &Profile, batch_rows: usize) {
        self.leaves.resize(self.leaves.len().max(profile.leaves.len()), Leaf::default());
        for (leaf, other) in self.leaves.iter_mut().zip(&profile.leaves) {
            *leaf = leaf.or(*other);
        }
        let segments = profile.segments(batch_rows);
        let mut batch = profile.batch_bytes(&segments);
        if segments.iter().any(|segment| segment.batch_rows == 1) {
            // A batch of one row is gone when the next page is read beside the last.
            batch = batch.max(profile.leaves.iter().map(|leaf| leaf.page).sum());
        }
        self.batch = self.batch.max(batch);
        self.longest = self.longest.max(profile.longest);
    }

    /// The heap that it takes, where the `footer` is read once more.
    pub(super) fn bytes(&self, metadata: &ParquetMetaData, chosen: &Chosen, footer: u64) -> usize {
        let mut held = FIXED.saturating_add(footer).saturating_add(self.batch);
        let group = metadata.row_groups().first();
        let leaves = self.leaves.iter().enumerate();
        for (place, leaf) in leaves.filter(|(place, _)| chosen.reads(*place)) {
            let chunk = group.filter(|group| place < group.num_columns());
            let chunk = chunk.map(|group| group.column(place));
            let codec = match chunk.map(|chunk| chunk.compression()) {
                Some(Compression::ZSTD(_)) => ZSTD_CONTEXT,
                _ => 0,
            };
            let words = match chunk.map(|chunk| chunk.column_type()) {
                Some(Type::BYTE_ARRAY) => WORDS,
                _ => 0,
            };
            let fixed = codec + LEAF + words;
            let read = leaf.page.saturating_add(leaf.dictionary).saturating_add(fixed);
            // INT96 may be read twice at a time.
            let times = match chunk.map(|chunk| chunk.column_type()) {
                Some(Type::INT96) => 2,
                _ => 1,
            };
            held = held.saturating_add(read.saturating_mul(times));
        }
        let most = |bytes: fn(&Leaf) -> u64| self.leaves.iter().map(bytes).max().unwrap_or(0);
        // A dictionary is read before any page of its column.
        let dictionary = most(|leaf| leaf.dictionary.saturating_sub(leaf.page));
        let held = held.saturating_add(most(|leaf| leaf.packed)).saturating_add(dictionary);
        usize::try_from(held).unwrap_or(usize::MAX)
    }
}

/// Bytes of a row of the chosen columns on average, in the row group where that is most: as it is in the file or, where a
/// dictionary makes it shorter there, as it is decoded.
pub(super) fn mean_row(metadata: &ParquetMetaData, chosen: &Chosen) -> usize {
    let row_bytes = |group: &RowGroupMetaData| {
        let chunks = || chosen.chunks(group);
        let written: u64 = chunks().map(|chunk| size(chunk.uncompressed_size())).sum();
        (written / size(group.num_rows()).max(1)).max(decoded_row(group, chunks()))
    };
    let longest = metadata.row_groups().iter().map(row_bytes).max().unwrap_or(0);
    usize::try_from(longest).unwrap_or(usize::MAX)
}
