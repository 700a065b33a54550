//! Borrowed rows: encoded bytes, compared without decoding and decoded on demand.

use std::cmp::Ordering;
use std::fmt;

use differential_dataflow::trace::implementations::BatchContainer;

use crate::of::Of;
use crate::row::{Form, Row};

/// An encoded value of `K`. Comparisons use the bytes. [`Enc::get`] decodes: almost free for
/// numbers, a copy for text.
pub struct Enc<'a, K> {
    bytes: &'a [u8],
    of: Of<K>,
}

impl<'a, K> Enc<'a, K> {
    /// Wraps `bytes`, the encoding of a `K` in columns of its own.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, of: Of::default() }
    }

    /// Returns the encoded bytes.
    #[inline(always)]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

impl<K: Row> Enc<'_, K> {
    /// Decodes the value.
    #[inline(always)]
    pub fn get(self) -> K {
        K::from_bytes(self.bytes)
    }
}

impl<K> Clone for Enc<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Enc<'_, K> {}

impl<K> PartialEq for Enc<'_, K> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.bytes.len() == other.bytes.len() && self.cmp(other).is_eq()
    }
}

impl<K> Eq for Enc<'_, K> {}

impl<K> PartialOrd for Enc<'_, K> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Enc<'_, K> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.bytes, other.bytes)
    }
}

/// Compares bytes. Numbers are compared in registers: a call of `memcmp` takes longer.
#[inline(always)]
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some((first, a)), Some((other, b))) = (a.split_first_chunk(), b.split_first_chunk()) {
        let order = u64::from_be_bytes(*first).cmp(&u64::from_be_bytes(*other));
        return order.then_with(|| if a.len() + b.len() == 0 { order } else { a.cmp(b) });
    }
    if let (Some((first, a)), Some((other, b))) = (a.split_first_chunk(), b.split_first_chunk()) {
        let order = u32::from_be_bytes(*first).cmp(&u32::from_be_bytes(*other));
        return order.then_with(|| if a.len() + b.len() == 0 { order } else { a.cmp(b) });
    }
    // At most three bytes of one side, often none.
    a.iter().cmp(b)
}

impl<K: Row> fmt::Debug for Enc<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Encoded rows, one after the other: the container for keys and values within a dataflow. Two
/// arrangements join if their keys have the same container type.
pub struct EncVec<K> {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    of: Of<K>,
}

impl<K> Default for EncVec<K> {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), of: Of::default() }
    }
}

impl<K> EncVec<K> {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: &[u8]) {
        self.push_with(|out| out.extend_from_slice(row));
    }

    /// Adds a row written by `put`.
    pub(crate) fn push_with(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        put(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Returns the row at `index`.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Enc<'_, K> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Enc::new(&self.bytes[start..self.ends[index]])
    }

    /// Returns the last row.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.ends.len().checked_sub(1).map(|last| self.get(last).bytes())
    }

    /// Returns all rows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index).bytes())
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of all rows.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all rows.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl<K: Row> BatchContainer for EncVec<K> {
    type Owned = K;
    type ReadItem<'a> = Enc<'a, K>;

    #[inline(always)]
    fn into_owned(item: Enc<'_, K>) -> K {
        item.get()
    }

    fn push_ref(&mut self, item: Enc<'_, K>) {
        self.push(item.bytes);
    }

    fn push_own(&mut self, item: &K) {
        self.push_with(|out| item.encode(Form::Column, out));
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn with_capacity(size: usize) -> Self {
        Self { ends: Vec::with_capacity(size), ..Self::default() }
    }

    fn merge_capacity(a: &Self, b: &Self) -> Self {
        Self::with_capacity(a.len() + b.len())
    }

    fn reborrow<'b, 'a: 'b>(item: Enc<'a, K>) -> Enc<'b, K> {
        item
    }

    #[inline]
    fn index(&self, index: usize) -> Enc<'_, K> {
        self.get(index)
    }

    fn len(&self) -> usize {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::compare;

    proptest! {
        #[test]
        fn bytes_compare_as_slices_do(
            start in prop::collection::vec(0u8..2, 0..12),
            a in prop::collection::vec(any::<u8>(), 0..6),
            b in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let (a, b) = ([&start[..], &a].concat(), [start, b].concat());
            prop_assert_eq!(compare(&a, &b), a.cmp(&b));
            prop_assert_eq!(compare(&a, &a), a.cmp(&a));
        }
    }
}
