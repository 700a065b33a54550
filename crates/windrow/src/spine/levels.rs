//! The choice of batches to merge: a function of their levels and of running merges alone.
//!
//! ```text
//! oldest                newest
//!   4    2    2    1   1   1   1   0       four neighbours of level 1 become one batch of level 2
//!                  \___________/
//!   4    2    1    0   3                   a larger newer batch absorbs all smaller ones before it
//!        \_____________/
//!   4   (1    1    1    1)  0   3          but waits for a running merge of such small ones before
//! ```
//! So levels descend from the oldest batch to the newest, apart from running merges.
//!
//! Invariant: however long merges take, and in whatever order they end, a change is merged at most
//! [twice per level](MERGES_A_LEVEL). A merge either takes a change up one level, or the change is
//! in the larger batch that absorbs smaller, older neighbours. Such a merge absorbs all of the
//! neighbours at once, and so waits for an unfinished merge before them. If changes cancel, the
//! vanished changes have paid for the others, which stay at their level.

use std::ops::Range;

/// Batches of one level that are merged at once; also the ratio of batch sizes between levels.
pub(super) const FAN_IN: usize = 4;

/// Least bytes counted for a batch of level 0, a row or two: merging less than that repeatedly
/// costs no more than starting a merge.
const LEAST_BYTES: u64 = 64;

/// Most merges of a change per level, counting also its level of entry.
#[cfg(test)]
pub(crate) const MERGES_A_LEVEL: u64 = 2;

/// An element of a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A batch of this level.
    Batch(u32),
    /// Batches in a running merge; their sum has this level.
    Merging(u32),
    /// A batch that readers need to keep separate.
    Apart,
}

/// Returns the level of a batch of `bytes` bytes.
pub(super) fn level_of(bytes: u64) -> u32 {
    (bytes / LEAST_BYTES).max(1).ilog(FAN_IN as u64)
}

/// Returns the batches to merge next, if a merge is due.
pub(super) fn group(standing: &[Standing]) -> Option<Range<usize>> {
    // The newest batches first: their merges are the cheapest.
    let mut end = standing.len();
    loop {
        let wall = standing[..end].iter().rposition(|one| !matches!(one, Standing::Batch(_)));
        let start = wall.map_or(0, |at| at + 1);
        let level = |one: &Standing| match one {
            Standing::Batch(level) => Some(*level),
            _ => None,
        };
        let stretch: Vec<u32> = standing[start..end].iter().filter_map(level).collect();
        let before = wall.map(|at| standing[at]);
        if let Some(found) = within(&stretch, before) {
            return Some(start + found.start..start + found.end);
        }
        end = wall?;
    }
}

/// Finds a group as [`group`] does, in a stretch of mergeable batches after `before`.
fn within(levels: &[u32], before: Option<Standing>) -> Option<Range<usize>> {
    let larger = |at: &usize| levels[*at] > levels[at - 1];
    if let Some(at) = (1..levels.len()).rev().find(larger) {
        let start = levels[..at].iter().rposition(|&level| level >= levels[at]);
        return match (start, before) {
            // The running merge's output belongs to the group, too.
            (None, Some(Standing::Merging(level))) if level < levels[at] => None,
            (start, _) => Some(start.map_or(0, |start| start + 1)..at + 1),
        };
    }
    // The levels descend, so equal ones are adjacent.
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
    use proptest::prelude::*;

    use super::*;

    fn batches(levels: &[u32]) -> Vec<Standing> {
        levels.iter().copied().map(Standing::Batch).collect()
    }

    fn due(levels: &[u32]) -> Option<Range<usize>> {
        group(&batches(levels))
    }

    #[test]
    fn levels_are_powers_of_the_fan_in() {
        assert_eq!([0, 1, 255, 256, 1023, 1024, 4096].map(level_of), [0, 0, 0, 1, 1, 2, 3]);
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
        let apart = [batches(&[0, 0]), vec![Standing::Apart], batches(&[0, 0])].concat();
        assert_eq!(group(&apart), None);
        let merging = [batches(&[1; 4]), vec![Standing::Merging(1)], batches(&[0])].concat();
        assert_eq!(group(&merging), Some(0..4));
    }

    #[test]
    fn a_smaller_merge_before_them_is_waited_for() {
        let behind = |level: u32| [vec![Standing::Merging(level)], batches(&[0, 3])].concat();
        assert_eq!(group(&behind(2)), None);
        assert_eq!(group(&behind(3)), Some(1..3));
    }

    /// A batch in a simulated spine: its bytes, and how often each inserted batch in it was merged.
    #[derive(Clone, Debug)]
    struct Simulated {
        bytes: u64,
        merged: Vec<u64>,
        merging: bool,
    }

    /// An event of a simulated spine.
    #[derive(Clone, Debug)]
    enum Event {
        Insert(u64),
        /// A running merge ends.
        End(prop::sample::Index),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let end = any::<prop::sample::Index>().prop_map(Event::End);
        let insert = (0u32..22, 0u64..1000).prop_map(|(bits, part)| {
            Event::Insert((LEAST_BYTES << bits) + (LEAST_BYTES << bits) * part / 1000)
        });
        prop::collection::vec(prop_oneof![3 => insert, 2 => end], 1..300)
    }

    fn begin_all(spine: &mut Vec<Simulated>) {
        loop {
            let standing: Vec<Standing> = spine
                .iter()
                .map(|one| match one.merging {
                    true => Standing::Merging(level_of(one.bytes)),
                    false => Standing::Batch(level_of(one.bytes)),
                })
                .collect();
            let Some(range) = group(&standing) else { return };
            let start = range.start;
            let taken: Vec<Simulated> = spine.drain(range).collect();
            let bytes = taken.iter().map(|one| one.bytes).sum();
            let merged = taken.iter().flat_map(|one| &one.merged).map(|times| times + 1).collect();
            spine.insert(start, Simulated { bytes, merged, merging: true });
        }
    }

    fn inserted(bytes: u64) -> Simulated {
        Simulated { bytes, merged: vec![0], merging: false }
    }

    #[test]
    fn a_large_batch_is_merged_once_however_many_merges_end_before_it() {
        let mut spine = Vec::new();
        for _ in 0..20 * FAN_IN {
            spine.push(inserted(LEAST_BYTES));
            begin_all(&mut spine);
        }
        spine.push(inserted(LEAST_BYTES << 20));
        begin_all(&mut spine);
        assert_eq!(spine.iter().filter(|one| one.merging).count(), 20);
        // The newest ends first.
        while let Some(last) = spine.iter_mut().rfind(|one| one.merging) {
            last.merging = false;
            begin_all(&mut spine);
        }
        assert_eq!(spine.len(), 1);
        assert_eq!(spine[0].merged.last(), Some(&1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn a_change_is_merged_so_often_a_level_whatever_ends_when(events in events()) {
            let mut spine: Vec<Simulated> = Vec::new();
            for event in events {
                match event {
                    Event::Insert(bytes) => {
                        spine.push(inserted(bytes));
                    }
                    Event::End(at) => {
                        let merges: Vec<usize> =
                            (0..spine.len()).filter(|&at| spine[at].merging).collect();
                        if !merges.is_empty() {
                            spine[merges[at.index(merges.len())]].merging = false;
                        }
                    }
                }
                begin_all(&mut spine);
                let levels = u64::from(level_of(spine.iter().map(|one| one.bytes).sum())) + 1;
                let most = spine.iter().flat_map(|one| &one.merged).max();
                prop_assert!(most.is_none_or(|&most| most <= MERGES_A_LEVEL * (levels + 1)), "{spine:?}");
            }
        }
    }
}
