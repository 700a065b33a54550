//! A range of encoded rows.

/// Consecutive rows, and all bytes after the rows.
pub(super) enum Stretch<'a> {
    /// The first `count` rows, of `stride` bytes each.
    Strided { bytes: &'a [u8], stride: usize, count: usize },
    /// Rows from `start` on, ending at `ends`.
    Ended { bytes: &'a [u8], start: usize, ends: &'a [u32] },
}

impl Stretch<'_> {
    /// Returns the number of rows, and of their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        match *self {
            Self::Strided { stride, count, .. } => (count, stride * count),
            Self::Ended { start, ends, .. } => {
                (ends.len(), ends.last().map_or(0, |&end| end as usize - start))
            }
        }
    }
}
