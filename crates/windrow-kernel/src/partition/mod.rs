//! Kernels of partitioning: ids from words, an order from ids, columns through an order.
//!
//! ```text
//! strings --string_hash--> words --hash, search--> ids --ids, plan--> Way
//!                                                                      |  masks | cursors, hot
//!                                                                      v
//!                                                       order: offsets, places, targets
//!                    moves, lines, bits, text, views                   |
//!            column ------------------------------------------------> column in order
//! ```
//!
//! Stores bound most splits, since CPUs retire one store a cycle: one to count a row, one to
//! advance its cursor, one for each of its values. Each way avoids some of these stores:
//!
//! 1. *Masks*: a bit per row and partition. Places and targets are found 64 at a time, and no load
//!    depends on a store. For few partitions, on CPUs with compress instructions.
//! 2. *Cursors*: a count, then targets, of one segment or of several in lock step. Masks find the
//!    rows of a partition that has most rows (`hot`), on CPUs with compress instructions.
//! 3. *Moves*: values are dealt by cursors, scattered to targets or gathered from places.
//! 4. *Runs*: a record batch longer than the caches is ordered chunk by chunk, and its runs are
//!    appended, by *lines* past the cache.
//!
//! `plan` alone decides which way is taken.

pub mod arrays;
pub mod bits;
mod cursors;
mod fixed;
pub mod hash;
#[cfg(target_arch = "x86_64")]
mod hot;
mod ids;
#[cfg(target_arch = "x86_64")]
mod lines;
#[cfg(target_arch = "x86_64")]
mod masks;
mod moves;
pub mod order;
mod plan;
pub mod slot;
pub mod string_hash;
#[cfg(test)]
mod tests;
mod text;
pub mod views;

/// The instructions of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only instructions that the compiler emits by default.
    Portable,
    /// AVX-512 with VBMI, VBMI2 and VPOPCNTDQ, and BMI2: Ice Lake, Zen 4 and later.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Returns the highest level of this CPU.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::detected!(
            "avx512f",
            "avx512bw",
            "avx512vl",
            "avx512vbmi",
            "avx512vbmi2",
            "avx512vpopcntdq",
            "bmi2",
            "popcnt"
        ) {
            return Self::Avx512;
        }
        Self::Portable
    }

    /// Returns whether one instruction compresses the lanes of a register, and registers can be
    /// written past the cache.
    fn compresses(self) -> bool {
        self > Self::Portable
    }

    /// Returns all levels of this CPU.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        match Self::detect() {
            Self::Portable => vec![Self::Portable],
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => vec![Self::Portable, Self::Avx512],
        }
    }
}
