//! Rows in order, through the rule, into chunks.
//!
//! ```text
//! keep         every row is appended
//! first, last  a row is appended if its key differs from the previous row's (the winning row comes
//!              first: the layout complements the columns that `last` orders by)
//! last_known   a row is appended if it has a column that is null in all earlier rows of its key; a
//!              reader fills one row per key from these rows    (known)
//! sum          equal rows become one with the sum of their diffs, appended unless the sum is zero
//! ```
//!
//! Rows of successive calls ascend. Under the sum rule, rows that are equal arrive in one call: the
//! caller's blocks are closed under equality.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::arrange::{Arranger, Place};
use super::block::{Block, Parts};
use super::known::Group;
use super::output::Output;
use super::resident::Chunk;
use super::view::View;
use super::wraps::{Wraps, overflow};
use windrow_kernel::copy::Table;
use windrow_kernel::prefetch::Ahead;
use windrow_pool::Pool;
use windrow_rows::engine::{Tail, diff_of};
use windrow_rows::{Error, Layout, Result, Rule, key_len};

/// Rows of negative multiplicity kept for the error message.
const SHOWN: usize = 3;

/// Copies of a row appended even if a chunk is full.
const FEW: i64 = 16;

/// How the last merge treats deletions and diffs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Keeps both: the last change of each key, or the summed change of each row.
    Log,
    /// The current state: omits deleted keys, and writes n copies of a row with diff n, each with
    /// diff 1.
    Snapshot,
    /// The current state with each row once: its diff is its multiplicity.
    Counts,
}

/// What the rule found in the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Keys omitted from a snapshot because their last change deletes them.
    pub(crate) deleted: u64,
    /// Rows of negative multiplicity in a snapshot, and the first few of these rows.
    pub(crate) negative: u64,
    pub(crate) negative_rows: Vec<Vec<u8>>,
}

impl Findings {
    /// Adds the findings of later rows.
    pub(crate) fn add(&mut self, mut behind: Self) {
        self.deleted += behind.deleted;
        self.negative += behind.negative;
        behind.negative_rows.truncate(SHOWN - self.negative_rows.len().min(SHOWN));
        self.negative_rows.append(&mut behind.negative_rows);
    }
}

/// Least number of successive distinct rows for which bulk copying pays.
const FEW_ALONE: usize = 4;
/// Rows examined at once before copying.
const STRETCH: usize = 256;

/// Builds chunks from rows in order.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(super) layout: Layout,
    pub(super) finish: Finish,
    pub(super) output: Output,
    pub(super) wraps: Wraps,
    /// Rows of a snapshot still to be appended, each with its number of copies: a row with more
    /// copies than a chunk holds, and the rows after it.
    copies: VecDeque<(Vec<u8>, i64)>,
    /// The key of the last row, for the rules that keep one row per key.
    key: Option<Vec<u8>>,
    /// The rows of the current key, under [`Rule::LastKnown`].
    pub(super) group: Option<Box<Group>>,
    pub(crate) findings: Findings,
}

impl Builder {
    /// Returns a builder that records overflowing sums in `wraps`.
    pub(crate) fn new(layout: &Layout, pool: &Pool, finish: Finish, wraps: &Wraps) -> Self {
        Self {
            layout: layout.clone(),
            finish,
            output: Output::new(layout, pool),
            wraps: wraps.clone(),
            copies: VecDeque::new(),
            key: None,
            group: Group::of(layout),
            findings: Findings::default(),
        }
    }

    /// Returns the layout of the rows.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the pool of the chunks.
    pub(crate) fn pool(&self) -> &Pool {
        &self.output.pool
    }

    /// Returns the next full chunk.
    pub(crate) fn take(&mut self) -> Option<Arc<Chunk>> {
        self.output.take()
    }

    /// Returns true if [`Builder::take`] has a chunk.
    pub(crate) fn is_full(&self) -> bool {
        self.output.is_full()
    }

    /// Forgets the last key: the next row starts a new run.
    pub(crate) fn restart(&mut self) {
        self.key = None;
        if let Some(group) = &mut self.group {
            group.restart();
        }
    }

    /// Closes the current chunk.
    pub(crate) fn flush(&mut self) {
        self.output.flush();
    }

    /// Returns true if the rule leaves the rows of one input unchanged.
    fn keeps_runs(&self) -> bool {
        match self.layout.rule() {
            Rule::Keep => true,
            Rule::First | Rule::Last => {
                self.finish == Finish::Log || *self.layout.tail() == Tail::None
            }
            Rule::LastKnown => self.group.as_ref().is_some_and(|group| !group.folds),
            Rule::Sum => self.finish == Finish::Log,
        }
    }

    /// Appends rows of `block` in the order of `order`. With `of_chunks` all rows come from chunks,
    /// so no diff is zero. Prefetches memory `ahead`.
    pub(crate) fn push<'a>(
        &mut self,
        block: impl Block<'a>,
        order: &[Place],
        of_chunks: bool,
        ahead: &mut Ahead<'_>,
    ) -> Result<()> {
        match self.layout.rule() {
            Rule::Keep => self.output.append_while(block, order, |_| true, ahead).map(drop),
            Rule::First | Rule::Last => {
                self.push_winners(order.iter().map(|place| block.row(place.index())))
            }
            Rule::LastKnown => self.push_known(order.iter().map(|place| block.row(place.index()))),
            Rule::Sum if !self.layout.tail().is_one_sum() => {
                self.check_finish()?;
                self.push_lanes(block, order, ahead)
            }
            Rule::Sum => self.push_sums(block, order, of_chunks, ahead),
        }
    }

    /// Sorts the rows of `parts` and appends them. With `of_chunks` all rows come from chunks.
    /// Prefetches memory `ahead`.
    pub(crate) fn push_unordered(
        &mut self,
        arranger: &mut Arranger,
        parts: &[View<'_>],
        of_chunks: bool,
        ahead: &mut Ahead<'_>,
    ) -> Result<()> {
        let tail = self.layout.tail().len();
        let most = parts.iter().map(View::len).max().unwrap_or(0);
        let bits = usize::BITS - most.saturating_sub(1).leading_zeros();
        let firsts = (0..parts.len()).map(|part| part << bits);
        let indexes: Vec<_> =
            firsts.zip(parts).map(|(first, part)| first..first + part.len()).collect();
        if let Some(stride) = self.layout.stride() {
            let parts: Vec<&[u8]> = parts.iter().map(|part| part.bytes).collect();
            let block = Table { parts: &parts, bits, stride };
            self.push(block, arranger.order(&indexes, block, tail, ahead), of_chunks, ahead)
        } else {
            let parts: Vec<_> = parts.iter().filter_map(View::listed).collect();
            let block = Parts { parts: &parts, bits };
            self.push(block, arranger.order(&indexes, block, tail, ahead), of_chunks, ahead)
        }
    }

    /// Appends rows of one chunk in their order. Returns true if the chunk itself was passed on.
    pub(crate) fn push_run(&mut self, chunk: &Arc<Chunk>, mut range: Range<usize>) -> Result<bool> {
        let rows = chunk.rows();
        if range.is_empty() {
            return Ok(false);
        }
        if !self.keeps_runs() {
            match self.layout.rule() {
                Rule::Sum => {
                    self.check_finish()?;
                    range.map(|index| rows.row(index)).try_for_each(|row| {
                        let diff = diff_of(row);
                        self.append_times(row, diff)
                    })?;
                }
                Rule::LastKnown => self.push_known(range.map(|index| rows.row(index)))?,
                _ => self.push_winners(range.map(|index| rows.row(index)))?,
            }
            return Ok(false);
        }
        match self.layout.rule() {
            Rule::First | Rule::Last => {
                range.start += usize::from(self.repeats_key(rows.row(range.start)));
                if !range.is_empty() {
                    self.remember(rows.row(range.end - 1));
                }
            }
            Rule::LastKnown => range = self.start_known_run(rows, range)?,
            Rule::Keep | Rule::Sum => {}
        }
        if range.is_empty() {
            return Ok(false);
        }
        if range.len() == rows.len() && self.output.passes(chunk) {
            self.output.pass(Arc::clone(chunk));
            return Ok(true);
        }
        self.output.append_run(rows, range)?;
        Ok(false)
    }

    /// Appends rows of one chunk, at the positions of `order`. The rows have been through the rule.
    pub(crate) fn append_picked(&mut self, rows: View<'_>, order: &[Place]) -> Result<()> {
        // All bits of an index are the position.
        let (bits, ahead) = (usize::BITS / 2, &mut Ahead::default());
        if let Some(stride) = self.layout.stride() {
            let block = Table { parts: &[rows.bytes], bits, stride };
            self.output.append_while(block, order, |_| true, ahead)?;
        } else if let Some(listed) = rows.listed() {
            let block = Parts { parts: &[listed], bits };
            self.output.append_while(block, order, |_| true, ahead)?;
        }
        Ok(())
    }

    /// Appends a row after all others. The row has been through the rule.
    pub(crate) fn append(&mut self, row: &[u8]) -> Result<()> {
        self.output.append(row)
    }

    fn push_winners<'a>(&mut self, rows: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        let tombstones = matches!(self.layout.tail(), Tail::Tombstone(_));
        // The key of the previous row, borrowed from that row: only the last key is copied.
        let mut before: Option<&[u8]> = None;
        for row in rows {
            let repeats = match before {
                Some(key) => row.starts_with(key),
                None => self.repeats_key(row),
            };
            if repeats {
                continue;
            }
            before = Some(&row[..key_len(&self.layout, row)]);
            self.append_winner(tombstones && row.last() == Some(&1), row)?;
        }
        if let Some(key) = before {
            key.clone_into(self.key.get_or_insert_default());
        }
        Ok(())
    }

    /// Appends the row of a key, unless the row deletes its key and the output is a snapshot.
    #[inline]
    pub(super) fn append_winner(&mut self, is_tombstone: bool, row: &[u8]) -> Result<()> {
        if is_tombstone && self.finish != Finish::Log {
            self.findings.deleted += 1;
            return Ok(());
        }
        self.output.append(row)
    }

    fn push_sums<'a>(
        &mut self,
        block: impl Block<'a>,
        order: &[Place],
        of_chunks: bool,
        ahead: &mut Ahead<'_>,
    ) -> Result<()> {
        // The end of a row is not in the cache yet, so it is read only if it can be zero.
        let not_zero = |row: &[u8]| of_chunks || diff_of(row) != 0;
        let mut at = 0;
        while at < order.len() {
            if self.finish == Finish::Log && !order[at].repeats() {
                // Rows without an equal are copied in bulk. The row before a repeated one is
                // excluded.
                let stretch = &order[at..order.len().min(at + STRETCH + 1)];
                let alone = stretch[1..].iter().position(|place| place.repeats());
                let alone = alone.unwrap_or(stretch.len().min(STRETCH));
                if alone >= FEW_ALONE {
                    let stretch = &order[at..at + alone];
                    let kept = self.output.append_while(block, stretch, not_zero, ahead)?;
                    if kept > 0 {
                        at += kept;
                        continue;
                    }
                }
            }
            let row = block.row(order[at].index());
            let first = diff_of(row);
            let mut sum = first;
            at += 1;
            ahead.ask(1);
            while at < order.len() && order[at].repeats() {
                ahead.ask(1);
                sum = self.add(row, sum, diff_of(block.row(order[at].index())));
                at += 1;
            }
            match self.finish {
                Finish::Log if sum == 0 => {}
                Finish::Log => {
                    self.output.append(row)?;
                    if sum != first {
                        self.output.set_diff(sum);
                    }
                }
                Finish::Snapshot | Finish::Counts => self.append_times(row, sum)?,
            }
        }
        Ok(())
    }

    /// Returns the sum of two diffs of `row`, modulo 2^64, and records an overflow.
    pub(crate) fn add(&self, row: &[u8], sum: i64, diff: i64) -> i64 {
        let (sum, overflow) = sum.overflowing_add(diff);
        if overflow {
            let wraps = if diff > 0 { 1 } else { -1 };
            self.wraps.note(self.pool(), &row[..row.len() - 8], 0, wraps);
        }
        sum
    }

    /// Fails if the output counts rows but a row has no single diff.
    fn check_finish(&self) -> Result<()> {
        if self.finish == Finish::Log || self.layout.tail().is_one_sum() {
            return Ok(());
        }
        Err(Error::InvalidOrder("how often a row is there takes an order with one diff".into()))
    }

    fn append_times(&mut self, row: &[u8], times: i64) -> Result<()> {
        let body = &row[..row.len() - 8];
        if self.wraps.has(body) {
            return Err(overflow(&self.layout, body));
        }
        if times < 0 {
            self.findings.negative += 1;
            if self.findings.negative_rows.len() < SHOWN {
                self.findings.negative_rows.push([body, &times.to_le_bytes()].concat());
            }
        }
        if self.finish == Finish::Counts {
            if times > 0 {
                self.output.append(row)?;
                self.output.set_diff(times);
            }
            return Ok(());
        }
        let mut left = times;
        while left > 0 && self.copies.is_empty() && (left <= FEW || !self.output.is_full()) {
            self.append_copy(row)?;
            left -= 1;
        }
        if left > 0 {
            self.copies.push_back((row.to_vec(), left));
        }
        Ok(())
    }

    fn append_copy(&mut self, row: &[u8]) -> Result<()> {
        self.output.append(row)?;
        // Which of several equal rows is written depends on the chunks; the diff must not.
        self.output.set_diff(1);
        Ok(())
    }

    /// Appends copies that are due until a chunk is full. Callers call `resume` before they push
    /// more rows, so many copies of a row take the memory of a few chunks.
    pub(crate) fn resume(&mut self) -> Result<()> {
        while !self.output.is_full() {
            let Some((row, left)) = self.copies.pop_front() else { break };
            self.append_copy(&row)?;
            if left > 1 {
                self.copies.push_front((row, left - 1));
            }
        }
        Ok(())
    }

    fn repeats_key(&self, row: &[u8]) -> bool {
        self.key.as_ref().is_some_and(|key| row.starts_with(key))
    }

    fn remember(&mut self, row: &[u8]) {
        row[..key_len(&self.layout, row)].clone_into(self.key.get_or_insert_default());
    }
}
