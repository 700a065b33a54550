//! Rows of a group: all of a record batch, or selected ones.

/// Rows of a group, by position in the group.
pub(super) trait Rows {
    fn len(&self) -> usize;
    fn get(&self, at: usize) -> usize;
    /// The first row, if the rows are consecutive.
    fn first(&self) -> Option<usize>;
}

/// All rows of the record batch.
pub(super) struct All(pub(super) usize);

impl Rows for All {
    fn len(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn get(&self, at: usize) -> usize {
        at
    }

    #[inline(always)]
    fn first(&self) -> Option<usize> {
        Some(0)
    }
}

/// Selected rows.
pub(super) struct Picked<'a>(pub(super) &'a [u32]);

impl Rows for Picked<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn get(&self, at: usize) -> usize {
        self.0[at] as usize
    }

    #[inline(always)]
    fn first(&self) -> Option<usize> {
        None
    }
}
