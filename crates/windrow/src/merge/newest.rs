//! The newest row of each key, as of a frontier.
//!
//! ```text
//! key   value  time  diff      since 5, lower 2       key   value  time  diff
//! a     v      3     +1                               a     w      2     +1     the newest up to 5
//! a     w      4     +1              -->              a     x      7     +1     every later one
//! a     x      7     +1                               c     v      6     -1
//! b     v      4     -1                               (b is gone, if no older batch has rows)
//! c     v      6     -1
//! ```
//! The kept row gets the lower frontier of its batch as its time. All times of older batches are
//! less and all times of newer batches are greater, so the rows of a key keep their order, and most
//! rows of a batch have one time.

use crate::chunk::Builder;
use windrow_rows::{Result, Time};

/// Bytes of later rows that wait for the newest row before them.
const MOST_LATER: usize = if cfg!(test) { 64 } else { 1 << 20 };

/// Takes the rows of one run, key by key.
#[derive(Debug)]
pub(super) struct Newest<T> {
    lower: T,
    key: Vec<u8>,
    /// The greatest time up to `since` in the key.
    time: Option<T>,
    /// The row at that time; empty if it was appended.
    row: Vec<u8>,
    /// Whether an older row of the key was appended, with its own time.
    has_older: bool,
    /// Later rows that sort after `row`, one after the other.
    later: Vec<u8>,
    ends: Vec<usize>,
}

impl<T: Time> Newest<T> {
    /// Returns a filter of rows whose times are at or beyond `lower`.
    pub(super) fn new(lower: T) -> Self {
        let (key, row, later, ends) = Default::default();
        Self { lower, key, time: None, row, has_older: false, later, ends }
    }

    /// Returns the key of the last row.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Begins a key, after [`Newest::end`].
    pub(super) fn begin(&mut self, key: &[u8]) {
        key.clone_into(&mut self.key);
        (self.time, self.has_older) = (None, false);
    }

    /// Takes the next row of the key, which has `time`.
    pub(super) fn push(&mut self, row: &[u8], time: T, since: T, out: &mut Builder) -> Result<()> {
        if time > since {
            self.later.extend_from_slice(row);
            self.ends.push(self.later.len());
            if self.row.is_empty() || self.later.len() > MOST_LATER {
                // A newer row may follow: this one stays until the next merge.
                self.has_older |= !self.row.is_empty();
                return self.append(out);
            }
        } else if self.time.is_none_or(|newest| time > newest) {
            self.row.clear();
            self.append(out)?;
            self.time = Some(time);
            self.row.extend_from_slice(row);
        }
        Ok(())
    }

    /// Appends the rest of the key. The last `tail` bytes of a row are its diff; a negative diff
    /// deletes the key, and is dropped in the oldest batch.
    pub(super) fn end(&mut self, tail: usize, out: &mut Builder) -> Result<()> {
        if let Some(time) = self.time.filter(|_| !self.row.is_empty()) {
            let is_deletion = self.row.last().is_some_and(|byte| byte >> 7 == 1);
            if is_deletion && self.lower == T::least() && !self.has_older {
                self.row.clear();
            } else if !self.has_older {
                let end = self.row.len() - tail;
                time.min(self.lower).encode(&mut self.row[end - T::WIDTH..end]);
            }
        }
        self.append(out)
    }

    /// Appends the row, if there is one, and the later rows.
    fn append(&mut self, out: &mut Builder) -> Result<()> {
        if !self.row.is_empty() {
            out.append(&self.row)?;
            self.row.clear();
        }
        let mut start = 0;
        for end in self.ends.drain(..) {
            out.append(&self.later[start..end])?;
            start = end;
        }
        self.later.clear();
        Ok(())
    }
}
