//! Sorted runs, merged into chunks by the kernels.
//!
//! ```text
//! push_merged    two views      --> rows until the chunk is full or one view is used up
//! push_several   some views     --> all of them, chunk by chunk
//! ```

use std::ops::Range;

use super::builder::{Builder, Finish};
use super::view::View;
use windrow_kernel::merge::{Hints, Several, Wrapped, merge, merge_varying};
use windrow_pool::Pool;
use windrow_rows::{Result, Rule};

/// Shorter row bodies have no comparison word for the two-way kernel.
const SHORTEST_BODY: usize = 8;

impl Builder {
    /// Returns true if [`Builder::push_several`] implements the rule.
    pub(crate) fn merges_runs(&self) -> bool {
        match self.layout.rule() {
            Rule::Keep => true,
            Rule::First | Rule::Last | Rule::LastKnown => false,
            // The kernels add up diffs of one lane.
            Rule::Sum => self.finish == Finish::Log && self.layout.tail().is_one_sum(),
        }
    }

    /// Returns true if [`Builder::push_merged`] implements the rule for rows of this layout.
    pub(crate) fn merges_two(&self) -> bool {
        let least = self.layout.tail().len() + SHORTEST_BODY;
        self.merges_runs() && self.layout.stride().is_none_or(|stride| stride >= least)
    }

    /// Appends the merge of rows `a` and `b`, until one of them is used up or a chunk is full.
    /// Returns the rows consumed of each.
    #[inline]
    pub(crate) fn push_merged(
        &mut self,
        (a, a_left): (View<'_>, Range<usize>),
        (b, b_left): (View<'_>, Range<usize>),
    ) -> Result<(usize, usize)> {
        let (tail, sums, wraps) = (self.layout.tail().len(), self.sums(), &self.wraps);
        let strided = (a.strided(a_left.clone(), tail), b.strided(b_left.clone(), tail));
        let merged = if let (Some(left), Some(right)) = strided {
            self.output.merged_into(left.stride, 2, |out, pool| {
                let mut note = |body: &[u8], times: i64| wraps.note(pool, body, 0, times);
                let wrapped: Wrapped<'_> = if sums { Some(&mut note) } else { None };
                let merged = merge(left, right, out, wrapped);
                (merged.out, merged)
            })?
        } else if let (Some(left), Some(right)) =
            (a.varying(a_left.clone(), tail), b.varying(b_left.clone(), tail))
        {
            let longest = a.row(a_left.start).len().max(b.row(b_left.start).len());
            self.output.varying_into(longest, |out, pool| {
                let mut note = |body: &[u8], times: i64| wraps.note(pool, body, 0, times);
                merge_varying(left, right, out, if sums { Some(&mut note) } else { None })
            })?
        } else {
            None
        };
        Ok(merged.map_or((0, 0), |merged| (merged.a, merged.b)))
    }

    /// Appends the merge of `runs`. Each run has sorted rows in its first view, continued in its
    /// second. Equal rows are all within `runs`. Returns false if the kernel does not support the
    /// views.
    pub(crate) fn push_several(
        &mut self,
        runs: &[[View<'_>; 2]],
        hints: &mut Hints,
    ) -> Result<bool> {
        let (tail, sums, wraps) = (self.layout.tail().len(), self.sums(), &self.wraps);
        let several = if let Some(runs) = both(runs, |view| view.strided(0..view.len(), tail)) {
            Several::strided(&runs, *hints)
        } else {
            let runs = both(runs, |view| view.varying(0..view.len(), tail));
            runs.and_then(|runs| Several::varying(&runs, *hints))
        };
        let Some(mut several) = several else { return Ok(false) };
        while !several.is_done() {
            let len = several.next_len();
            let note = |pool: &Pool, body: &[u8], times: i64| wraps.note(pool, body, 0, times);
            if self.layout.stride().is_some() {
                self.output.merged_into(len, 1, |out, pool| {
                    let mut note = |body: &[u8], times: i64| note(pool, body, times);
                    (several.merge(out, if sums { Some(&mut note) } else { None }), ())
                })?;
            } else {
                self.output.varying_into(len, |out, pool| {
                    let mut note = |body: &[u8], times: i64| note(pool, body, times);
                    several.merge_varying(out, if sums { Some(&mut note) } else { None })
                })?;
            }
        }
        *hints = several.hints();
        Ok(true)
    }

    /// Appends rows after all others. The rows have no equals.
    pub(crate) fn append_run(&mut self, rows: View<'_>, range: Range<usize>) -> Result<()> {
        self.output.append_run(rows, range)
    }

    fn sums(&self) -> bool {
        self.layout.rule() == Rule::Sum
    }
}

/// Applies `of` to both views of each run; `None` if it fails for one of them.
fn both<'a, T>(runs: &[[View<'a>; 2]], of: impl Fn(View<'a>) -> Option<T>) -> Option<Vec<[T; 2]>> {
    runs.iter().map(|[first, second]| Some([of(*first)?, of(*second)?])).collect()
}
