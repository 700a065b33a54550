//! Which batches are merged: a function of their levels alone.
//!
//! ```text
//! oldest                newest
//!   4    2    2    1   1   1   1   0       four of level 1 side by side: they become one of level 2
//!                  \___________/
//!   4    2    1    0   3                   a newer one is larger: all of the smaller before it go with it
//!        \_____________/
//! ```
//! So levels descend from the oldest to the newest, but for what is being merged, and a change goes up a level with
//! each merge, but for one when it comes.

use std::ops::Range;

/// Batches of a level that are merged at once, and how many times larger those of the next level are.
pub(super) const FAN_IN: usize = 4;

/// Bytes up to which a batch is of level 0: smaller ones cost what they cost whatever their size.
const LEAST_BYTES: u64 = 16 << 10;

/// The level of a batch of so many bytes.
pub(super) fn level_of(bytes: u64) -> u32 {
    (bytes / LEAST_BYTES).max(1).ilog(FAN_IN as u64)
}

/// The batches to merge next, if some are due; none of `levels` is a batch that is not to be merged now.
pub(super) fn group(levels: &[Option<u32>]) -> Option<Range<usize>> {
    // From the newest on, which are the cheapest.
    let mut end = levels.len();
    while end > 0 {
        let start = levels[..end].iter().rposition(Option::is_none).map_or(0, |at| at + 1);
        let stretch: Vec<u32> = levels[start..end].iter().flatten().copied().collect();
        if let Some(found) = within(&stretch) {
            return Some(start + found.start..start + found.end);
        }
        end = start.saturating_sub(1);
    }
    None
}

/// As [`group`], where all may be merged.
fn within(levels: &[u32]) -> Option<Range<usize>> {
    let larger = |at: &usize| levels[*at] > levels[at - 1];
    if let Some(at) = (1..levels.len()).rev().find(larger) {
        let start = levels[..at].iter().rposition(|&level| level >= levels[at]);
        return Some(start.map_or(0, |start| start + 1)..at + 1);
    }
    // They descend: equal ones stand side by side.
    let mut end = levels.len();
    while end > 0 {
        let start = levels.partition_point(|&level| level > levels[end - 1]);
        if end - start >= FAN_IN {
            return Some(start..levels.len());
        }
        end = start;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(levels: &[u32]) -> Option<Range<usize>> {
        group(&levels.iter().copied().map(Some).collect::<Vec<_>>())
    }

    #[test]
    fn levels_are_powers_of_the_fan_in() {
        let kib = |kib: u64| level_of(kib << 10);
        assert_eq!([0, 1, 63, 64, 255, 256, 1024].map(kib), [0, 0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn equal_levels_are_merged_when_there_are_enough() {
        assert_eq!(due(&[3, 2, 2, 2, 1]), None);
        assert_eq!(due(&[3, 2, 2, 2, 2, 1]), Some(1..6));
        assert_eq!(due(&[0, 0, 0]), None);
        assert_eq!(due(&[5, 0, 0, 0, 0]), Some(1..5));
    }

    #[test]
    fn smaller_ones_before_a_larger_one_go_with_it() {
        assert_eq!(due(&[4, 2, 1, 0, 3]), Some(1..5));
        assert_eq!(due(&[0, 1]), Some(0..2));
    }

    #[test]
    fn what_is_not_to_be_merged_stands_between() {
        assert_eq!(group(&[Some(0), Some(0), None, Some(0), Some(0)]), None);
        let due = group(&[Some(1), Some(1), Some(1), Some(1), None, Some(0)]);
        assert_eq!(due, Some(0..4));
    }
}
