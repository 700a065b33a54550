//! Rows in order, through the rule, into chunks.
//!
//! ```text
//! keep         every row is appended
//! first, last  a row is appended if its key differs from that of the row before it (the winner
//!              comes first: the layout complements what `last` orders by)
//! sum          equal rows become one with the sum of their diffs, appended unless that is zero
//! ```
//!
//! The rows of successive calls ascend, and rows that are equal under the sum rule come in one call:
//! the caller's blocks are closed under equality.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Chunk, OFFSET_BYTES};
use crate::error::{Error, Result};
use crate::kernel::copy::copy_short;
use crate::order::{Layout, Rule, Tail};
use crate::pool::{Buffer, Pool};
use crate::rows::decode::diff_of;
use crate::rows::{RowSlice, key_len};

/// Rows of a negative multiplicity that are kept to be shown.
const SHOWN: usize = 3;

/// What becomes of deletions and diffs at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// They stay: the last change of each key, or the summed change of each row.
    Log,
    /// What is there: deleted keys are left out, a row with diff n comes n times with diff 1.
    Snapshot,
    /// What is there, each row once: its diff says how many times it is there.
    Counts,
}

/// What the rules did to the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Keys left out of a snapshot because their last change deletes them.
    pub(crate) deleted: u64,
    /// Rows that a snapshot would hold less than zero times, and the first few of them.
    pub(crate) negative: u64,
    pub(crate) negative_rows: Vec<Vec<u8>>,
}

/// Builds chunks from rows in order.
#[derive(Debug)]
pub(crate) struct Builder {
    layout: Layout,
    pool: Pool,
    finish: Finish,
    buffer: Option<Buffer>,
    offsets: Vec<u32>,
    /// The key of the row that came last, for the rules that keep one of each.
    key: Option<Vec<u8>>,
    done: VecDeque<Chunk>,
    findings: Findings,
}

impl Builder {
    pub(crate) fn new(layout: &Layout, pool: &Pool, finish: Finish) -> Self {
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            finish,
            buffer: None,
            offsets: vec![0],
            key: None,
            done: VecDeque::new(),
            findings: Findings::default(),
        }
    }

    /// The next chunk that is full.
    pub(crate) fn take(&mut self) -> Option<Chunk> {
        self.done.pop_front()
    }

    /// True if there is a chunk to [`Builder::take`].
    pub(crate) fn is_full(&self) -> bool {
        !self.done.is_empty()
    }

    pub(crate) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Forgets the key that came last: what follows starts a run of its own.
    pub(crate) fn restart(&mut self) {
        self.key = None;
    }

    /// Takes a chunk as it is, behind those that are full.
    pub(crate) fn hand_over(&mut self, chunk: Chunk) {
        self.done.push_back(chunk);
    }

    /// Appends `rows` in the order of `order`.
    pub(crate) fn push(&mut self, rows: &[&[u8]], order: &[u32]) -> Result<()> {
        match self.layout.rule() {
            Rule::Keep => {
                for &index in order {
                    self.append(rows[index as usize])?;
                }
                Ok(())
            }
            Rule::First | Rule::Last => self.push_winners(order.iter().map(|&i| rows[i as usize])),
            Rule::Sum => self.push_sums(rows, order),
        }
    }

    /// Appends rows of one chunk, in their order.
    pub(crate) fn push_run(&mut self, rows: RowSlice<'_>, mut range: Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let snapshot = self.finish != Finish::Log;
        match self.layout.rule() {
            Rule::Keep => {}
            Rule::First | Rule::Last if snapshot && self.layout.tail() != Tail::None => {
                return self.push_winners(range.map(|index| rows.row(index)));
            }
            Rule::First | Rule::Last => {
                if self.repeats_key(rows.row(range.start)) {
                    range.start += 1;
                }
                if !range.is_empty() {
                    self.remember(rows.row(range.end - 1));
                }
            }
            Rule::Sum if snapshot => {
                for index in range {
                    let row = rows.row(index);
                    self.append_times(row, diff_of(row))?;
                }
                return Ok(());
            }
            Rule::Sum => {}
        }
        self.append_range(rows, range)
    }

    /// Ships what is not full yet.
    pub(crate) fn flush(&mut self) {
        if self.offsets.len() > 1 {
            let offsets = std::mem::replace(&mut self.offsets, vec![0]);
            if let Some(buffer) = self.buffer.take() {
                self.done.push_back(Chunk::new(&self.pool, buffer, offsets));
            }
        }
        if let Some(buffer) = self.buffer.take() {
            self.pool.recycle(buffer);
        }
    }

    fn push_winners<'a>(&mut self, rows: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        let snapshot = self.finish != Finish::Log;
        let tombstones = matches!(self.layout.tail(), Tail::Tombstone(_));
        // The key of the row before, as a part of that row: only the last is copied.
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
            if snapshot && tombstones && row.last() == Some(&1) {
                self.findings.deleted += 1;
            } else {
                self.append(row)?;
            }
        }
        if let Some(key) = before {
            let kept = self.key.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(key);
        }
        Ok(())
    }

    fn push_sums(&mut self, rows: &[&[u8]], order: &[u32]) -> Result<()> {
        let body = |row: &'_ [u8]| row.len() - 8;
        let mut at = 0;
        while at < order.len() {
            let row = rows[order[at] as usize];
            let mut sum = diff_of(row);
            at += 1;
            while at < order.len() {
                let next = rows[order[at] as usize];
                if next[..body(next)] != row[..body(row)] {
                    break;
                }
                sum = sum.checked_add(diff_of(next)).ok_or_else(|| self.overflow(row))?;
                at += 1;
            }
            match self.finish {
                Finish::Log if sum == 0 => {}
                Finish::Log => {
                    self.append(row)?;
                    self.set_diff(sum);
                }
                Finish::Snapshot | Finish::Counts => self.append_times(row, sum)?,
            }
        }
        Ok(())
    }

    fn overflow(&self, row: &[u8]) -> Error {
        Error::DiffOverflow { row: describe(&self.layout, row) }
    }

    fn append_times(&mut self, row: &[u8], times: i64) -> Result<()> {
        if times < 0 {
            self.findings.negative += 1;
            if self.findings.negative_rows.len() < SHOWN {
                let mut row = row.to_vec();
                let body = row.len() - 8;
                row[body..].copy_from_slice(&times.to_le_bytes());
                self.findings.negative_rows.push(row);
            }
        }
        if self.finish == Finish::Counts {
            if times > 0 {
                self.append(row)?;
                self.set_diff(times);
            }
            return Ok(());
        }
        for _ in 0..times {
            self.append(row)?;
            // Of equal rows, which one is shown here follows from the chunks: their diffs must not.
            self.set_diff(1);
        }
        Ok(())
    }

    fn repeats_key(&self, row: &[u8]) -> bool {
        self.key.as_ref().is_some_and(|key| row.starts_with(key))
    }

    fn remember(&mut self, row: &[u8]) {
        let len = key_len(&self.layout, row);
        let key = self.key.get_or_insert_default();
        key.clear();
        key.extend_from_slice(&row[..len]);
    }

    #[inline]
    fn append(&mut self, row: &[u8]) -> Result<()> {
        let used = self.used();
        let needed = used + row.len() + self.offsets.len() * OFFSET_BYTES;
        if self.buffer.as_ref().is_none_or(|buffer| needed > buffer.len()) {
            self.next_buffer(row.len() + OFFSET_BYTES)?;
        }
        let used = self.used();
        if let Some(buffer) = &mut self.buffer {
            copy_short(&mut buffer[used..], row);
        }
        self.offsets.push((used + row.len()) as u32);
        Ok(())
    }

    fn append_range(&mut self, rows: RowSlice<'_>, mut range: Range<usize>) -> Result<()> {
        while !range.is_empty() {
            let start = rows.offsets[range.start];
            let room = self.buffer.as_ref().map_or(0, |buffer| buffer.len());
            let (used, count) = (self.used(), self.offsets.len() - 1);
            let ends = &rows.offsets[range.start + 1..=range.end];
            // Row i of the range fits if its end, and the offsets up to it, do.
            let mut fit = ends.partition_point(|&end| used + (end - start) as usize <= room);
            while fit > 0
                && used + (ends[fit - 1] - start) as usize + (count + fit) * OFFSET_BYTES > room
            {
                fit -= fit.div_ceil(64);
            }
            if fit == 0 {
                self.next_buffer((ends[0] - start) as usize + OFFSET_BYTES)?;
                continue;
            }
            let bytes = &rows.bytes[start as usize..ends[fit - 1] as usize];
            if let Some(buffer) = &mut self.buffer {
                buffer[used..used + bytes.len()].copy_from_slice(bytes);
            }
            self.offsets.extend(ends[..fit].iter().map(|end| end - start + used as u32));
            range.start += fit;
        }
        Ok(())
    }

    fn set_diff(&mut self, diff: i64) {
        let used = self.used();
        if let Some(buffer) = &mut self.buffer {
            buffer[used - 8..used].copy_from_slice(&diff.to_le_bytes());
        }
    }

    fn used(&self) -> usize {
        *self.offsets.last().unwrap_or(&0) as usize
    }

    fn next_buffer(&mut self, len: usize) -> Result<()> {
        self.flush();
        self.buffer = Some(self.pool.buffer(len)?);
        Ok(())
    }
}

/// The columns of a row as text, for messages.
pub(crate) fn describe(layout: &Layout, row: &[u8]) -> String {
    let all: Vec<usize> = (0..layout.schema().fields().len()).collect();
    let decoded = crate::rows::Decoder::new(layout, &all).and_then(|mut d| d.decode(&[row]));
    match decoded {
        Ok(batch) => {
            let fields = layout.schema().fields().iter().zip(batch.columns());
            let parts: Vec<String> = fields
                .map(|(field, array)| format!("{}={}", field.name(), crate::rows::show(array, 0)))
                .collect();
            parts.join(" ")
        }
        Err(error) => format!("(row that cannot be decoded: {error})"),
    }
}
