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

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::input::source::random::RandomFile;

use super::allowance::Allowance;
use super::chosen::Chosen;
use super::inside::{Inside, longest_of_dictionary};
use super::leaf::Leaf;
use super::pages::{Kind, Page, Pages, rows_of_index};

/// Bytes of values decoded at a time.
pub(super) const BATCH_BYTES: u64 = 2 << 20;

/// Minimum bytes of an unusual page. Writers close a page at 1 MiB, or a little later for some
/// values; a longer page has long values, or many.
const FAT: u64 = 3 << 19;

/// Chunks below this size have no significant page.
const SMALL_CHUNK: u64 = 64 << 10;

/// Chunks of lists below this size make at worst one record batch.
const SMALL_LISTS: u64 = 8 << 20;

/// Assumed bytes of a string if a dictionary hides the lengths.
const STRING_GUESS: u64 = 32;

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

/// Numbers of rows and their width, from the first row of the group on.
type Spans = Vec<(u64, u64)>;

/// The bytes of the longest row, and a range of rows that contains the row.
type Longest = (u64, Range<u64>);

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
        let dictionary = match chunk.dictionary_page_offset() {
            None => 0,
            Some(_) => most(false, &|page| page.plain, plain),
        };
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
        let index = if repeated && data.iter().any(|page| page.rows.is_none()) {
            rows_of_index(file, chunk, total).filter(|rows| rows.len() == data.len())
        } else {
            None
        };
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

/// The rows of a page.
enum Part<'a> {
    /// The lengths of the rows are known.
    Inside(Inside),
    /// The rows, if their number is known, are assumed to be equal, except for a row of so many
    /// bytes at most.
    Page(&'a Page, Option<u64>, u64),
}

impl Part<'_> {
    fn rows(&self) -> Option<u64> {
        match self {
            Self::Inside(inside) => Some(inside.spans().map(|span| span.rows).sum()),
            Self::Page(_, rows, _) => *rows,
        }
    }

    fn values(&self) -> u64 {
        match self {
            Self::Inside(_) => 0,
            Self::Page(page, ..) => page.values,
        }
    }
}

/// Lengths of the decoded values of a chunk.
struct Widths {
    /// Bytes per value besides a string's bytes: levels, and an offset or a value of fixed width.
    fixed: u64,
    /// Whether values are byte strings.
    strings: bool,
    /// Mean bytes of a string, from the footer.
    mean: u64,
    /// Whether the footer has the bytes of all values.
    exact: bool,
    /// Assumed bytes of a dictionary value, and bytes of the longest one.
    of_dictionary: Option<u64>,
    longest_of_dictionary: u64,
    /// Decoded bytes per 100 stored bytes, because values may share prefixes in pages; decoded
    /// bytes of all values.
    stretch: u64,
    bytes: u64,
}

impl Widths {
    fn of(chunk: &ColumnChunkMetaData) -> Self {
        let column = chunk.column_descr();
        let values = size(chunk.num_values()).max(1);
        let levels =
            2 * u64::from(column.max_rep_level() > 0) + 2 * u64::from(column.max_def_level() > 0);
        let (value, strings) = match chunk.column_type() {
            Type::BOOLEAN => (1, false),
            Type::INT32 | Type::FLOAT => (4, false),
            Type::INT64 | Type::DOUBLE | Type::INT96 => (8, false),
            // A decimal of few bytes takes 16 bytes in an array.
            Type::FIXED_LEN_BYTE_ARRAY => (size(column.type_length().into()).max(16), false),
            // A view takes 16 bytes, an offset 4.
            Type::BYTE_ARRAY => (16, true),
        };
        let plain_mean = size(chunk.uncompressed_size()) / values;
        let exact = chunk.unencoded_byte_array_data_bytes();
        let mean = match exact {
            Some(bytes) => size(bytes) / values,
            None if chunk.dictionary_page_offset().is_some() => plain_mean.max(STRING_GUESS),
            None => plain_mean,
        };
        Self {
            fixed: value + 1 + levels,
            strings,
            mean,
            exact: exact.is_some(),
            of_dictionary: None,
            longest_of_dictionary: 0,
            stretch: 100,
            bytes: exact.map_or(0, size),
        }
    }

    /// Returns whether values, or lists, can differ in length.
    fn varies(&self, repeated: bool) -> bool {
        self.strings || repeated
    }

    /// Records the page of the dictionary. The values are inspected if the page `fits`.
    fn dictionary(
        &mut self,
        file: &Arc<RandomFile>,
        chunk: &ColumnChunkMetaData,
        page: &Page,
        fits: bool,
    ) {
        if !self.strings {
            return;
        }
        let mean = (page.plain / page.values.max(1)).max(if self.exact { self.mean } else { 0 });
        // Half of the longest value: a batch with only longest values then takes at most twice its
        // limit.
        let inside = if fits { longest_of_dictionary(file, chunk, page) } else { None };
        let longest = inside.unwrap_or(page.plain);
        self.of_dictionary = Some(mean.max(longest / 2));
        self.longest_of_dictionary = longest;
    }

    /// Returns the bytes of the longest dictionary value in `page`.
    fn longest_of_dictionary(&self, page: &Page) -> u64 {
        let of_indexes = page.kind == Kind::Data { of_indexes: true };
        if of_indexes { self.longest_of_dictionary } else { 0 }
    }

    /// Records how far values share prefixes.
    fn stretch(&mut self, data: &[&Page]) {
        let of_indexes = |page: &&&Page| page.kind == Kind::Data { of_indexes: true };
        if self.strings && self.exact && !data.iter().any(|page| of_indexes(&page)) {
            let plain: u64 = data.iter().map(|page| page.plain).sum();
            self.stretch = scale(100, self.bytes, plain).max(100);
        }
    }

    /// Returns the spans of `parts`, which have `total` rows, and the bytes and place of the longest
    /// row.
    fn spans(&self, parts: Vec<Part<'_>>, total: u64) -> (Spans, Longest) {
        let known: u64 = parts.iter().filter_map(Part::rows).sum();
        let unknown = parts.iter().filter(|part| part.rows().is_none());
        let values = unknown.map(Part::values).sum();
        let rest = total.saturating_sub(known);
        let (mut at, mut longest) = (0, (0, 0..total));
        let mut spans = Vec::with_capacity(parts.len());
        let mut add = |rows: u64, width: u64, most: u64| {
            if most > longest.0 {
                longest = (most, at..at + rows.max(1));
            }
            at += rows;
            spans.push((rows, width));
        };
        for part in parts {
            match part {
                Part::Inside(inside) => {
                    inside.spans().for_each(|span| add(span.rows, span.width(), span.longest));
                }
                Part::Page(page, rows, most) => {
                    let rows = rows.unwrap_or_else(|| scale(rest, page.values, values));
                    let width = self.in_row(page.values, rows, Some(page));
                    add(rows, width, most.max(width).max(self.longest_of_dictionary(page)));
                }
            }
        }
        (spans, longest)
    }

    /// Returns the mean bytes of a value of `page`, besides the fixed bytes.
    fn in_page(&self, page: &Page) -> u64 {
        match (self.strings, page.kind) {
            (false, _) => 0,
            (true, Kind::Data { of_indexes: true }) => self.of_dictionary.unwrap_or(self.mean),
            (true, _) => scale(page.plain, self.stretch, 100) / page.values.max(1),
        }
    }

    /// Returns the bytes of a row with a share of the `values` of `page`, or of the whole chunk.
    fn in_row(&self, values: u64, rows: u64, page: Option<&Page>) -> u64 {
        let mean = if self.strings { self.mean } else { 0 };
        let value = page.map_or(mean, |page| self.in_page(page));
        scale(self.fixed + value, values, rows.max(1)).max(1)
    }
}

/// Returns the average decoded bytes of a row in some column chunks of `group`, from the footer.
pub(super) fn decoded_row<'a>(
    group: &RowGroupMetaData,
    chunks: impl Iterator<Item = &'a ColumnChunkMetaData>,
) -> u64 {
    let rows = size(group.num_rows());
    let width = |chunk: &ColumnChunkMetaData| {
        Widths::of(chunk).in_row(size(chunk.num_values()), rows, None)
    };
    chunks.map(width).fold(0, u64::saturating_add)
}

/// Converts a size or a count of the footer. A negative number, reported elsewhere as damage,
/// becomes 0.
pub(super) fn size(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Returns `whole * part / of`, without overflow.
pub(super) fn scale(whole: u64, part: u64, of: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(part) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}
