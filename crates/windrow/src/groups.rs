//! Groups: numbers the distinct rows of record batches.
//!
//! ```text
//! RecordBatch --> rows for equality --> hashes --slot: tag, number--> row of the group, the same?
//!                                                                      yes: its number
//!                                                                      no: the next slot, or a new group
//! rows of the groups   | row 0 | row 1 | row 2 | ...     one after the other
//! ```
//!
//! Invariant: at most three quarters of the slots are used; slot `tag, number + 1` stands at or
//! behind the place that the hash of the group's row selects, with no unused slot between.

use std::fmt;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use windrow_kernel::partition::string_hash::word;
use windrow_kernel::prefetch::{prefetch_row, prefetch_value};
use windrow_pool::{Lease, Pool};
use windrow_rows::{Order, Result, RowEncoder, Rows};

/// Rows that are looked up together: their slots, and the rows of their groups, are prefetched.
const BLOCK: usize = 64;
/// Least number of slots.
const SLOTS: usize = 1024;

/// Numbers distinct rows from 0 on, in the order in which they first occur: for aggregations, and to
/// count distinct rows.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow::{Groups, Pool};
///
/// # let cities: ArrayRef = Arc::new(Int64Array::from(vec![5, 9, 5]));
/// # let batch = RecordBatch::try_from_iter([("city", cities)])?;
/// let mut groups = Groups::new(&batch.schema(), &Pool::unlimited())?;
/// let mut numbers = Vec::new();
/// groups.intern(&batch, &mut numbers)?;
/// assert_eq!(numbers, [0, 1, 0]);
/// assert_eq!(groups.rows(0..2)?.num_rows(), 2);
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// Nulls are one value. Floats are equal if their bits are.
///
/// # Cost
/// An encoding of the rows, a hash of their bytes, and a comparison with the group's row: see the
/// bench `rows --only groups`. A group takes the bytes of its row and 11 to 22 bytes of slots, and eight
/// more if rows differ in length; while the table grows, twice as much.
pub struct Groups {
    encoder: RowEncoder,
    /// Bytes of every row, or `None` if `ends` has the end of each.
    stride: Option<usize>,
    pool: Pool,
    /// Tag and number of a group, plus one; 0 if the slot is unused. The length is a power of two.
    slots: Vec<u64>,
    rows: Vec<u8>,
    ends: Vec<usize>,
    len: usize,
    /// Memory of `slots`, `rows` and `ends`.
    lease: Lease,
    encoded: Rows,
}

impl Groups {
    /// Creates a table for record batches of `schema`, which leases its memory from `pool`.
    ///
    /// # Errors
    /// [`crate::Error::UnsupportedColumn`] for types that have no rows.
    pub fn new(schema: &Schema, pool: &Pool) -> Result<Self> {
        let encoder = RowEncoder::new(&Order::unordered().bind(schema)?);
        Ok(Self {
            stride: encoder.stride(),
            encoder,
            pool: pool.clone(),
            slots: Vec::new(),
            rows: Vec::new(),
            ends: Vec::new(),
            len: 0,
            lease: pool.budget().lease(0),
            encoded: Rows::default(),
        })
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Replaces `numbers` by the group of each row of `batch`. With a limit, ends early if the table
    /// cannot grow: `numbers` then has the groups of the rows so far. Take the groups out with
    /// [`Groups::rows`] and [`Groups::clear`], and go on with the remaining rows; a table without
    /// groups takes at least one row.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`] for another schema, [`crate::Error::Value`] as
    /// [`RowEncoder::encode`], and errors of spilling other users of the pool.
    pub fn intern(&mut self, batch: &RecordBatch, numbers: &mut Vec<u32>) -> Result<()> {
        numbers.clear();
        let mut encoded = std::mem::take(&mut self.encoded);
        let done = self.encoder.encode_into(batch, &mut encoded);
        let done = done.and_then(|()| self.intern_rows(&encoded, numbers));
        self.encoded = encoded;
        done
    }

    fn intern_rows(&mut self, rows: &Rows, numbers: &mut Vec<u32>) -> Result<()> {
        let mut hashes = [0; BLOCK];
        for start in (0..rows.len()).step_by(BLOCK) {
            let block = start..(start + BLOCK).min(rows.len());
            if !self.reserve(rows, block.clone())? {
                // A row at a time, as far as memory goes.
                for row in block {
                    if !self.reserve(rows, row..row + 1)? {
                        return Ok(());
                    }
                    numbers.push(self.number(rows.row(row), word(rows.row(row))));
                }
                continue;
            }
            let mask = self.slots.len() - 1;
            for (row, hash) in block.clone().zip(&mut hashes) {
                *hash = word(rows.row(row));
                prefetch_value(&self.slots[*hash as usize & mask]);
            }
            for hash in &hashes[..block.len()] {
                let slot = self.slots[*hash as usize & mask];
                if slot != 0 {
                    prefetch_row(self.row(number_of(slot)));
                }
            }
            for (row, hash) in block.zip(hashes) {
                numbers.push(self.number(rows.row(row), hash));
            }
        }
        Ok(())
    }

    /// Returns the number of the group of `row`, new or not. Memory for it must be there.
    #[inline(always)]
    fn number(&mut self, row: &[u8], hash: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let tag = hash >> 32;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if slot >> 32 == tag && equal(self.row(number_of(slot)), row) {
                return number_of(slot) as u32;
            }
            at = (at + 1) & mask;
        }
        let number = self.len as u32;
        self.slots[at] = tag << 32 | u64::from(number + 1);
        self.rows.extend_from_slice(row);
        if self.stride.is_none() {
            self.ends.push(self.rows.len());
        }
        self.len += 1;
        number
    }

    /// Returns the row of a group.
    #[inline(always)]
    fn row(&self, number: usize) -> &[u8] {
        match self.stride {
            Some(stride) => &self.rows[number * stride..][..stride],
            None => {
                let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
                &self.rows[start..self.ends[number]]
            }
        }
    }

    /// Makes room for as many groups as there are rows in `block`. Returns false if the limit does
    /// not allow it; one group always has room.
    fn reserve(&mut self, rows: &Rows, block: Range<usize>) -> Result<bool> {
        let bytes = match rows.stride() {
            Some(stride) => stride * block.len(),
            None => block.clone().map(|row| rows.row(row).len()).sum(),
        };
        let len = self.len + block.len();
        let slots = match self.slots.len() {
            slots if len <= slots / 4 * 3 => slots,
            slots => (slots * 2).max(SLOTS),
        };
        let grown = |used: usize, capacity: usize| {
            if used <= capacity { capacity } else { used.max(capacity * 2) }
        };
        let bytes = grown(self.rows.len() + bytes, self.rows.capacity());
        let ends = match self.stride {
            Some(_) => 0,
            None => grown(len, self.ends.capacity()),
        };
        let now = (self.slots.len(), self.rows.capacity(), self.ends.capacity());
        if (slots, bytes, ends) == now {
            return Ok(true);
        }
        if len >= u32::MAX as usize {
            return Ok(false);
        }
        // The old memory is leased until the new one is filled.
        let memory = slots * size_of::<u64>() + bytes + ends * size_of::<usize>();
        let lease = match self.pool.lease_or_evict(memory)? {
            Some(lease) => lease,
            None if self.len == 0 && block.len() == 1 => self.pool.budget().lease(memory),
            None => return Ok(false),
        };
        self.rows.reserve_exact(bytes - self.rows.len());
        self.ends.reserve_exact(ends.saturating_sub(self.ends.len()));
        if slots > self.slots.len() {
            self.rehash(slots);
        }
        self.lease = lease;
        Ok(true)
    }

    /// Moves all groups to `slots` slots.
    fn rehash(&mut self, slots: usize) {
        let mut to = vec![0; slots];
        for number in 0..self.len {
            let hash = word(self.row(number));
            let mut at = hash as usize & (slots - 1);
            while to[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            to[at] = hash >> 32 << 32 | (number as u64 + 1);
        }
        self.slots = to;
    }

    /// Returns the rows of a range of groups, in the order of their numbers.
    ///
    /// # Errors
    /// [`crate::Error::Value`] if a column cannot hold as many bytes: take fewer groups.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn rows(&self, groups: Range<usize>) -> Result<RecordBatch> {
        assert!(groups.end <= self.len, "groups {groups:?} of {}", self.len);
        self.encoder.decode_rows(groups.map(|number| self.row(number)))
    }

    /// Removes all groups, and returns their memory.
    pub fn clear(&mut self) {
        (self.slots, self.rows, self.ends, self.len) = Default::default();
        self.lease = self.pool.budget().lease(0);
    }
}

/// Compares two rows, in words: a call takes longer than most comparisons.
#[inline(always)]
fn equal(a: &[u8], b: &[u8]) -> bool {
    let (Some(last_a), Some(last_b)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) else {
        return a == b;
    };
    a.len() == b.len() && last_a == last_b && a.as_chunks::<8>().0 == b.as_chunks::<8>().0
}

/// Returns the number of the group in a used slot.
fn number_of(slot: u64) -> usize {
    slot as u32 as usize - 1
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Groups");
        out.field("groups", &self.len).field("leased", &self.lease.bytes());
        out.finish_non_exhaustive()
    }
}
