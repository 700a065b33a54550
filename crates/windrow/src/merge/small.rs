//! The merge of two runs of one chunk each, which together fit into one chunk.
//!
//! Setting up a merger for a few thousand rows would take longer than the merge, which needs
//! neither windows nor pauses.

use super::run::Run;
use crate::chunk::{Builder, Finish, Wraps};
use windrow_pool::Pool;
use windrow_rows::{Layout, Result};

/// Merges `a` and `b`. Returns `None` if the runs are too large or the kernel does not support the
/// rule.
pub(crate) fn merged_small(
    layout: &Layout,
    pool: &Pool,
    wraps: &mut Option<Wraps>,
    [a, b]: [&Run; 2],
) -> Result<Option<Run>> {
    let (Some(left), Some(right)) = (a.only_chunk(), b.only_chunk()) else { return Ok(None) };
    if a.room(layout) + b.room(layout) > pool.chunk_bytes() {
        return Ok(None);
    }
    let mut builder = Builder::new(layout, pool, Finish::Log, wraps.get_or_insert_default());
    if !builder.merges_two() {
        return Ok(None);
    }
    let (left, right) = (left.whole()?, right.whole()?);
    let (left, right) = (left.rows(), right.rows());
    let (mut a_left, mut b_left) = (0..left.len(), 0..right.len());
    while !a_left.is_empty() && !b_left.is_empty() {
        let (a_used, b_used) =
            builder.push_merged((left, a_left.clone()), (right, b_left.clone()))?;
        a_left.start += a_used;
        b_left.start += b_used;
    }
    builder.append_run(left, a_left)?;
    builder.append_run(right, b_left)?;
    builder.flush();
    let mut out = Run::after([a, b]);
    out.collect(&mut builder)?;
    Ok(Some(out))
}
