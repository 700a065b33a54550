//! Row lengths of a Parquet row group, by position, and the memory for decoding.
//!
//! A footer has sums. The sums do not show rows of 20 KB after many short rows, nor a dictionary
//! that compresses to a hundredth. The page headers show both:
//!
//! ```text
//! leaf a  [page: 20000 rows, 160 KB        ][page: 20000 rows, 160 KB   ]
//! leaf b  [page: 9000 rows, 1 MB][page: 9000 rows, 1 MB][50 rows, 1 MB][50 rows, 1 MB]..
//! steps   |      128 bytes a row                       |      20 KB a row
//! ```
//! A row group is read in few [segments](Segment), one for each kind of rows. Each segment has its
//! own number of rows per batch: a few long rows do not make all batches small.
//!
//! Known limits. Rows within a page are assumed to be equal, unless the page is [`FAT`], not small
//! beside the memory limit, and its values can be [inspected](Inside::of). For a list in pages of
//! version 1 without an index, the rows of a page are known only from reading the page, which
//! happens when the row group is read. The positions of a dictionary's values are unknown.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::input::source::random::RandomFile;

use super::allowance::Allowance;
use super::chosen::Chosen;
use super::inside::{BATCH_BYTES, Inside};
use super::leaf::Leaf;
use super::pages::{Kind, Page, Pages, rows_of_index};
use super::widths::{Longest, Part, Spans, Widths, size};

/// Minimum bytes of an unusual page. Writers close a page at 1 MiB, or a little later for some
/// values; a longer page has long values, or many.
const FAT: u64 = 3 << 19;

/// Chunks below this size have no significant page.
const SMALL_CHUNK: u64 = 64 << 10;

/// Chunks of lists below this size make at worst one record batch.
const SMALL_LISTS: u64 = 8 << 20;

/// Maximum number of segments of a row group: each segment opens the columns anew.
const MOST_SEGMENTS: usize = 8;

/// Rows that are read in batches of `batch_rows`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) rows: Range<u64>,
    pub(super) batch_rows: u64,
}

/// The facts in the pages of a row group.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) leaves: Vec<Leaf>,
    rows: u64,
    /// The start of each run of rows of one width, and the mean bytes of a decoded row; ascending.
    steps: Vec<(u64, u64)>,
    /// Bytes of the longest row, as far as known, and a range of rows that contains the longest
    /// row.
    pub(super) longest: u64,
    pub(super) longest_in: Range<u64>,
    /// Whether all pages were inspected as thoroughly as for reading. If so, reading inspects no
    /// page.
    is_whole: bool,
}

/// The facts in the pages of a chunk.
struct Chunk {
    leaf: Leaf,
    is_whole: bool,
    spans: Spans,
    longest: Longest,
}

impl Profile {
    pub(super) fn of(
        file: &Arc<RandomFile>,
        group: &RowGroupMetaData,
        chosen: &Chosen,
        allowance: &mut Allowance,
    ) -> Self {
        let rows = size(group.num_rows());
        let mut leaves = Vec::with_capacity(group.num_columns());
        let mut changes: Vec<(u64, i128)> = Vec::new();
        let (mut longest, mut longest_in, mut most) = (0_u64, 0..rows, 0);
        let mut is_whole = true;
        for (place, chunk) in group.columns().iter().enumerate() {
            if !chosen.reads(place) {
                leaves.push(Leaf::default());
                continue;
            }
            let chunk = Chunk::of(file, group, chunk, allowance);
            leaves.push(chunk.leaf);
            is_whole &= chunk.is_whole;
            longest = longest.saturating_add(chunk.longest.0);
            if chunk.longest.0 > most {
                (most, longest_in) = chunk.longest;
            }
            let (mut at, mut before) = (0, 0);
            for (rows, width) in chunk.spans {
                if width != before {
                    changes.push((at, i128::from(width) - i128::from(before)));
                    before = width;
                }
                at += rows;
            }
        }
        changes.sort_unstable_by_key(|(at, _)| *at);
        let mut steps: Vec<(u64, u64)> = vec![(0, 1)];
        let mut width = 0;
        for (at, change) in changes.into_iter().filter(|(at, _)| *at < rows.max(1)) {
            width += change;
            let width = u64::try_from(width.max(1)).unwrap_or(u64::MAX);
            match steps.last_mut() {
                Some(last) if last.0 == at => last.1 = width,
                _ => steps.push((at, width)),
            }
        }
        let widest = steps.iter().map(|(_, width)| *width).max().unwrap_or(0);
        Self { leaves, rows, steps, longest: longest.max(widest), longest_in, is_whole }
    }

    /// Returns the part to keep until the row group is read; `None` if reading inspects the pages
    /// again.
    pub(super) fn kept(self) -> Option<Self> {
        self.is_whole.then(|| Self { leaves: Vec::new(), ..self })
    }

    /// Returns the segments for reading the rows, at most `most` rows per batch.
    pub(super) fn segments(&self, most: usize) -> Vec<Segment> {
        let most = (most as u64).max(1);
        let fit = |width: u64| (BATCH_BYTES / width.max(1)).clamp(1, most);
        let ends = self.steps.iter().skip(1).map(|(at, _)| *at).chain([self.rows]);
        let mut segments: Vec<Segment> = Vec::new();
        for (&(start, width), end) in self.steps.iter().zip(ends) {
            let batch_rows = fit(width);
            match segments.last_mut() {
                // Rows of about the same length.
                Some(last) if last.batch_rows.ilog2() == batch_rows.ilog2() => {
                    last.rows.end = end;
                    last.batch_rows = last.batch_rows.min(batch_rows);
                }
                _ => segments.push(Segment { rows: start..end, batch_rows }),
            }
        }
        let batches = |segment: &Segment| {
            (segment.rows.end - segment.rows.start).div_ceil(segment.batch_rows)
        };
        let joined = |a: &Segment, b: &Segment| Segment {
            rows: a.rows.start..b.rows.end,
            batch_rows: a.batch_rows.min(b.batch_rows),
        };
        // Opening the columns again costs about as much as some batches.
        let cost = |pair: &[Segment]| {
            let apart = batches(&pair[0]) + batches(&pair[1]);
            batches(&joined(&pair[0], &pair[1])).saturating_sub(apart)
        };
        while let Some((place, cost)) =
            segments.windows(2).map(cost).enumerate().min_by_key(|(_, cost)| *cost)
            && (cost <= 8 || segments.len() > MOST_SEGMENTS)
        {
            segments[place] = joined(&segments[place], &segments[place + 1]);
            segments.remove(place + 1);
        }
        segments
    }

    /// Returns the bytes of the largest record batch, if the rows are read in `segments`.
    pub(super) fn batch_bytes(&self, segments: &[Segment]) -> u64 {
        let widest = |segment: &Segment| {
            let ends = self.steps.iter().skip(1).map(|(at, _)| *at).chain([self.rows]);
            let inside =
                self.steps.iter().zip(ends).filter(|((start, _), end)| {
                    *start < segment.rows.end && *end > segment.rows.start
                });
            inside.map(|((_, width), _)| *width).max().unwrap_or(1)
        };
        let bytes = segments.iter().map(|segment| {
            let rows = segment.batch_rows.min(segment.rows.end - segment.rows.start);
            let batch = rows.saturating_mul(widest(segment));
            // A batch grows by doubling, but a long row moves without a copy.
            match rows {
                0 | 1 => batch.max(self.longest),
                _ => batch.saturating_mul(2).max(batch.saturating_add(self.longest)),
            }
        });
        bytes.max().unwrap_or(0)
    }
}

impl Chunk {
    fn of(
        file: &Arc<RandomFile>,
        group: &RowGroupMetaData,
        chunk: &ColumnChunkMetaData,
        allowance: &mut Allowance,
    ) -> Self {
        if allowance.footers {
            let told = Self::from_footer(group, chunk, None);
            return Self { leaf: told.leaf.counted(chunk), is_whole: false, ..told };
        }
        let plain = size(chunk.uncompressed_size());
        let has_dictionary = chunk.dictionary_page_offset().is_some();
        if plain <= SMALL_CHUNK && !has_dictionary {
            return Self::from_footer(group, chunk, None);
        }
        // The dictionary, and at least one page.
        let most = allowance.pages.max(2);
        let pages: Vec<Page> = Pages::of(file, chunk).take(most).collect();
        allowance.pages = allowance.pages.saturating_sub(pages.len());
        let values: u64 = pages.iter().filter(|page| page.is_data()).map(|page| page.values).sum();
        match values < size(chunk.num_values()) {
            // More pages than the allowance, or damage.
            true => Self { is_whole: false, ..Self::from_footer(group, chunk, Some(&pages)) },
            false => Self::from_pages(file, group, chunk, &pages, allowance),
        }
    }

    /// Estimates a chunk from the footer, and from some of its pages. All rows are assumed to have
    /// the mean width, and all pages at most twice the length of these pages.
    fn from_footer(
        group: &RowGroupMetaData,
        chunk: &ColumnChunkMetaData,
        pages: Option<&[Page]>,
    ) -> Self {
        let (rows, plain) = (size(group.num_rows()), size(chunk.uncompressed_size()));
        let packed = size(chunk.compressed_size());
        let width = Widths::of(chunk).in_row(size(chunk.num_values()), rows, None);
        let most = |data: bool, bytes: &dyn Fn(&Page) -> u64, all: u64| {
            let pages = pages.into_iter().flatten();
            let of_kind = |page: &&Page| page.is_data() == data;
            pages.filter(of_kind).map(bytes).max().map_or(all, |most| most.min(all))
        };
        let has_dictionary = chunk.dictionary_page_offset().is_some();
        let dictionary = if has_dictionary { most(false, &|page| page.plain, plain) } else { 0 };
        let leaf = Leaf {
            dictionary,
            page: most(true, &|page| 2 * page.plain, plain),
            packed: most(true, &|page| 2 * page.packed(), packed),
        };
        Self { leaf, is_whole: true, spans: vec![(rows, width)], longest: (width, 0..rows) }
    }

    fn from_pages(
        file: &Arc<RandomFile>,
        group: &RowGroupMetaData,
        chunk: &ColumnChunkMetaData,
        pages: &[Page],
        allowance: &mut Allowance,
    ) -> Self {
        let mut leaf = Leaf::default();
        let mut widths = Widths::of(chunk);
        let is_packed = chunk.compression() != Compression::UNCOMPRESSED;
        for page in pages {
            // An uncompressed page has no second copy.
            leaf.packed = leaf.packed.max(if is_packed { page.packed() } else { 0 });
            match page.kind {
                Kind::Dictionary => {
                    leaf.dictionary = leaf.dictionary.max(page.plain);
                    widths.dictionary(file, chunk, page, allowance.fits(page));
                }
                _ => leaf.page = leaf.page.max(page.plain),
            }
        }
        let data: Vec<&Page> = pages.iter().filter(|page| page.is_data()).collect();
        widths.stretch(&data);
        let repeated = chunk.column_descr().max_rep_level() > 0;
        let total = size(group.num_rows());
        let is_needed = repeated && data.iter().any(|page| page.rows.is_none());
        let index = is_needed.then(|| rows_of_index(file, chunk, total)).flatten();
        let index = index.filter(|rows| rows.len() == data.len());
        let long_lists = size(chunk.uncompressed_size()) > SMALL_LISTS;
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(data.len());
        let mut is_whole = true;
        for (place, page) in data.iter().enumerate() {
            let known = page.rows.or_else(|| Some(*index.as_ref()?.get(place)?));
            let known = if repeated { known } else { Some(page.values) };
            let decoded = page.plain.max(page.values.saturating_mul(widths.fixed));
            let is_fat = match repeated {
                true => decoded > FAT,
                false => page.plain > FAT.max(allowance.negligible),
            };
            let is_fat = is_fat && known != Some(1) && page.values > 1;
            let matters = widths.varies(repeated) && (is_fat || known.is_none() && long_lists);
            let look = matters
                && (is_fat || allowance.lists)
                && page.plain <= allowance.looked_into
                && allowance.fits(page);
            is_whole &= look || !matters;
            let inside = if look {
                allowance.looked_into -= page.plain;
                Inside::of(file, chunk, page, widths.fixed, widths.in_page(page))
            } else {
                None
            };
            parts.push(match inside {
                Some(inside) => Part::Inside(inside),
                // The page may consist of one value.
                None if matters && !allowance.fits(page) => Part::Page(page, known, page.plain),
                None => Part::Page(page, known, 0),
            });
        }
        let (spans, longest) = widths.spans(parts, total);
        Self { leaf, is_whole, spans, longest }
    }
}
