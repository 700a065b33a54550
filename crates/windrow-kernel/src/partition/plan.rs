//! Chooses the way of a record batch: the only place with such decisions and their thresholds.
//!
//! ```text
//! level, load, ids --plan--> Way     how rows are counted, and the rows of a chunk
//! Way, width ------movement--> Move  how the values of one column are moved
//! level, ids ------counting--> Count how cursors count the rows of one chunk
//! ```
//!
//! In pseudo code:
//!
//! ```text
//! few partitions, and the CPU compresses?   masks
//! only column, rows fit no cache, no lines? cursors, one chunk of any length
//! chunks of 32 to 64 Ki rows?               cursors, chunk by chunk
//! else                                      one permutation of all rows
//!
//! only column, with cursors?                deal: from the cursor straight to the position
//! wide values, or few partitions?           scatter to targets
//! else                                      gather from places
//! ```
//!
//! Invariant: every function here is pure. Movers decide nothing.

use super::Level;
use super::ids::Pattern;

/// Most rows of a chunk: as many as two bytes can number.
pub(super) const LARGEST_CHUNK: usize = 64 << 10;
/// Rows of a chunk if there are several: 8-byte values and their places stay in a second-level
/// cache.
const CHUNK: usize = 32 << 10;
/// Rows of the shortest run worth a copy of its own; chunks grow until runs are as long.
const RUN: usize = 32;
/// Most partitions with masks: each more costs a pass over all masks, while cursors cost the same
/// for any number.
const MOST_MASKED: usize = 16;
/// Fewest bytes of a value that is always scattered: sequential reads are worth more than
/// sequential writes.
const SCATTERED: usize = 8;
/// Fewest partitions for which shorter values are gathered: strings and bitmaps use their places,
/// too.
const GATHERED: usize = 32;
/// Most partitions for which several columns are dealt in chunks: with more, runs are too short to
/// be copied.
const MOST_DEALT: usize = 512;
/// Most partitions for which a long column is dealt without chunks: each needs a cache line and a
/// page.
const STRAIGHT: usize = 64;
/// Bytes of a column above which its lines are written past the cache.
pub(super) const UNCACHED: usize = 48 << 20;
/// Most partitions whose cursors come in segments: with more, rows seldom share a partition.
const SEGMENTED: usize = 16;
/// The same if neighbours share partitions: more cursors do not stay in a first-level cache.
const SEGMENTED_RUNS: usize = 512;
/// Most partitions whose rows are searched for a pattern: with more, a count takes as long as the
/// rows.
const MOST_PATTERNED: usize = 4096;
/// Fewest rows searched for a pattern.
const LEAST_PATTERNED: usize = 64;

/// Segments of a chunk that are walked in lock step, if not one.
pub(super) const SEGMENTS: usize = 8;

/// The columns to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One bitmap only.
    Bits,
    /// One column of fixed width without nulls only, with this many bytes a value.
    Fixed(usize),
    /// Several columns, or nulls, including values of eight bytes or more, or several columns of
    /// four bytes.
    ManyWide,
    /// Several columns, or nulls, without such values, strings or nested values.
    Many,
    /// Several columns with strings or nested values, which are read from places.
    ManyTexts,
}

impl Load {
    /// Returns whether the load is one column or bitmap only.
    pub(super) fn is_one(self) -> bool {
        matches!(self, Self::Bits | Self::Fixed(_))
    }
}

/// Properties of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) rows: usize,
    pub(super) partitions: usize,
    pub(super) pattern: Pattern,
}

impl Seen {
    pub(super) fn of(ids: &[u32], partitions: usize) -> Self {
        let looks = ids.len() >= LEAST_PATTERNED && partitions <= MOST_PATTERNED;
        let pattern = if looks { Pattern::of(ids) } else { Pattern::Any };
        Self { rows: ids.len(), partitions, pattern }
    }
}

/// How the order of rows is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Find {
    /// A bit for each row and partition.
    Masks,
    /// A count for each partition, then a cursor.
    Cursors,
    /// Cursors, and the place of each row among all rows, in four bytes.
    Whole,
}

/// The way of one record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) find: Find,
    /// Rows of a chunk; all rows if there is one chunk.
    pub(super) chunk: usize,
    pub(super) rows: usize,
    partitions: usize,
    load: Load,
    /// Whether the CPU writes lines past the cache.
    lines: bool,
}

/// How the values of a column are moved, chunk by chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Written to the place of the partition's cursor.
    Deal,
    /// Written to targets, which are found once for all columns.
    Scatter,
    /// Read from places, which are found once for all columns.
    Gather,
}

/// How the rows of a chunk are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// By cursors for each partition and segment; one segment, or [`SEGMENTS`].
    Segments(usize),
    /// By masks of the partition that has most rows; only the other rows are counted.
    Hot(u32),
}

/// Chooses how the order of ids is found.
pub(super) fn plan(level: Level, load: Load, seen: Seen) -> Way {
    let Seen { rows, partitions, .. } = seen;
    let compresses = level.compresses();
    let (find, chunk) = if rows <= LARGEST_CHUNK {
        let masked = compresses && partitions <= MOST_MASKED;
        (if masked { Find::Masks } else { Find::Cursors }, rows)
    } else {
        match load {
            Load::Fixed(_) if !compresses && partitions <= STRAIGHT => (Find::Cursors, rows),
            _ => chunk_rows(partitions).map_or((Find::Whole, rows), |chunk| (Find::Cursors, chunk)),
        }
    };
    Way { find, chunk, rows, partitions, load, lines: compresses }
}

/// Returns the rows of a chunk: few enough to cache well, unless runs would be too short. Returns
/// `None` if runs would be too short in any chunk.
fn chunk_rows(partitions: usize) -> Option<usize> {
    let chunk = CHUNK.max((partitions * RUN).next_power_of_two()).min(LARGEST_CHUNK);
    // A quarter of a run is better than reads from all over the record batch.
    (partitions * RUN / 4 <= chunk).then_some(chunk)
}

impl Way {
    /// Chooses how values of `width` bytes are moved.
    pub(super) fn movement(self, width: usize) -> Move {
        let scatters = width >= SCATTERED
            || match self.load {
                Load::Bits | Load::Fixed(_) | Load::ManyWide => true,
                Load::Many => self.partitions < GATHERED,
                Load::ManyTexts => false,
            };
        match self.find {
            Find::Whole => Move::Gather,
            Find::Cursors if self.load.is_one() => Move::Deal,
            _ if !scatters => Move::Gather,
            _ if self.is_one_chunk() || width < SCATTERED || self.partitions <= MOST_DEALT => {
                Move::Scatter
            }
            _ => Move::Gather,
        }
    }

    /// Returns whether the load is one column of values wide enough to fill a cache.
    pub(super) fn is_wide(self) -> bool {
        matches!(self.load, Load::Fixed(width) if width > SCATTERED)
    }

    /// Returns whether the load is one column or bitmap only.
    pub(super) fn moves_one(self) -> bool {
        self.load.is_one()
    }

    /// Returns whether all rows are one chunk.
    pub(super) fn is_one_chunk(self) -> bool {
        self.chunk >= self.rows
    }

    /// Returns whether runs of values of `width` bytes are written by lines, past the cache.
    pub(super) fn goes_past_cache(self, width: usize) -> bool {
        self.lines && self.rows.saturating_mul(width) > UNCACHED
    }
}

/// Chooses how a chunk is counted. `wide` values fill the cache, and segments would use more of it.
pub(super) fn counting(level: Level, seen: Seen, wide: bool) -> Count {
    match seen.pattern {
        Pattern::Most(hot) if level.compresses() && seen.rows <= LARGEST_CHUNK => Count::Hot(hot),
        Pattern::Most(_) | Pattern::Runs if seen.partitions <= SEGMENTED_RUNS => {
            Count::Segments(SEGMENTS)
        }
        Pattern::Any if seen.partitions <= SEGMENTED && !wide && seen.rows <= LARGEST_CHUNK => {
            Count::Segments(SEGMENTS)
        }
        _ => Count::Segments(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    const WIDE: Level = Level::Avx512;

    fn seen(rows: usize, partitions: usize) -> Seen {
        Seen { rows, partitions, pattern: Pattern::Any }
    }

    /// Load, rows, partitions; then the way to find the order, rows of a chunk, and the movements
    /// of 1, 4, 8 and 16 bytes: `d`eal, `s`catter, `g`ather.
    type Row = (Load, usize, usize, Find, usize, &'static str);

    #[track_caller]
    fn check(level: Level, table: &[Row]) {
        for &(load, rows, partitions, find, chunk, moves) in table {
            let way = plan(level, load, seen(rows, partitions));
            let letter = |width| match way.movement(width) {
                Move::Deal => 'd',
                Move::Scatter => 's',
                Move::Gather => 'g',
            };
            let found: String = [1, 4, 8, 16].map(letter).into_iter().collect();
            let what = format!("{load:?} {rows} {partitions}");
            assert_eq!((way.find, way.chunk, &found[..]), (find, chunk, moves), "{what}");
            // Chunks too long for places and targets of two bytes are dealt without them.
            assert!(way.chunk <= LARGEST_CHUNK || !found.contains('s'), "{what}");
            assert!(way.chunk <= LARGEST_CHUNK || find == Find::Whole || way.moves_one(), "{what}");
        }
    }

    #[test]
    fn ways_of_any_cpu() {
        use Find::{Cursors, Whole};
        const M: usize = 1 << 20;
        check(
            Level::Portable,
            &[
                (Load::Bits, 10_000, 2, Cursors, 10_000, "dddd"),
                (Load::Fixed(8), 10_000, 64, Cursors, 10_000, "dddd"),
                (Load::ManyWide, 10_000, 1024, Cursors, 10_000, "ssss"),
                (Load::Many, 10_000, 31, Cursors, 10_000, "ssss"),
                (Load::Many, 10_000, 32, Cursors, 10_000, "ggss"),
                (Load::ManyTexts, 65_536, 2, Cursors, 65_536, "ggss"),
                // No lines past the cache: few partitions are dealt directly.
                (Load::Fixed(4), M, 64, Cursors, M, "dddd"),
                (Load::Fixed(4), M, 65, Cursors, CHUNK, "dddd"),
                (Load::ManyWide, M, 512, Cursors, CHUNK, "ssss"),
                (Load::ManyWide, M, 513, Cursors, CHUNK, "ssgg"),
                // Chunks grow with the number of partitions, until runs are too short in any chunk.
                (Load::Bits, M, 1025, Cursors, LARGEST_CHUNK, "dddd"),
                (Load::Fixed(4), M, 8192, Cursors, LARGEST_CHUNK, "dddd"),
                (Load::Fixed(4), M, 8193, Whole, M, "gggg"),
                (Load::ManyWide, 65_537, 70_000, Whole, 65_537, "gggg"),
                (Load::ManyWide, 65_536, 70_000, Cursors, 65_536, "ssss"),
            ],
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn ways_of_cpus_that_compress() {
        use Find::{Cursors, Masks};
        const M: usize = 1 << 20;
        check(
            WIDE,
            &[
                (Load::Bits, 10_000, 16, Masks, 10_000, "ssss"),
                (Load::Bits, 10_000, 17, Cursors, 10_000, "dddd"),
                (Load::Fixed(4), 10_000, 2, Masks, 10_000, "ssss"),
                (Load::Fixed(4), 10_000, 16, Masks, 10_000, "ssss"),
                (Load::Fixed(4), 10_000, 17, Cursors, 10_000, "dddd"),
                (Load::ManyWide, 65_536, 16, Masks, 65_536, "ssss"),
                (Load::ManyTexts, 10_000, 7, Masks, 10_000, "ggss"),
                (Load::Fixed(4), M, 4, Cursors, CHUNK, "dddd"),
                (Load::ManyWide, M, 4, Cursors, CHUNK, "ssss"),
            ],
        );
        let long = plan(WIDE, Load::Fixed(8), seen(UNCACHED / 8 + 1, 100));
        assert!(long.goes_past_cache(8) && !long.goes_past_cache(4));
        let long = plan(Level::Portable, Load::Fixed(8), seen(UNCACHED, 100));
        assert!(!long.goes_past_cache(8));
    }

    #[test]
    fn counts_of_patterns() {
        use Pattern::{Any, Most, Runs};
        let most = Level::detect();
        let hot = if most.compresses() { Count::Hot(3) } else { Count::Segments(SEGMENTS) };
        for (pattern, rows, partitions, wide, expected) in [
            (Most(3), 1000, 5, false, hot),
            (Most(3), LARGEST_CHUNK + 1, 5, false, Count::Segments(SEGMENTS)),
            (Runs, 1000, SEGMENTED_RUNS, true, Count::Segments(SEGMENTS)),
            (Runs, 1000, SEGMENTED_RUNS + 1, true, Count::Segments(1)),
            (Any, 1000, SEGMENTED, false, Count::Segments(SEGMENTS)),
            (Any, 1000, SEGMENTED, true, Count::Segments(1)),
            (Any, 1000, SEGMENTED + 1, false, Count::Segments(1)),
            (Any, LARGEST_CHUNK + 1, 2, false, Count::Segments(1)),
        ] {
            let found = counting(most, Seen { rows, partitions, pattern }, wide);
            assert_eq!(found, expected, "{pattern:?} {rows} {partitions} {wide}");
        }
        let ids = [5; LEAST_PATTERNED];
        assert_eq!(Seen::of(&ids, 10).pattern, Most(5));
        assert_eq!(Seen::of(&ids[1..], 10).pattern, Any);
        assert_eq!(Seen::of(&ids, MOST_PATTERNED + 1).pattern, Any);
    }
}
