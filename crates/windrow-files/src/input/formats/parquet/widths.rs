//! Lengths of the decoded values of a column chunk: from the footer, a page, or the values in it.
//!
//! ```text
//! footer            mean of all values
//! page header       mean of a page's values
//! inside a page     spans of rows of about one length
//! ```
//! Invariant: a width includes levels, and the offset or view of a string.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Type;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::input::source::random::RandomFile;

use super::inside::{Inside, longest_of_dictionary};
use super::pages::{Kind, Page};

/// Assumed bytes of a string if a dictionary hides the lengths.
const STRING_GUESS: u64 = 32;

/// Numbers of rows and their width, from the first row of the group on.
pub(super) type Spans = Vec<(u64, u64)>;

/// The bytes of the longest row, and a range of rows that contains the row.
pub(super) type Longest = (u64, Range<u64>);

/// The rows of a page.
pub(super) enum Part<'a> {
    /// The lengths of the rows are known.
    Inside(Inside),
    /// The rows, if their number is known, are assumed to be equal, except for a row of so many
    /// bytes at most.
    Page(&'a Page, Option<u64>, u64),
}

impl Part<'_> {
    pub(super) fn rows(&self) -> Option<u64> {
        match self {
            Self::Inside(inside) => Some(inside.spans().map(|span| span.rows).sum()),
            Self::Page(_, rows, _) => *rows,
        }
    }

    pub(super) fn values(&self) -> u64 {
        match self {
            Self::Inside(_) => 0,
            Self::Page(page, ..) => page.values,
        }
    }
}

/// Lengths of the decoded values of a chunk.
pub(super) struct Widths {
    /// Bytes per value besides a string's bytes: levels, and an offset or a value of fixed width.
    pub(super) fixed: u64,
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
    pub(super) fn of(chunk: &ColumnChunkMetaData) -> Self {
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
    pub(super) fn varies(&self, repeated: bool) -> bool {
        self.strings || repeated
    }

    /// Records the page of the dictionary. The values are inspected if the page `fits`.
    pub(super) fn dictionary(
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
    pub(super) fn longest_of_dictionary(&self, page: &Page) -> u64 {
        let of_indexes = page.kind == Kind::Data { of_indexes: true };
        if of_indexes { self.longest_of_dictionary } else { 0 }
    }

    /// Records how far values share prefixes.
    pub(super) fn stretch(&mut self, data: &[&Page]) {
        let of_indexes = |page: &&&Page| page.kind == Kind::Data { of_indexes: true };
        if self.strings && self.exact && !data.iter().any(|page| of_indexes(&page)) {
            let plain: u64 = data.iter().map(|page| page.plain).sum();
            self.stretch = scale(100, self.bytes, plain).max(100);
        }
    }

    /// Returns the spans of `parts`, which have `total` rows, and the bytes and place of the longest
    /// row.
    pub(super) fn spans(&self, parts: Vec<Part<'_>>, total: u64) -> (Spans, Longest) {
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
    pub(super) fn in_page(&self, page: &Page) -> u64 {
        match (self.strings, page.kind) {
            (false, _) => 0,
            (true, Kind::Data { of_indexes: true }) => self.of_dictionary.unwrap_or(self.mean),
            (true, _) => scale(page.plain, self.stretch, 100) / page.values.max(1),
        }
    }

    /// Returns the bytes of a row with a share of the `values` of `page`, or of the whole chunk.
    pub(super) fn in_row(&self, values: u64, rows: u64, page: Option<&Page>) -> u64 {
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
