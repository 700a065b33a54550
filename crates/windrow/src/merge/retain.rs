//! Filters of keys and values while batches are merged.
//!
//! ```text
//! key   value  time  diff      keys from b on, greatest(1), since 3      key   value  time  diff
//! a     1      3     +1                                                  b     2      3     +1
//! b     1      3     +1                       -->                        b     3      5     +1
//! b     1      4     -1
//! b     2      3     +1        at time 3, value 2 is the greatest; value 3 comes later
//! b     3      5     +1
//! ```
//! Rows reach the sieve with advanced times, consolidated and in order. If the greatest values of a
//! key stay, its counted rows wait for its last row.

use std::sync::Arc;

use crate::chunk::Builder;
use windrow_pool::Lease;
use windrow_rows::{Error, Layout, Result, key_len};

/// Bytes of rows that wait for greater values of their key, unless most of them count.
const MOST_WAITING: usize = 1 << 20;

/// Decides on the bytes of a key or of a value.
type Test = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The rows that merges keep, by key and value; see [`Spine::set_retain`](crate::Spine::set_retain).
///
/// Keys and values are bytes that compare as the columns do, like those of a
/// [`Cursor`](crate::Cursor). [`RowEncoder::of_keys`](crate::RowEncoder::of_keys) encodes a key to
/// compare with.
///
/// # Reading
/// A merge takes some of the batches. Rows to be dropped may be seen until all of their changes are
/// merged, with sums of any part of their changes, also negative. Readers skip such rows.
///
/// # Promises of the caller
/// Dropped rows are never wanted again: a later filter drops at least as much. For
/// [`Retain::greatest`] and [`Retain::least`], no row has a negative sum at any time, and the last
/// counted value of a key never moves back: a counted value is removed only if enough values beyond
/// it are present.
#[derive(Clone, Default)]
pub struct Retain {
    keys: Option<Test>,
    values: Option<Test>,
    /// Of the values that `values` does not keep.
    count: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Count {
    #[default]
    None,
    Greatest(usize),
    Least(usize),
}

impl Retain {
    /// Keeps all rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops rows with a key for which `keep` is false.
    #[must_use]
    pub fn keys(mut self, keep: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.keys = Some(Arc::new(keep));
        self
    }

    /// Drops rows with a value for which `keep` is false, unless [`Retain::greatest`] or
    /// [`Retain::least`] keeps them.
    #[must_use]
    pub fn values(mut self, keep: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.values = Some(Arc::new(keep));
        self
    }

    /// Keeps the `count` greatest values of each key; with [`Retain::values`], of the values for
    /// which `keep` is false. A value is present if the sum of its diffs up to `since` is positive;
    /// only present values are counted, and none unless `since` has one element. A merge holds the
    /// counted rows of a key in memory, also beyond the budget.
    #[must_use]
    pub fn greatest(mut self, count: usize) -> Self {
        self.count = Count::Greatest(count);
        self
    }

    /// Does the same as [`Retain::greatest`] for the least values.
    #[must_use]
    pub fn least(mut self, count: usize) -> Self {
        self.count = Count::Least(count);
        self
    }

    /// Fails if values are counted and rows have no single sum.
    pub(crate) fn check(&self, layout: &Layout) -> Result<()> {
        if self.count == Count::None || layout.tail().is_one_sum() {
            return Ok(());
        }
        Err(Error::InvalidOrder("values are counted by one sum of diffs".into()))
    }
}

shown!(Retain, it => keys: it.keys.is_some(), values: it.values.is_some(), count: it.count);

/// Takes the rows of one run.
#[derive(Default)]
pub(super) struct Sieve {
    retain: Retain,
    key: Vec<u8>,
    /// Whether the key stays; `None` before the first one.
    keeps_key: Option<bool>,
    /// Whether the value is one of those that are counted.
    counts: bool,
    /// The present values of the key so far, if the least ones stay.
    present: usize,
    /// Waiting rows, one after the other.
    rows: Vec<u8>,
    /// Their ends. For rows of counted values, whether the row makes its value present.
    ends: Vec<(usize, Option<bool>)>,
    /// Bytes of `rows` from which on rows are dropped or appended.
    most: usize,
    /// Memory of more than [`MOST_WAITING`].
    lease: Option<Lease>,
    pub(super) dropped: u64,
}

impl Sieve {
    pub(super) fn new(retain: &Retain) -> Self {
        Self { retain: retain.clone(), most: MOST_WAITING, ..Self::default() }
    }

    /// Begins the rows of key and value `data`. Returns true if they are dropped.
    pub(super) fn drops(
        &mut self,
        layout: &Layout,
        data: &[u8],
        out: &mut Builder,
    ) -> Result<bool> {
        let (key, value) = data.split_at(key_len(layout, data));
        if self.keeps_key.is_none() || key != self.key {
            self.end_key(out)?;
            key.clone_into(&mut self.key);
            self.keeps_key = Some(self.retain.keys.as_ref().is_none_or(|keep| keep(key)));
            self.present = 0;
        }
        let Retain { values, count, .. } = &self.retain;
        self.counts = match values {
            Some(keep) => !keep(value),
            None => *count != Count::None,
        };
        let is_beyond = match *count {
            Count::None | Count::Greatest(0) => true,
            Count::Greatest(_) => false,
            Count::Least(count) => self.present >= count,
        };
        let drops = self.keeps_key == Some(false) || self.counts && is_beyond;
        self.dropped += u64::from(drops);
        Ok(drops)
    }

    /// Takes a row of the value. `is_present` says that the row is at `since`, with a positive sum.
    pub(super) fn push(&mut self, row: &[u8], is_present: bool, out: &mut Builder) -> Result<()> {
        let counted = self.counts.then_some(is_present);
        self.present += usize::from(counted == Some(true));
        let count = match self.retain.count {
            Count::Greatest(count) if counted.is_some() || !self.ends.is_empty() => count,
            _ => return out.append(row),
        };
        self.rows.extend_from_slice(row);
        self.ends.push((self.rows.len(), counted));
        if self.rows.len() > self.most {
            self.sift();
            if self.ends.len() / 2 > count {
                // Rows that do not count: they stay until the next merge.
                self.append(out)?;
            }
            self.most = MOST_WAITING.max(2 * self.rows.len());
            // As much again for the ends.
            let lease = || out.pool().budget().lease(2 * self.most);
            self.lease = (self.most > MOST_WAITING).then(lease);
        }
        Ok(())
    }

    /// Ends the key.
    pub(super) fn end_key(&mut self, out: &mut Builder) -> Result<()> {
        self.sift();
        self.append(out)?;
        if self.lease.take().is_some() {
            (self.rows, self.ends, self.most) = (Vec::new(), Vec::new(), MOST_WAITING);
        }
        Ok(())
    }

    /// Drops the waiting rows with enough present values behind them.
    fn sift(&mut self) {
        let Count::Greatest(count @ 1..) = self.retain.count else { return };
        let mut present = self.ends.iter().enumerate().rev().filter(|(_, end)| end.1 == Some(true));
        let Some((first, _)) = present.nth(count - 1) else { return };
        let Self { rows, ends, dropped, .. } = self;
        let (mut number, mut start, mut len) = (0, 0, 0);
        ends.retain_mut(|(end, counted)| {
            let row = start..*end;
            let stays = number >= first || counted.is_none();
            (number, start) = (number + 1, row.end);
            if stays {
                *end = len + row.len();
                rows.copy_within(row, len);
                len = *end;
            }
            *dropped += u64::from(!stays);
            stays
        });
        rows.truncate(len);
    }

    fn append(&mut self, out: &mut Builder) -> Result<()> {
        let mut start = 0;
        for (end, _) in self.ends.drain(..) {
            out.append(&self.rows[start..end])?;
            start = end;
        }
        self.rows.clear();
        Ok(())
    }
}
