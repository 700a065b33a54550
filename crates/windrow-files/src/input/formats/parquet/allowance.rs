//! The effort of looking into the pages of a row group, for planning and for reading.

use crate::limits::Ceiling;

use super::pages::Page;

/// Maximum bytes, over all pages, of values read to measure their lengths. Bounds the time.
const MOST_LOOKED_INTO: u64 = 256 << 20;

/// Remaining allowance for walking over pages.
pub(super) struct Allowance {
    /// Number of pages.
    pub(super) pages: usize,
    /// Bytes of pages with values to be read.
    pub(super) looked_into: u64,
    /// Maximum bytes of one such page, stored and decompressed together.
    fits: u64,
    /// Bytes up to which a page of values is not inspected.
    pub(super) negligible: u64,
    /// Whether the rows of lists may be counted page by page.
    pub(super) lists: bool,
    /// Whether no page is inspected.
    pub(super) footers: bool,
}

impl Allowance {
    /// Returns the allowance for planning: only a part of a long file is inspected.
    pub(super) fn to_plan(ceiling: Ceiling) -> Self {
        let fits = ceiling.left();
        Self { pages: 4096, fits, lists: false, ..Self::to_read(ceiling) }
    }

    /// Returns the allowance for reading a row group: all pages are inspected.
    pub(super) fn to_read(ceiling: Ceiling) -> Self {
        Self {
            pages: usize::MAX,
            looked_into: MOST_LOOKED_INTO,
            fits: u64::MAX,
            negligible: ceiling.negligible,
            lists: true,
            footers: false,
        }
    }

    /// Returns the allowance if each page would be a request: only the footer is used.
    pub(super) fn of_footers() -> Self {
        Self { pages: 0, looked_into: 0, fits: 0, negligible: 0, lists: false, footers: true }
    }

    /// Returns whether memory suffices for the values of `page`.
    pub(super) fn fits(&self, page: &Page) -> bool {
        page.plain.saturating_add(page.packed()) <= self.fits
    }
}
