//! Moving times up to a frontier.
//!
//! Readers that look only at times at or beyond `since` cannot tell a time from the one it is advanced
//! to. Rows that differ in time alone stand together; their times are advanced, sorted and added up:
//!
//! ```text
//! row  time diff        since 3         row  time diff
//! a    1    +1                          a    3    +3
//! a    2    +2            -->           a    5    -3
//! a    5    -3                          c    4    +1
//! b    1    +1                               (b is gone)
//! b    3    -1
//! c    4    +1
//! ```

use std::sync::Arc;

use super::run::Run;
use crate::chunk::{Builder, Chunk, Finish, Wraps};
use crate::error::Result;
use crate::order::{Layout, Tail};
use crate::pool::Pool;
use crate::time::{Antichain, Time};

/// Chunks of one run in, with their times advanced out: in order, added up.
pub(crate) struct Advance<T> {
    layout: Layout,
    pool: Pool,
    /// Bytes of the diffs of a row.
    tail: usize,
    since: Antichain<T>,
    wraps: Wraps,
    builder: Builder,
    out: Run,
    group: Group<T>,
}

/// Rows that differ in time and diffs alone.
struct Group<T> {
    /// What they have in common.
    data: Vec<u8>,
    /// The time of each, and its place in `diffs`.
    times: Vec<(T, usize)>,
    /// Their tails, one behind the other.
    diffs: Vec<u8>,
    /// How many of them were left when they were last added up.
    sorted: usize,
}

impl<T: Time> Group<T> {
    fn push(&mut self, time: T, diff: &[u8]) {
        self.times.push((time, self.diffs.len()));
        self.diffs.extend_from_slice(diff);
    }

    /// Brings the times into order, each once, with one diff. Calls `wrapped` with the time and the lane of
    /// each sum that does not fit.
    fn add_up(&mut self, tail: &Tail, mut wrapped: impl FnMut(&[u8], T, usize, i64)) {
        let Self { data, times, diffs, sorted } = self;
        let len = tail.len();
        if times.len() > 1 {
            times.sort_unstable();
            times.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    let (low, high) = (kept.1.min(next.1), kept.1.max(next.1));
                    let (head, rest) = diffs.split_at_mut(high);
                    let (sum, diff) = (&mut head[low..low + len], &rest[..len]);
                    tail.add(sum, diff, |lane, times| wrapped(data, kept.0, lane, times));
                    kept.1 = low;
                }
                same
            });
            let mut kept = Vec::with_capacity(times.len() * len);
            for (_, at) in &mut *times {
                let diff = *at..*at + len;
                *at = kept.len();
                kept.extend_from_slice(&diffs[diff]);
            }
            *diffs = kept;
        }
        times.retain(|&(_, at)| !tail.is_zero(&diffs[at..at + len]));
        *sorted = times.len();
    }
}

impl<T: Time> Advance<T> {
    /// An advance to `since`, of rows whose times are `T`; with an empty one no row is left.
    pub(crate) fn new(layout: &Layout, pool: &Pool, since: &Antichain<T>) -> Self {
        let wraps = Wraps::default();
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            tail: layout.tail().len(),
            since: since.clone(),
            builder: Builder::new(layout, pool, Finish::Log, &wraps),
            wraps,
            out: Run::default(),
            group: Group { data: Vec::new(), times: Vec::new(), diffs: Vec::new(), sorted: 0 },
        }
    }

    /// The same, and what comes out is kept, with filters or not.
    pub(crate) fn keeping(mut self, filtered: bool) -> Self {
        self.out = self.out.keeping(&self.layout, filtered);
        self
    }

    /// What came out so far; none if sums in it do not fit.
    pub(crate) fn out(&self) -> Option<&Run> {
        (!self.wraps.any()).then_some(&self.out)
    }

    /// The whole run, and the notes of sums that do not fit: those of `wraps`, and what came to them.
    pub(crate) fn finish(mut self, wraps: &Wraps) -> Result<(Run, Wraps)> {
        self.end_group()?;
        self.builder.flush();
        self.collect()?;
        let advanced = wraps.map(&self.pool, |body| {
            let at = body.len() - T::WIDTH;
            if let Some(time) = self.since.advance(T::decode(&body[at..])) {
                time.encode(&mut body[at..]);
            }
        });
        if !self.since.is_empty() {
            self.wraps.absorb(&self.pool, &advanced);
        }
        Ok((self.out, self.wraps))
    }

    /// Takes the next chunk in.
    pub(crate) fn push(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        if self.since.is_empty() {
            return Ok(());
        }
        let rows = chunk.rows();
        if self.stays(&chunk) {
            self.end_group()?;
            self.builder.push_run(&chunk, 0..rows.len())?;
            return self.collect();
        }
        for index in 0..rows.len() {
            let row = rows.row(index);
            let (body, diff) = row.split_at(row.len() - self.tail);
            let (data, time) = body.split_at(body.len() - T::WIDTH);
            if data != self.group.data {
                self.end_group()?;
                let next = (index + 1 < rows.len()).then(|| rows.row(index + 1));
                if next.is_some_and(|next| next[..next.len() - T::WIDTH - self.tail] != *data) {
                    self.append_alone(row)?;
                    continue;
                }
                self.group.data.extend_from_slice(data);
            }
            if let Some(time) = self.since.advance(T::decode(time)) {
                self.group.push(time, diff);
            }
            if self.group.times.len() > 2 * self.group.sorted + 1024 {
                // A key of many changes takes as much memory as it has times in the end.
                self.add_up();
            }
        }
        self.collect()
    }

    /// Appends a row that differs from its neighbours in more than time and diffs, as most do.
    fn append_alone(&mut self, row: &[u8]) -> Result<()> {
        let code = row.len() - self.tail - T::WIDTH..row.len() - self.tail;
        let Some(time) = self.since.advance(T::decode(&row[code.clone()])) else { return Ok(()) };
        let own = &mut self.group.data;
        own.extend_from_slice(row);
        time.encode(&mut own[code]);
        let appended = self.builder.append(own);
        own.clear();
        appended
    }

    /// True if no time of `chunk` changes, and none of its rows is of the group before it.
    fn stays(&self, chunk: &Chunk) -> bool {
        let first = chunk.rows().row(0);
        T::TOTAL
            && self.since.less_equal(chunk.times(&self.layout, T::WIDTH)[0].time())
            && first[..first.len() - T::WIDTH - self.tail] != self.group.data
    }

    /// Brings the times of the group into order, each once.
    fn add_up(&mut self) {
        let Self { group, wraps, pool, layout, .. } = self;
        group.add_up(layout.tail(), |data, time, lane, times| {
            let mut body = data.to_vec();
            body.resize(data.len() + T::WIDTH, 0);
            time.encode(&mut body[data.len()..]);
            wraps.note(pool, &body, lane, times);
        });
    }

    /// Appends what the group comes down to.
    fn end_group(&mut self) -> Result<()> {
        self.add_up();
        let Group { data: row, times, diffs, sorted } = &mut self.group;
        let data = row.len();
        for (time, at) in times.drain(..) {
            row.resize(data + T::WIDTH, 0);
            time.encode(&mut row[data..]);
            row.extend_from_slice(&diffs[at..at + self.tail]);
            self.builder.append(row)?;
            row.truncate(data);
        }
        row.clear();
        diffs.clear();
        *sorted = 0;
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(chunk) = self.builder.take() {
            self.out.push_within(&self.pool, chunk)?;
        }
        Ok(())
    }
}
