//! Diffs that no kernel adds up: several lanes, and folded diffs.
//!
//! ```text
//! rows in order   | a | 1 | 2 |  | a | 3 | -2 |  | b | 1 | 0 |  | b | -1 | 0 |  -->  | a | 4 | 0 |
//!                      lanes                                                          b is gone
//! ```

use super::arrange::Place;
use super::block::Block;
use super::builder::Builder;
use windrow_kernel::prefetch::Ahead;
use windrow_rows::Result;

impl Builder {
    /// Adds the diffs of a row with body `body` to `sum`, and records overflows.
    pub(crate) fn add_diffs(&self, body: &[u8], sum: &mut [u8], diff: &[u8]) {
        self.layout
            .tail()
            .add(sum, diff, |lane, times| self.wraps.note(self.pool(), body, lane, times));
    }

    /// Appends rows of `block` in the order of `order`. Equal rows become one row with the sum of
    /// their diffs.
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
            diff.clone_into(&mut sum);
            for place in &group[1..] {
                let other = block.row(place.index());
                self.add_diffs(body, &mut sum, &other[other.len() - tail..]);
            }
            if !self.layout.tail().is_zero(&sum) {
                self.output.append(row)?;
                self.output.set_tail(&sum);
            }
        }
        Ok(())
    }
}
