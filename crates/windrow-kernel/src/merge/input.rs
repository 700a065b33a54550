//! Inputs and output of merges: rows of one length, or rows of any length with their starts.
//!
//! ```text
//! Strided   | row | row | row |         row i starts at i * stride
//! Varying   | row | row    | row |      row i starts at starts[i], the last entry is the end
//! Target    | rows written already | free | spare |
//! ```
//!
//! The first bytes of a row are its body, which is compared. The `tail` after the body is a diff, a
//! tombstone or nothing.

use super::rows::Stretch;

/// Called with sums that overflow: the compared bytes of the row, and 1 or -1 for the 2^64 that the
/// sum lacks. `None` if equal rows are not added up.
pub type Wrapped<'a> = Option<&'a mut dyn FnMut(&[u8], i64)>;

/// Sorted rows.
pub(super) trait Sorted<'a>: Copy {
    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns a row.
    fn row(&self, index: usize) -> &'a [u8];

    /// Returns the number of bytes at the end of rows that are not compared.
    fn tail(&self) -> usize;

    /// Returns the length of all rows, if they have one length.
    fn stride(&self) -> Option<usize>;

    /// Returns the lengths of the shortest and the longest row. Panics unless the rows lie within
    /// their bytes.
    fn lengths(&self) -> (usize, usize);

    /// Returns the rows as a stretch for loops, [`Stretch::NONE`] if there are no rows.
    fn stretch(&self) -> Stretch;

    /// Returns the compared bytes of a row.
    fn body(&self, index: usize) -> &'a [u8] {
        let row = self.row(index);
        &row[..row.len() - self.tail()]
    }

    /// Returns the bodies of the first and the last row. Panics if there are no rows.
    fn ends(&self) -> (&'a [u8], &'a [u8]) {
        (self.body(0), self.body(self.len() - 1))
    }
}

/// Rows of one length, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    pub bytes: &'a [u8],
    /// Bytes of a row.
    pub stride: usize,
    /// Bytes at the start of a row that are compared.
    pub body: usize,
}

impl<'a> Sorted<'a> for Strided<'a> {
    fn len(&self) -> usize {
        self.bytes.len() / self.stride
    }

    fn row(&self, index: usize) -> &'a [u8] {
        &self.bytes[index * self.stride..][..self.stride]
    }

    fn tail(&self) -> usize {
        self.stride - self.body
    }

    fn stride(&self) -> Option<usize> {
        Some(self.stride)
    }

    fn lengths(&self) -> (usize, usize) {
        (self.stride, self.stride)
    }

    fn stretch(&self) -> Stretch {
        match self.len() {
            0 => Stretch::NONE,
            len => {
                let cursor = |index: usize| self.row(index).as_ptr();
                Stretch { first: cursor(0), last: cursor(len - 1), bytes: std::ptr::null() }
            }
        }
    }
}

/// Rows and their starts; the last entry is the end.
#[derive(Clone, Copy, Debug)]
pub struct Varying<'a> {
    pub bytes: &'a [u8],
    pub starts: &'a [u32],
    /// Bytes at the end of rows that are not compared.
    pub tail: usize,
}

impl<'a> Sorted<'a> for Varying<'a> {
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    fn tail(&self) -> usize {
        self.tail
    }

    fn stride(&self) -> Option<usize> {
        None
    }

    fn lengths(&self) -> (usize, usize) {
        let (mut ordered, mut shortest, mut longest) = (true, u32::MAX, 0);
        for (start, end) in self.starts.iter().zip(&self.starts[1..]) {
            ordered &= start <= end;
            shortest = shortest.min(end.wrapping_sub(*start));
            longest = longest.max(end.wrapping_sub(*start));
        }
        assert!(ordered && self.starts[self.len()] as usize <= self.bytes.len(), "rows in bytes");
        (shortest as usize, longest as usize)
    }

    fn stretch(&self) -> Stretch {
        match self.len() {
            0 => Stretch::NONE,
            len => {
                let cursor = |index: usize| self.starts[index..].as_ptr().cast();
                Stretch { first: cursor(0), last: cursor(len - 1), bytes: self.bytes.as_ptr() }
            }
        }
    }
}

/// An output of rows and their ends.
pub struct Target<'a> {
    pub bytes: &'a mut [u8],
    /// Bytes written so far.
    pub used: usize,
    /// Ends of rows if lengths vary, one entry more than rows; else empty.
    pub ends: &'a mut Vec<u32>,
    /// Bytes at the end of `bytes` reserved for each row.
    pub spare: usize,
}

impl Target<'_> {
    /// Returns how many more rows of `len` bytes fit.
    pub(super) fn room(&self, len: usize) -> usize {
        let spare = self.ends.len().saturating_sub(1) * self.spare;
        let left = self.bytes.len().min(u32::MAX as usize).saturating_sub(self.used + spare);
        left / (len + self.spare).max(1)
    }
}

/// Returns the length of the common prefix of `a` and `b`.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "rows in bytes")]
    fn rows_that_end_behind_their_bytes_are_none() {
        Varying { bytes: &[0; 9], starts: &[0, 5, 10], tail: 0 }.lengths();
    }

    #[test]
    #[should_panic(expected = "rows in bytes")]
    fn rows_that_end_before_they_start_are_none() {
        Varying { bytes: &[0; 9], starts: &[0, 5, 4], tail: 0 }.lengths();
    }

    #[test]
    fn rows_have_room_beside_what_is_to_be_spared() {
        for (len, used, rows, spare, expected) in [
            (100, 0, 0, 0, 10),
            (100, 91, 0, 0, 0),
            (100, 90, 1, 0, 1),
            (100, 30, 3, 4, (100 - 30 - 12) / 14),
            (100, 90, 3, 4, 0),
            (0, 0, 0, 4, 0),
        ] {
            let mut ends = vec![0; rows + 1];
            let target = Target { bytes: &mut vec![0; len], used, ends: &mut ends, spare };
            assert_eq!(target.room(10), expected, "{len} bytes, {used} used, {rows} rows");
        }
        assert_eq!((common(b"abc", b"abd"), common(b"ab", b"abd"), common(b"", b"x")), (2, 2, 0));
    }
}
