//! Two stretches of rows in order into one.
//!
//! ```text
//! a | . . x x x |
//!                >--> chunk        two whole chunks, if they fill one at the most: nothing to pause for
//! b | . x x x x |
//! ```
//! Where rows come in runs one of them takes the other in, which is `within`.

use std::ops::Range;
use std::sync::Arc;

use super::output::Output;
use super::within::Within;
use super::{Chunk, View, Wraps};
use crate::error::Result;
use crate::kernel::merge::{Wrapped, merge, merge_varying};
use crate::order::{Layout, Rule};
use crate::pool::Pool;

/// Rows shorter than this in what is compared have no word for the two-way kernel.
const SHORTEST_BODY: usize = 8;

/// True if the two-way kernel serves the rows of `layout`, and their rule where deletions and diffs stay.
pub(crate) fn merges_two(layout: &Layout) -> bool {
    let long_enough = |stride: usize| stride >= layout.tail().len() + SHORTEST_BODY;
    matches!(layout.rule(), Rule::Keep | Rule::Sum) && layout.stride().is_none_or(long_enough)
}

/// Ships the merge of `a` and `b`, which take no more than a chunk together: a chunk, or nothing if all of it
/// cancels; `a` itself where it can take `b` in. Sums that do not fit are noted in `wraps`.
pub(crate) fn merge_small(
    layout: &Layout,
    pool: &Pool,
    wraps: &mut Option<Wraps>,
    (mut a, b): (Arc<Chunk>, &Chunk),
    mut ship: impl FnMut(Arc<Chunk>) -> Result<()>,
) -> Result<()> {
    let mut note = |pool: &Pool, body: &[u8], times| {
        wraps.get_or_insert_default().note(pool, body, times);
    };
    let (mut a_left, mut b_left, mut behind) = (0..a.len(), 0..b.len(), 0..0);
    // One that nobody else has.
    if let Some(chunk) = Arc::get_mut(&mut a) {
        match chunk.take_in(layout, pool, b, &mut note) {
            Within::Done(0) => return Ok(()),
            Within::Done(_) => return ship(a),
            Within::Left { a, b, behind: rows } => {
                (a_left.end, b_left.end, behind) = (a, b, rows);
            }
            Within::Refused => {}
        }
    }
    let mut output = Output::new(layout, pool);
    let (a, b) = (a.rows_and(behind.end), b.rows());
    while !a_left.is_empty() && !b_left.is_empty() {
        let (left, right) = ((a, a_left.clone()), (b, b_left.clone()));
        let (a_used, b_used) = push_merged(&mut output, layout, left, right, &mut note)?;
        a_left.start += a_used;
        b_left.start += b_used;
    }
    output.append_run(a, a_left)?;
    output.append_run(b, b_left)?;
    output.append_run(a, behind)?;
    output.flush();
    while let Some(chunk) = output.take() {
        ship(chunk)?;
    }
    Ok(())
}

/// Appends the merge of rows `a` and `b`, until one of them is used up or a chunk is full; `note` hears of sums
/// that do not fit. Returns the rows that were used of each.
#[inline]
pub(super) fn push_merged(
    output: &mut Output,
    layout: &Layout,
    (a, a_left): (View<'_>, Range<usize>),
    (b, b_left): (View<'_>, Range<usize>),
    note: &mut impl FnMut(&Pool, &[u8], i64),
) -> Result<(usize, usize)> {
    let (tail, sums) = (layout.tail().len(), layout.rule() == Rule::Sum);
    let strided = (a.strided(a_left.clone(), tail), b.strided(b_left.clone(), tail));
    let merged = if let (Some(left), Some(right)) = strided {
        output.merged_into(left.stride, 2, |out, pool| {
            let mut note = |body: &[u8], times: i64| note(pool, body, times);
            let wrapped: Wrapped<'_> = if sums { Some(&mut note) } else { None };
            let merged = merge(left, right, out, wrapped);
            (merged.out, merged)
        })?
    } else if let (Some(left), Some(right)) =
        (a.varying(a_left.clone(), tail), b.varying(b_left.clone(), tail))
    {
        let longest = a.row(a_left.start).len().max(b.row(b_left.start).len());
        output.varying_into(longest, |out, pool| {
            let mut note = |body: &[u8], times: i64| note(pool, body, times);
            merge_varying(left, right, out, if sums { Some(&mut note) } else { None })
        })?
    } else {
        None
    };
    Ok(merged.map_or((0, 0), |merged| (merged.a, merged.b)))
}
