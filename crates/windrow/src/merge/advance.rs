//! Advancing times to a frontier.
//!
//! Readers of times at or beyond `since` cannot distinguish a time from its advanced time. Rows
//! that differ only in time are adjacent; their times are advanced and sorted, and diffs at equal
//! times are added up:
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

use super::newest::Newest;
use super::retain::{Retain, Sieve};
use super::run::Run;
use crate::chunk::{Builder, Chunk, Finish, Wraps, time_of};
use windrow_pool::Pool;
use windrow_rows::engine::Tail;
use windrow_rows::{Antichain, Layout, Result, Time, key_len};

/// Takes the chunks of one run, and yields rows with advanced times, sorted and consolidated.
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
    /// Keeps the newest row of each key, in place of sums.
    newest: Option<Newest<T>>,
    /// Drops rows by key and value.
    sieve: Option<Sieve>,
}

/// Rows that differ only in time and diffs.
struct Group<T> {
    /// The common bytes: key and value.
    data: Vec<u8>,
    /// The times, each with the position of its diffs in `diffs`.
    times: Vec<(T, usize)>,
    /// The tails of the rows.
    diffs: Vec<u8>,
    /// Number of times after the last consolidation.
    sorted: usize,
}

impl<T: Time> Group<T> {
    fn push(&mut self, time: T, diff: &[u8]) {
        self.times.push((time, self.diffs.len()));
        self.diffs.extend_from_slice(diff);
    }

    /// Sorts the times and merges equal ones. Calls `wrapped` with the time and the lane of each
    /// overflowing sum.
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
    /// Returns an advance to `since` of rows whose times are `T`. An empty `since` drops all rows.
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
            newest: None,
            sieve: None,
        }
    }

    /// Keeps [the newest row of each key](Newest) in a batch whose times are at or beyond `lower`.
    pub(crate) fn newest(mut self, lower: T) -> Self {
        self.newest = Some(Newest::new(lower));
        self
    }

    /// Drops the rows that `retain` does not keep.
    pub(crate) fn retaining(mut self, retain: &Retain) -> Self {
        self.sieve = Some(Sieve::new(retain));
        self
    }

    /// Returns the number of rows that were dropped by key or value.
    pub(crate) fn dropped(&self) -> u64 {
        self.sieve.as_ref().map_or(0, |sieve| sieve.dropped)
    }

    /// Returns true if only the newest row of each key stays.
    pub(crate) fn keeps_newest(&self) -> bool {
        self.newest.is_some()
    }

    /// Keeps the output as an index does, with filters if `filtered`.
    pub(crate) fn keeping(mut self, filtered: bool) -> Self {
        self.out = self.out.keeping(&self.layout, filtered);
        self
    }

    /// Returns the output so far, or `None` if one of its sums overflowed.
    pub(crate) fn out(&self) -> Option<&Run> {
        (!self.wraps.any()).then_some(&self.out)
    }

    /// Ends the run after its last chunk.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.end_group()?;
        if let Some(sieve) = &mut self.sieve {
            sieve.end_key(&mut self.builder)?;
        }
        self.builder.flush();
        self.out.collect(&mut self.builder)
    }

    /// Returns the ended run and its overflow notes: those of `wraps` and new ones.
    pub(crate) fn finish(self, wraps: &Wraps) -> (Run, Wraps) {
        let advanced = wraps.map(&self.pool, |body| {
            let at = body.len() - T::WIDTH;
            if let Some(time) = self.since.advance(T::decode(&body[at..])) {
                time.encode(&mut body[at..]);
            }
        });
        if !self.since.is_empty() {
            self.wraps.absorb(&self.pool, &advanced);
        }
        (self.out, self.wraps)
    }

    /// Takes the next chunk.
    pub(crate) fn push(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        if self.since.is_empty() {
            return Ok(());
        }
        let rows = chunk.rows();
        if self.stays(&chunk) {
            self.end_group()?;
            self.builder.push_run(&chunk, 0..rows.len())?;
            return self.out.collect(&mut self.builder);
        }
        if let (Some(newest), Some(&since)) = (&mut self.newest, self.since.elements().first()) {
            for row in (0..rows.len()).map(|index| rows.row(index)) {
                let key = &row[..key_len(&self.layout, row)];
                if key != newest.key() {
                    newest.end(self.tail, &mut self.builder)?;
                    newest.begin(key);
                }
                let time = T::decode(time_of(row, T::WIDTH, self.tail));
                newest.push(row, time, since, &mut self.builder)?;
            }
            return self.out.collect(&mut self.builder);
        }
        for index in 0..rows.len() {
            let row = rows.row(index);
            let (body, diff) = row.split_at(row.len() - self.tail);
            let (data, time) = body.split_at(body.len() - T::WIDTH);
            if data != self.group.data {
                self.end_group()?;
                if let Some(sieve) = &mut self.sieve
                    && sieve.drops(&self.layout, data, &mut self.builder)?
                {
                    continue;
                }
                let has_next = index + 1 < rows.len() && self.sieve.is_none();
                let next = has_next.then(|| rows.row(index + 1));
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
                // The memory of a key with many changes stays proportional to its distinct times.
                self.add_up();
            }
        }
        self.out.collect(&mut self.builder)
    }

    /// Appends a row that differs from its neighbours in key or value, the common case.
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

    /// Returns true if no time of `chunk` changes and its first row starts a new group.
    fn stays(&self, chunk: &Chunk) -> bool {
        let first = chunk.rows().row(0);
        let least = || chunk.times(&self.layout, T::WIDTH)[0].time();
        if let Some(newest) = &self.newest {
            let later = self.since.elements().iter().all(|&since| least() > since);
            return later && !first.starts_with(newest.key());
        }
        T::TOTAL
            && self.sieve.is_none()
            && self.since.less_equal(least())
            && first[..first.len() - T::WIDTH - self.tail] != self.group.data
    }

    /// Sorts and consolidates the times of the group.
    fn add_up(&mut self) {
        let Self { group, wraps, pool, layout, .. } = self;
        group.add_up(layout.tail(), |data, time, lane, times| {
            let mut body = data.to_vec();
            body.resize(data.len() + T::WIDTH, 0);
            time.encode(&mut body[data.len()..]);
            wraps.note(pool, &body, lane, times);
        });
    }

    /// Appends the consolidated group.
    fn end_group(&mut self) -> Result<()> {
        if let Some(newest) = &mut self.newest {
            return newest.end(self.tail, &mut self.builder);
        }
        self.add_up();
        let Group { data: row, times, diffs, sorted } = &mut self.group;
        let data = row.len();
        for (time, at) in times.drain(..) {
            row.resize(data + T::WIDTH, 0);
            time.encode(&mut row[data..]);
            row.extend_from_slice(&diffs[at..at + self.tail]);
            match &mut self.sieve {
                Some(sieve) => {
                    let sum = row.last_chunk().map_or(0, |sum| i64::from_le_bytes(*sum));
                    let is_present = self.since.elements() == [time] && sum > 0;
                    sieve.push(row, is_present, &mut self.builder)?;
                }
                None => self.builder.append(row)?,
            }
            row.truncate(data);
        }
        row.clear();
        diffs.clear();
        *sorted = 0;
        Ok(())
    }
}
