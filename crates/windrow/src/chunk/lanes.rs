//! Diffs of several lanes: sums that no kernel adds up.
//!
//! ```text
//! row   | key | ... | time | lane 0 | lane 1 |       lanes of equal rows add up each for itself; a row whose
//!                            i64      i64            lanes are all zero is gone
//! ```

use super::arrange::Place;
use super::block::Block;
use super::builder::Builder;
use crate::error::Result;
use crate::kernel::prefetch::Ahead;

/// Bytes of a lane.
pub(crate) const LANE: usize = 8;

/// Adds the lanes of `diff` to those of `sum`, modulo 2^64. Calls `wrapped` with each one whose sum does not fit, and 1 or -1
/// for the 2^64 that are missing.
#[inline]
pub(crate) fn add_lanes(sum: &mut [u8], diff: &[u8], mut wrapped: impl FnMut(usize, i64)) {
    let lanes = sum.as_chunks_mut::<LANE>().0.iter_mut().zip(diff.as_chunks::<LANE>().0);
    for (lane, (sum, diff)) in lanes.enumerate() {
        let diff = i64::from_le_bytes(*diff);
        let (total, overflow) = i64::from_le_bytes(*sum).overflowing_add(diff);
        *sum = total.to_le_bytes();
        if overflow {
            wrapped(lane, if diff > 0 { 1 } else { -1 });
        }
    }
}

/// True if all lanes are zero.
#[inline]
pub(crate) fn is_zero(lanes: &[u8]) -> bool {
    lanes.iter().all(|&byte| byte == 0)
}

impl Builder {
    /// Adds the diffs of a row to `sum`, whose body is `body`; notes what does not fit.
    pub(crate) fn add_diffs(&self, body: &[u8], sum: &mut [u8], diff: &[u8]) {
        add_lanes(sum, diff, |lane, times| self.wraps.note(self.pool(), body, lane, times));
    }

    /// Appends rows of `block` in the order of `order`, equal ones as one with the sums of their lanes.
    pub(super) fn push_lanes<'a>(
        &mut self,
        block: impl Block<'a>,
        order: &[Place],
        ahead: &mut Ahead<'_>,
    ) -> Result<()> {
        let tail = self.layout.tail().len();
        let mut sum = Vec::with_capacity(tail);
        for group in order.chunk_by(|_, next| next.repeats()) {
            ahead.ask(group.len());
            let row = block.row(group[0].index());
            let (body, diff) = row.split_at(row.len() - tail);
            sum.clear();
            sum.extend_from_slice(diff);
            for place in &group[1..] {
                let other = block.row(place.index());
                self.add_diffs(body, &mut sum, &other[other.len() - tail..]);
            }
            if !is_zero(&sum) {
                self.output.append(row)?;
                self.output.set_tail(&sum);
            }
        }
        Ok(())
    }
}
