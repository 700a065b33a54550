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
use crate::chunk::{Builder, Chunk, Finish, Wraps, code_of, time_of, time_width};
use crate::error::Result;
use crate::order::Layout;
use crate::pool::Pool;
use crate::rows::decode::diff_of;
use crate::time::{Antichain, Time};

/// Chunks of one run in, with their times advanced out: in order, added up.
pub(crate) struct Advance<T> {
    layout: Layout,
    pool: Pool,
    width: usize,
    since: Antichain<T>,
    wraps: Wraps,
    builder: Builder,
    out: Run,
    /// What the rows of the group have in common: all but time and diff.
    data: Vec<u8>,
    /// Time codes and diffs of the group.
    times: Vec<(u64, i64)>,
    /// How many of them were left when they were last added up.
    sorted: usize,
}

impl<T: Time> Advance<T> {
    /// An advance to `since`; with an empty one no row is left.
    pub(crate) fn new(layout: &Layout, pool: &Pool, since: &Antichain<T>) -> Self {
        let wraps = Wraps::default();
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            width: time_width(layout),
            since: since.clone(),
            builder: Builder::new(layout, pool, Finish::Log, &wraps),
            wraps,
            out: Run::default(),
            data: Vec::new(),
            times: Vec::new(),
            sorted: 0,
        }
    }

    /// The whole run, and the notes of sums that do not fit: those of `wraps`, and what came to them.
    pub(crate) fn finish(mut self, wraps: &Wraps) -> Result<(Run, Wraps)> {
        self.end_group()?;
        self.builder.flush();
        self.collect()?;
        let advanced = wraps.map(&self.pool, |body| {
            let at = body.len() - self.width;
            if let Some(time) = self.since.advance(T::from_code(code_of(&body[at..]))) {
                body[at..].copy_from_slice(&time.code().to_be_bytes()[8 - self.width..]);
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
            let data = &row[..row.len() - self.width - 8];
            if data != self.data {
                self.end_group()?;
                self.data.extend_from_slice(data);
            }
            let time = T::from_code(code_of(time_of(&self.layout, self.width, row)));
            if let Some(time) = self.since.advance(time) {
                self.times.push((time.code(), diff_of(row)));
            }
            if self.times.len() > 2 * self.sorted + 1024 {
                // A key of many changes takes as much memory as it has times in the end.
                self.add_up();
            }
        }
        self.collect()
    }

    /// True if no time of `chunk` changes, and none of its rows is of the group before it.
    fn stays(&self, chunk: &Chunk) -> bool {
        let first = chunk.rows().row(0);
        T::TOTAL
            && self.since.less_equal(T::from_code(chunk.times(&self.layout, self.width).0))
            && first[..first.len() - self.width - 8] != self.data
    }

    /// Brings the times of the group into order, each once.
    fn add_up(&mut self) {
        let Self { data, times, wraps, pool, width, .. } = self;
        times.sort_unstable_by_key(|&(code, _)| code);
        times.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                let (sum, overflow) = kept.1.overflowing_add(next.1);
                kept.1 = sum;
                if overflow {
                    let body = [&data[..], &next.0.to_be_bytes()[8 - *width..]].concat();
                    wraps.note(pool, &body, if next.1 > 0 { 1 } else { -1 });
                }
            }
            same
        });
        times.retain(|&(_, diff)| diff != 0);
        self.sorted = self.times.len();
    }

    /// Appends what the group comes down to.
    fn end_group(&mut self) -> Result<()> {
        self.add_up();
        let mut row = std::mem::take(&mut self.data);
        let data = row.len();
        for (code, diff) in self.times.drain(..) {
            row.truncate(data);
            row.extend_from_slice(&code.to_be_bytes()[8 - self.width..]);
            row.extend_from_slice(&diff.to_le_bytes());
            self.builder.append(&row)?;
        }
        row.clear();
        self.data = row;
        self.sorted = 0;
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(chunk) = self.builder.take() {
            self.out.push_within(&self.pool, chunk)?;
        }
        Ok(())
    }
}
