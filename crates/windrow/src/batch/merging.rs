//! Resumable merges of batches.

use std::sync::OnceLock;

use super::settle::within_budget;
use super::{Batch, Body, Sources, rested};
use crate::chunk::{Finish, Wraps, end_width, time_width};
use crate::merge::{Advance, Merger, Retain, Run, Source, merged_small};
use windrow_pool::Pool;
use windrow_rows::{Antichain, Error, Layout, Result, Time, key_len};

/// Least chunks of a finished part.
const LEAST_PART: usize = 8;

/// A resumable merge of batches into one run.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow::{Batcher, Merging, Order, Pool};
///
/// # let batch = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef)])?;
/// let (layout, pool) = (Order::by("id").bind(&batch.schema())?, Pool::unlimited());
/// let mut batches = Vec::new();
/// for _ in 0..3 {
///     let mut batcher = Batcher::new(&layout, &pool);
///     batcher.push(&batch)?;
///     batches.push(batcher.finish()?);
/// }
/// let mut merging = Merging::new(&layout, &pool, batches);
/// // A thousand rows of work, then something else.
/// while !merging.work(&mut 1000)? {}
/// assert_eq!(merging.finish()?.rows(), Some(3));
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Merging<T = u64> {
    layout: Layout,
    pool: Pool,
    /// Sources of the merge, until the first work.
    inputs: Sources,
    wraps: Wraps,
    merger: Option<Merger>,
    advance: Option<Advance<T>>,
    retain: Option<Retain>,
    out: Run,
    /// Whether output chunks get filters.
    filtered: bool,
    done: bool,
    failed: bool,
    frontiers: (Antichain<T>, Antichain<T>, Antichain<T>),
}

impl<T: Time> Merging<T> {
    /// Returns a merge of `batches`, which share one layout: see [`Batch::union`].
    pub fn new(layout: &Layout, pool: &Pool, batches: impl IntoIterator<Item = Batch<T>>) -> Self {
        let batch = *Batch::union(layout, pool, batches).body;
        Self {
            out: Run::default(),
            layout: batch.layout,
            pool: batch.pool,
            inputs: batch.sources,
            wraps: batch.wraps.unwrap_or_default(),
            merger: None,
            advance: None,
            retain: None,
            filtered: false,
            done: false,
            failed: false,
            frontiers: (batch.lower, batch.upper, batch.since),
        }
    }

    /// Advances all times to `since`.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the layout has no such times.
    pub fn advancing(mut self, since: &Antichain<T>) -> Result<Self> {
        check_times::<T>(&self.layout)?;
        self.advance = Some(Advance::new(&self.layout, &self.pool, since));
        self.frontiers.2 = self.frontiers.2.join(since);
        Ok(self)
    }

    /// Keeps the newest row of each key as of `since`, and all later ones.
    ///
    /// # Errors As for [`Merging::advancing`].
    pub(crate) fn newest(self, since: &Antichain<T>) -> Result<Self> {
        let lower = self.frontiers.0.elements().first().copied().unwrap_or(T::least());
        let mut merging = self.advancing(since)?;
        merging.advance = merging.advance.map(|advance| advance.newest(lower));
        Ok(merging)
    }

    /// Drops the rows that `retain` does not keep; see [`Spine::set_retain`](crate::Spine).
    ///
    /// # Errors
    /// Errors as of [`Merging::advancing`]; [`Error::InvalidOrder`] if values are counted and the
    /// layout has no single sum of diffs.
    pub fn retaining(mut self, retain: &Retain) -> Result<Self> {
        check_times::<T>(&self.layout)?;
        retain.check(&self.layout)?;
        self.retain = Some(retain.clone());
        Ok(self)
    }

    /// Returns the number of rows that were dropped so far because [`Merging::retaining`] does not
    /// keep them.
    pub fn dropped(&self) -> u64 {
        self.advance.as_ref().map_or(0, Advance::dropped)
    }

    /// Adds key filters to the output; see [`Batch::filtered`].
    #[must_use]
    pub fn filtered(mut self) -> Self {
        self.filtered = true;
        self
    }

    /// Continues until the fuel is used up, one unit per input row. Returns true when the merge is
    /// complete. A call may exceed its fuel by one block of rows.
    ///
    /// # Errors
    /// Errors of merging and spilling; afterwards, [`Error::Lost`].
    pub fn work(&mut self, fuel: &mut i64) -> Result<bool> {
        if self.failed {
            return Err(Error::Lost);
        }
        let worked = self.merge(fuel);
        self.failed = worked.is_err();
        worked
    }

    fn merge(&mut self, fuel: &mut i64) -> Result<bool> {
        while !self.done {
            let merger = match &mut self.merger {
                Some(merger) => merger,
                none => {
                    let (layout, pool) = (&self.layout, &self.pool);
                    let inputs = std::mem::take(&mut self.inputs);
                    let (out, merger) = start(layout, pool, &self.wraps, inputs)?;
                    let filtered = self.filtered;
                    self.out = out.keeping(layout, filtered);
                    if let Some(retain) = &self.retain {
                        let advance = self.advance.take();
                        let advance = advance
                            .unwrap_or_else(|| Advance::new(layout, pool, &self.frontiers.2));
                        self.advance = Some(advance.retaining(retain));
                    }
                    self.advance = self.advance.take().map(|advance| advance.keeping(filtered));
                    none.insert(merger)
                }
            };
            let Some(chunk) = merger.next_within(fuel)? else {
                if *fuel <= 0 {
                    return Ok(false);
                }
                if let Some(advance) = &mut self.advance {
                    advance.end()?;
                }
                self.done = true;
                self.merger = None;
                break;
            };
            match &mut self.advance {
                Some(advance) => advance.push(chunk)?,
                None => self.out.push_within(&self.pool, chunk)?,
            }
        }
        Ok(true)
    }

    /// Completes the merge and returns the merged batch.
    ///
    /// # Errors As for [`Merging::work`].
    pub fn finish(mut self) -> Result<Batch<T>> {
        self.work(&mut i64::MAX.clone())?;
        let (out, wraps) = match self.advance {
            Some(advance) => advance.finish(&self.wraps),
            None => (self.out, self.wraps),
        };
        let (lower, upper, since) = self.frontiers;
        let sources = Sources::from(rested(&self.pool, out));
        let wraps = wraps.any().then_some(wraps);
        let (layout, pool) = (self.layout, self.pool);
        let shared = OnceLock::new();
        let body = Body { layout, pool, sources, shared, wraps, lower, upper, since };
        Ok(Batch { body: Box::new(body) })
    }
}

/// The finished part of a merge: rows that sort before all remaining rows, times and diffs ignored.
pub(crate) struct MergedPart {
    run: Run,
    /// Key and value of the first remaining row, or a lower bound of these; its key alone if the
    /// newest row of each key stays.
    bound: Vec<u8>,
}

impl<T: Time> Merging<T> {
    /// Returns the finished part, if it has enough chunks.
    pub(crate) fn part(&self) -> Option<MergedPart> {
        let out = self.advance.as_ref().map_or(Some(&self.out), Advance::out)?;
        if self.wraps.any() || out.chunks() < LEAST_PART {
            return None;
        }
        let behind = end_width(&self.layout);
        let by_key = self.advance.as_ref().is_some_and(Advance::keeps_newest);
        let data = |row: &'_ [u8]| match by_key {
            true => key_len(&self.layout, row),
            false => row.len() - behind,
        };
        // Rows that a merge may combine stay on one side of the bound.
        let last = (1..out.chunks()).rev().find(|&at| {
            let ends = out.last_row_of(at - 1).zip(out.first_row_of(at));
            ends.is_some_and(|(last, first)| last[..data(last)] != first[..data(first)])
        })?;
        let first = out.first_row_of(last)?;
        Some(MergedPart { run: out.first_chunks(last), bound: first[..data(first)].to_vec() })
    }
}

impl<T: Time> Batch<T> {
    /// Replaces the merged rows of single-run batches by the finished `part` of their merge. The
    /// first batch returned holds `part`, and times no longer distinguish the batches. Returns
    /// `None` if the replacement does not pay.
    pub(crate) fn let_go(batches: &[Self], part: &MergedPart) -> Result<Option<Vec<Self>>> {
        let (Some(oldest), Some(newest)) = (batches.first(), batches.last()) else {
            return Ok(None);
        };
        let Body { layout, pool, lower, .. } = &*oldest.body;
        let upper = newest.upper();
        let behind = end_width(layout);
        let before = |row: &[u8]| row[..row.len() - behind] < part.bound[..];
        let mut left = Vec::with_capacity(batches.len());
        for batch in batches {
            let Some(run) = batch.whole() else { return Ok(None) };
            let none = || Ok(Some(Run::default()));
            let behind = run.map_or_else(none, |run| run.behind(layout, pool, before))?;
            let Some(mut run) = behind else { return Ok(None) };
            if left.is_empty() {
                let behind = std::mem::replace(&mut run, part.run.clone());
                run.append(behind);
            }
            let lower = if left.is_empty() { lower } else { upper };
            let mut own = Self::of_sources(layout, pool, batch.body.wraps.clone(), run.into());
            own = own.between(lower, upper);
            own.body.since = batch.since().clone();
            left.push(own);
        }
        Ok(Some(left))
    }
}

/// Most keys that stand for all of a batch.
const SAMPLE: usize = 64;

impl<T: Time> Batch<T> {
    /// Returns the part of the batch's bytes whose keys may be in `older`, both of one run, as
    /// estimated from the first rows of chunks. Reads no chunk.
    pub(crate) fn bytes_also_in(&self, older: &Self) -> u64 {
        let Ok(Some(older)) = older.settled_run() else { return 0 };
        let Some(Some(run)) = self.whole() else { return 0 };
        let layout = &self.body.layout;
        let sample = (0..run.chunks()).step_by(run.chunks().div_ceil(SAMPLE).max(1));
        let (mut both, mut all) = (0, 0);
        for row in sample.filter_map(|at| run.first_row_of(at)) {
            both += u64::from(older.may_have(layout, &row[..key_len(layout, row)]));
            all += 1;
        }
        run.bytes() as u64 * both / all.max(1)
    }
}

shown!(Merging<T>, it => order: it.layout.order(), done: it.done);

/// Starts a merge of `inputs`, reduced to what can be merged at once. Returns the output run and
/// the merge.
fn start(layout: &Layout, pool: &Pool, wraps: &Wraps, inputs: Sources) -> Result<(Run, Merger)> {
    let inputs = within_budget(layout, pool, wraps, inputs.into_iter().collect())?;
    let out = Run::after(inputs.iter().filter_map(Source::run));
    Ok((out, Merger::new(layout, pool, Finish::Log, wraps, inputs)))
}

/// Merges all of `inputs` into one run without a pause. Records overflowing sums in `wraps`.
pub(super) fn merged(
    layout: &Layout,
    pool: &Pool,
    wraps: &mut Option<Wraps>,
    inputs: Sources,
) -> Result<Run> {
    if let Some(pair) = inputs.pair()
        && let Some(run) = merged_small(layout, pool, wraps, pair)?
    {
        return Ok(run);
    }
    let wraps = wraps.get_or_insert_default();
    let (out, mut merger) = start(layout, pool, wraps, inputs)?;
    out.merged(pool, &mut merger)
}

/// Fails unless the time column of `layout` has times of type `T`; without a column, `T` must be
/// zero bytes wide.
pub(crate) fn check_times<T: Time>(layout: &Layout) -> Result<()> {
    let Some(column) = layout.time() else {
        if T::WIDTH == 0 {
            return Ok(());
        }
        return Err(Error::InvalidOrder("frontiers need a time column in the order".into()));
    };
    let field = layout.schema().field(column);
    if T::fits(field.data_type()) && T::WIDTH == time_width(layout) {
        return Ok(());
    }
    Err(Error::UnsupportedColumn {
        column: field.name().clone(),
        data_type: field.data_type().clone(),
        role: "a time of the type that the batcher was made for",
    })
}
