//! Rows of a group: all of a record batch, or selected ones.

/// Rows of a group, by position in the group.
pub(super) trait Rows {
    /// True if these are all rows of the record batch, in sequence.
    const ALL: bool;

    fn len(&self) -> usize;
    fn get(&self, at: usize) -> usize;
}

/// All rows of the record batch.
pub(super) struct All(pub(super) usize);

impl Rows for All {
    const ALL: bool = true;

    fn len(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn get(&self, at: usize) -> usize {
        at
    }
}

/// Selected rows.
pub(super) struct Picked<'a>(pub(super) &'a [u32]);

impl Rows for Picked<'_> {
    const ALL: bool = false;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn get(&self, at: usize) -> usize {
        self.0[at] as usize
    }
}
