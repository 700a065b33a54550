//! Kernels of partitioning: ids from words, an order from ids, columns through an order.
//!
//! ```text
//! strings --string_hash--> words --hash, search--> ids --ids, order--> Planned
//!                                                                      |  masks, digits
//!                                                                      |  cursors, hot, ranks
//!                       moves, sweep, bits, text, views                v  places, targets
//!                     column --------------------------------------------> column in order
//! ```
//!
//! What bounds most splits is a store for each row, of which CPUs retire one a cycle: one to count
//! the row, one to move its cursor on, one for each of its values. The ways to move differ in which
//! of these they do without:
//!
//! 1. *Masks*: a bit per row and partition, once per record batch; then rows are compressed or
//!    permuted out of registers, or gathered a block at a time, or their targets are found 64 at a
//!    time. No load depends on a store. For up to sixteen partitions, on CPUs that compress.
//! 2. *Segments*: the rows of a chunk as four segments, walked in lock step, each with cursors of
//!    its own. Rows that share a partition do not wait for each other's cursor, and segments keep
//!    their order, so the split is stable. Where partitions take turns there is no cursor to store,
//!    and with many partitions all rows are one segment (`in_order`). Of a partition that has most rows
//!    there is a bit per row, and only the other rows are counted (`hot`), on CPUs that compress.
//! 3. *Buckets*: the only column goes to buckets that are large enough for rows spread evenly, and
//!    from there to where it belongs. Nothing is counted before.
//! 4. *Ranks*: where several columns go to targets, or bits or wide values, rows are counted and
//!    ranked in one pass, and starts added in registers.
//! 5. *Records*: columns of four or eight bytes are put to where their row goes four at a time.
//! 6. *Chunks*: rows are ordered a chunk at a time, and runs are appended to their partitions, so
//!    that reads stay in cache however long the record batch is - by *lines* past the cache, where
//!    that could not hold them.
//! 7. *Sweeps*: lines of the output are gathered, one store for all of their values, from a list of
//!    places that all columns share. Places of up to 256 partitions are found by *digits*: rows are
//!    compressed by one digit of their id after the other. Where caches are wide.

pub(crate) mod arrays;
pub(crate) mod bits;
#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
mod boundaries;
mod buckets;
mod chunks;
#[cfg(target_arch = "x86_64")]
mod compress;
#[cfg(target_arch = "x86_64")]
mod digits;
mod fixed;
pub(crate) mod hash;
#[cfg(target_arch = "x86_64")]
mod hot;
mod ids;
mod in_order;
#[cfg(target_arch = "x86_64")]
mod lines;
#[cfg(target_arch = "x86_64")]
mod masks;
pub(crate) mod memory;
pub(crate) mod moves;
pub(crate) mod order;
#[cfg(target_arch = "x86_64")]
mod permute;
#[cfg(target_arch = "x86_64")]
mod permute_wide;
mod planned;
#[cfg(target_arch = "x86_64")]
mod ranks;
#[cfg(target_arch = "x86_64")]
mod records;
pub(crate) mod search;
mod segments;
pub(crate) mod string_hash;
mod sums;
#[cfg(target_arch = "x86_64")]
mod sweep;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod views;

#[cfg(target_arch = "x86_64")]
use super::cpu;

/// What the CPU can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Nothing that the compiler does not emit anyway.
    Portable,
    /// AVX2: Haswell, Zen and later.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with VBMI, VBMI2 and VPOPCNTDQ, and BMI2: Ice Lake, Zen 4 and later.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same, and [wide moves](cpu::has_wide_moves): columns are scattered as fast one after the other as two at
    /// a time.
    #[cfg(target_arch = "x86_64")]
    Storing,
    /// The same, and [wide caches](cpu::has_wide_caches). Whole lines are gathered there in two thirds of the time that it
    /// takes to scatter their values, and a first-level cache holds a column of 10,000 values of four bytes. On Zen 5,
    /// whose first level is as large, scatters take half to four fifths of the time of gathers.
    #[cfg(target_arch = "x86_64")]
    Gathering,
}

impl Level {
    /// The most that this CPU can do.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
        {
            return match (cpu::has_wide_caches(), cpu::has_wide_moves()) {
                (true, _) => Self::Gathering,
                (false, true) => Self::Storing,
                (false, false) => Self::Avx512,
            };
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// All that this CPU can do: with AVX-512 all of them, if not as fast.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        return match Self::detect() {
            Self::Portable => vec![Self::Portable],
            Self::Avx2 => vec![Self::Portable, Self::Avx2],
            _ => vec![Self::Portable, Self::Avx2, Self::Avx512, Self::Storing, Self::Gathering],
        };
        #[cfg(not(target_arch = "x86_64"))]
        vec![Self::Portable]
    }
}
