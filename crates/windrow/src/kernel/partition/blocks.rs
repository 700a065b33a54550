//! The only column, of eight bytes a value, and three or four partitions: gathered by masks.
//!
//! ```text
//! block of rows   | v0 v1 v2 v3 v4 v5 .. |            in the first-level cache
//! rows of mask p  | 1 4 5 ..             |  --eight at a time-->  out | .. v1 v4 v5 ..
//! ```
//!
//! Of eight-byte values a register has too few to be compressed for so many partitions, and to put
//! each to its target is a store for each. The rows of a partition in a block are compressed
//! instead, 32 at a time, and eight values gathered to a store. With more partitions rows take longer to
//! compress than targets to find. Where [`super::Level::Gathering`] is not said, the instruction that gathers
//! takes too long, and two registers are permuted for each partition, see `permute_wide`.

use std::arch::x86_64::*;

use super::masks::{Masks, put_rows};
use super::order::{Load, PAD};

/// Words of masks in a block: 16 KiB of values.
const BLOCK: usize = 32;
/// Rows of a block, and those that a store may write behind them.
const ROWS: usize = BLOCK * 64 + PAD;
/// The most partitions.
const MOST: usize = 4;

/// True if the only column is gathered, or permuted where that is faster.
pub(super) const fn gathers(load: Load, width: usize, partitions: usize) -> bool {
    matches!(load, Load::Fixed(_)) && width == 8 && partitions <= MOST
}

impl Masks {
    /// Writes the values of eight bytes of `source` to `out`, those of each partition from the
    /// value that `starts` says on, up to `ends`.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; every row is in one mask, and there are as
    /// many rows in a mask as from its start to its end.
    ///
    /// # Panics
    /// If there are more than [`MOST`] partitions, fewer values than rows or no room for them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn gather(
        &self,
        source: &[u8],
        out: &mut [u8],
        starts: &[usize],
        ends: &[usize],
    ) {
        assert!(source.len() >= self.rows() * 8);
        let [mut next, whole] = self.fronts::<MOST>(8, 64, out, [starts, ends]);
        let (mut rows, halves) = ([0u16; ROWS], self.halves());
        for first in (0..self.words()).step_by(BLOCK) {
            let values = source[first * 64 * 8..].as_ptr();
            for (partition, mask) in self.partitions().enumerate() {
                let words = &mask[first..mask.len().min(first + BLOCK)];
                // SAFETY: as the caller promised; there is room for the rows of a block and the pad.
                let count = unsafe {
                    put_rows(words, rows.as_mut_ptr(), halves).offset_from(rows.as_ptr())
                } as usize;
                let mut at = next[partition];
                let end = at.wrapping_add(count * 8);
                next[partition] = end;
                let mut from = rows.as_ptr();
                let last = whole[partition].min(end.wrapping_sub(1));
                while at <= last {
                    // SAFETY: 64 bytes are the partition's own, to be written over by what comes
                    // next. Either eight rows are left, or more blocks follow: then this one is
                    // whole, and has all rows that are behind those of the mask from before.
                    unsafe { _mm512_storeu_si512(at.cast(), eight(values, from)) };
                    (at, from) = (at.wrapping_add(64), from.wrapping_add(8));
                }
                while at < end {
                    // SAFETY: a row of the mask, and room for it.
                    unsafe {
                        let value = values.add(usize::from(*from) * 8).cast::<u64>();
                        at.cast::<u64>().write_unaligned(value.read_unaligned());
                    }
                    (at, from) = (at.wrapping_add(8), from.wrapping_add(1));
                }
            }
        }
    }
}

/// Eight values, of eight `rows`.
///
/// # Safety
/// The CPU has AVX-512F; there are eight rows, of `values`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn eight(values: *const u8, rows: *const u16) -> __m512i {
    // SAFETY: eight rows are a register of 16 bytes.
    unsafe {
        let rows = _mm512_cvtepu16_epi64(_mm_loadu_si128(rows.cast()));
        _mm512_i64gather_epi64::<8>(rows, values.cast())
    }
}
