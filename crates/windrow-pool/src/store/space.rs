//! Free space of one file: best-fit allocation, with freed ranges merged into their neighbours.
//!
//! ```text
//! | taken | free | taken | free      | taken |              end: the greatest length so far
//! give back the third:   | free |
//! | taken | free                     | taken |
//! ```
//!
//! Invariant: free ranges are disjoint, below `end`, and no two of them touch.

use std::collections::{BTreeMap, BTreeSet};

/// The free ranges of a file.
#[derive(Debug, Default)]
pub(super) struct Space {
    end: u64,
    /// Length by offset, to find neighbours.
    by_offset: BTreeMap<u64, u64>,
    /// (Length, offset), to find the best fit.
    by_length: BTreeSet<(u64, u64)>,
}

impl Space {
    /// Takes `length` bytes from the smallest sufficient free range, at the lowest offset among
    /// equals. The rest of the range stays free.
    pub(super) fn take(&mut self, length: u64) -> Option<u64> {
        let &(found, offset) = self.by_length.range((length, 0)..).next()?;
        self.remove(offset, found);
        if found > length {
            self.insert(offset + length, found - length);
        }
        Some(offset)
    }

    /// Extends the file by `length` bytes and returns their offset.
    pub(super) fn grow(&mut self, length: u64) -> u64 {
        let offset = self.end;
        self.end += length;
        offset
    }

    /// Frees a taken range.
    pub(super) fn give(&mut self, offset: u64, length: u64) {
        let (mut offset, mut length) = (offset, length);
        if let Some((&before, &len)) = self.by_offset.range(..offset).next_back()
            && before + len == offset
        {
            self.remove(before, len);
            (offset, length) = (before, len + length);
        }
        if let Some(&len) = self.by_offset.get(&(offset + length)) {
            self.remove(offset + length, len);
            length += len;
        }
        self.insert(offset, length);
    }

    /// Iterates over the free ranges: offset and length.
    pub(super) fn holes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_offset.iter().map(|(&offset, &length)| (offset, length))
    }

    fn insert(&mut self, offset: u64, length: u64) {
        self.by_offset.insert(offset, length);
        self.by_length.insert((length, offset));
    }

    fn remove(&mut self, offset: u64, length: u64) {
        self.by_offset.remove(&offset);
        self.by_length.remove(&(length, offset));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_never_overlap_and_come_together_again(
            steps in prop::collection::vec((any::<bool>(), 1u64..9, any::<prop::sample::Index>()), 1..200)
        ) {
            let mut space = Space::default();
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (take, length, which) in steps {
                if take || taken.is_empty() {
                    let offset = space.take(length).unwrap_or_else(|| space.grow(length));
                    for &(other, len) in &taken {
                        prop_assert!(offset + length <= other || other + len <= offset);
                    }
                    prop_assert!(offset + length <= space.end);
                    taken.push((offset, length));
                } else {
                    let (offset, length) = taken.swap_remove(which.index(taken.len()));
                    space.give(offset, length);
                }
                let free: u64 = space.holes().map(|(_, length)| length).sum();
                let used: u64 = taken.iter().map(|&(_, length)| length).sum();
                prop_assert_eq!(free + used, space.end);
                let holes: Vec<_> = space.holes().collect();
                prop_assert!(holes.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
            }
            for (offset, length) in taken {
                space.give(offset, length);
            }
            prop_assert_eq!(space.holes().collect::<Vec<_>>(), vec![(0, space.end)]);
        }
    }
}
