//! Borrowed rows: encoded bytes, compared without decoding and decoded on demand.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

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
        Self { bytes, of: PhantomData }
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
        self.bytes == other.bytes
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
        self.bytes.cmp(other.bytes)
    }
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

impl<K: Row> BatchContainer for EncVec<K> {
    type Owned = K;
    type ReadItem<'a> = Enc<'a, K>;

    #[inline(always)]
    fn into_owned(item: Enc<'_, K>) -> K {
        item.get()
    }

    fn push_ref(&mut self, item: Enc<'_, K>) {
        self.bytes.extend_from_slice(item.bytes);
        self.ends.push(self.bytes.len());
    }

    fn push_own(&mut self, item: &K) {
        item.encode(Form::Column, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn with_capacity(size: usize) -> Self {
        Self { bytes: Vec::new(), ends: Vec::with_capacity(size), of: PhantomData }
    }

    fn merge_capacity(a: &Self, b: &Self) -> Self {
        Self::with_capacity(a.ends.len() + b.ends.len())
    }

    fn reborrow<'b, 'a: 'b>(item: Enc<'a, K>) -> Enc<'b, K> {
        item
    }

    #[inline]
    fn index(&self, index: usize) -> Enc<'_, K> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Enc::new(&self.bytes[start..self.ends[index]])
    }

    fn len(&self) -> usize {
        self.ends.len()
    }
}
