//! Places of rows to write or to read.
//!
//! ```text
//! Strided     the first position, and a constant distance between rows
//! Scattered   a cursor per row, and one distance common to all
//! ```

use crate::cpu::compiled_for;

/// The places of the columns in the rows of a block.
pub trait Places: Copy {
    /// Returns the first byte of the columns of row `row`.
    fn place(self, row: usize) -> usize;
    /// Returns the greatest place of the first `rows` rows, at least one row.
    fn furthest(self, rows: usize) -> usize;
    /// Returns the places `bytes` further on.
    fn shifted(self, bytes: usize) -> Self;
    /// Returns the places from row `rows` on.
    fn behind(self, rows: usize) -> Self;
    /// Returns the distance from each row to the next, if constant.
    fn stride(self) -> Option<usize>;
    /// Returns the same places, type-erased: large kernels are compiled once instead of per
    /// `Places` type.
    fn anywhere(&self) -> Anywhere<'_>;
}

/// Places of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Anywhere<'a> {
    Strided(Strided),
    Scattered(Scattered<'a>),
}

/// Evaluates `$of` with `$places` bound to the places.
macro_rules! of_any {
    ($any:expr, $places:ident => $of:expr) => {
        match $any {
            Anywhere::Strided($places) => $of,
            Anywhere::Scattered($places) => $of,
        }
    };
}

impl Places for Anywhere<'_> {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        of_any!(self, places => places.place(row))
    }

    #[inline]
    fn furthest(self, rows: usize) -> usize {
        of_any!(self, places => places.furthest(rows))
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        match self {
            Self::Strided(places) => Self::Strided(places.shifted(bytes)),
            Self::Scattered(places) => Self::Scattered(places.shifted(bytes)),
        }
    }

    #[inline(always)]
    fn behind(self, rows: usize) -> Self {
        match self {
            Self::Strided(places) => Self::Strided(places.behind(rows)),
            Self::Scattered(places) => Self::Scattered(places.behind(rows)),
        }
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        of_any!(self, places => places.stride())
    }

    #[inline]
    fn anywhere(&self) -> Anywhere<'_> {
        *self
    }
}

/// Checks that `width` bytes at the places of all rows lie within `len` bytes.
///
/// # Panics
/// If a row does not.
pub(in crate::rows) fn check_bounds<P: Places>(width: usize, rows: usize, places: P, len: usize) {
    let fits = rows == 0 || places.furthest(rows).checked_add(width).is_some_and(|end| end <= len);
    assert!(fits, "rows lie within their bytes");
}

/// Rows of one length, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    pub first: usize,
    pub stride: usize,
}

impl Places for Strided {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        self.first + row * self.stride
    }

    #[inline]
    fn furthest(self, rows: usize) -> usize {
        let last = (rows - 1).checked_mul(self.stride).expect("rows fit the address space");
        self.first.checked_add(last).expect("rows fit the address space")
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        Self { first: self.first + bytes, ..self }
    }

    #[inline]
    fn behind(self, rows: usize) -> Self {
        self.shifted(rows * self.stride)
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        Some(self.stride)
    }

    #[inline]
    fn anywhere(&self) -> Anywhere<'_> {
        Anywhere::Strided(*self)
    }
}

/// Rows at any cursors.
#[derive(Clone, Copy, Debug)]
pub struct Scattered<'a> {
    pub cursors: &'a [usize],
    /// Bytes from the cursor to the columns.
    pub distance: usize,
}

impl<'a> Scattered<'a> {
    /// Returns the places of all rows.
    #[inline]
    pub fn each(self) -> impl ExactSizeIterator<Item = usize> + 'a {
        self.cursors.iter().map(move |cursor| cursor + self.distance)
    }
}

impl Places for Scattered<'_> {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        self.cursors[row] + self.distance
    }

    #[inline]
    fn furthest(self, rows: usize) -> usize {
        let furthest = furthest(&self.cursors[..rows]);
        furthest.checked_add(self.distance).expect("rows fit the address space")
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        Self { distance: self.distance + bytes, ..self }
    }

    #[inline]
    fn behind(self, rows: usize) -> Self {
        Self { cursors: &self.cursors[rows..], ..self }
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        None
    }

    #[inline]
    fn anywhere(&self) -> Anywhere<'_> {
        Anywhere::Scattered(*self)
    }
}

/// Fills `cursors` with the starts of rows of these lengths, one after the other from `first` on.
/// Returns the end of the last row.
///
/// # Panics
/// If the rows do not fit the address space.
pub fn set_lengths(
    cursors: &mut Vec<usize>,
    first: usize,
    lengths: impl ExactSizeIterator<Item = u32>,
) -> usize {
    let most = (lengths.len() as u64).checked_mul(u64::from(u32::MAX));
    let most = most.and_then(|most| most.checked_add(first as u64));
    assert!(most.is_some(), "rows fit the address space");
    let mut next = first as u64;
    cursors.clear();
    cursors.extend(lengths.map(|length| {
        let cursor = next as usize;
        next += u64::from(length);
        cursor
    }));
    usize::try_from(next).expect("rows fit the address space")
}

compiled_for! {
    ["avx2"]
    /// Returns the greatest of some cursors, mostly the last one.
    fn furthest(cursors: &[usize]) -> usize = furthest_of
}

#[inline(always)]
fn furthest_of(cursors: &[usize]) -> usize {
    let &last = cursors.last().expect("a cursor");
    // Vectorised, for cursors without the highest bit.
    let wrong = cursors.iter().fold(0, |wrong, cursor| wrong | cursor | last.wrapping_sub(*cursor));
    if wrong.cast_signed() >= 0 {
        return last;
    }
    cursors.iter().copied().max().expect("a cursor")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_furthest_is_the_greatest(
            mut cursors in prop::collection::vec(any::<usize>(), 1..40),
            shift in 0u32..64,
            sorted: bool,
        ) {
            cursors.iter_mut().for_each(|cursor| *cursor >>= shift);
            if sorted {
                cursors.sort_unstable();
            }
            prop_assert_eq!(furthest(&cursors), *cursors.iter().max().unwrap());
        }
    }
}
