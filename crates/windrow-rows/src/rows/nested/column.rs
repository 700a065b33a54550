//! Columns of nested values, prepared for the encoder.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::super::spans;
use super::codes::{Codes, Picks, offsets};
use super::framing::{Frame, Ordered};
use super::tree::Tree;
use crate::error::Result;

/// Values of a nested column, and the length of each row's code.
pub(crate) struct Nested {
    values: Box<Tree<Ordered>>,
    /// Position of each row's value, if a value is stored once for many rows.
    keys: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
    /// Bytes of each row's code, without a marker; 0 for a null.
    lengths: Vec<usize>,
}

/// Encodes all values of `array` in the form of columns that take no part in an order
/// ([`Form::STORED`](super::Form::STORED)). Returns the codes, the start of each code and the end
/// of the last.
pub(in crate::rows) fn stored(array: &ArrayRef) -> Result<(Vec<u8>, Vec<usize>)> {
    let tree = [Tree::of(array, Ordered { low: true })?];
    let codes = Codes::of(&tree, Picks::First(array.len()), Frame::Bare);
    Ok(codes.into_parts(array.len()))
}

impl Nested {
    pub(in crate::rows) fn of(array: &ArrayRef, low: bool) -> Result<Self> {
        let (keys, nulls, values) = spans::resolved(array);
        let values = Box::new(Tree::of(&values, Ordered { low })?);
        let mut nested = Self { values, keys, nulls, lengths: vec![0; array.len()] };
        let (rows, picks) = nested.picks(0..array.len());
        let mut bodies = vec![0; picks.len()];
        nested.values.add_body_lengths(&picks, &mut bodies);
        rows.iter().zip(bodies).for_each(|(&row, body)| nested.lengths[row] = body);
        Ok(nested)
    }

    /// Returns the rows that are not null, and the position of each such row's value.
    fn picks(&self, rows: Range<usize>) -> (Vec<usize>, Vec<usize>) {
        let valid = |row: &usize| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let key = |row: usize| self.keys.as_ref().map_or(row, |keys| keys[row]);
        rows.filter(valid).map(|row| (row, key(row))).unzip()
    }

    pub(crate) fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    pub(in crate::rows) fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Writes the codes of `rows`, complemented by `flip`, at the cursors, and moves the cursors
    /// past the codes.
    pub(in crate::rows) fn put(
        &self,
        rows: Range<usize>,
        flip: u8,
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        let (valid, picks) = self.picks(rows.clone());
        let mut places: Vec<usize> = valid.iter().map(|row| cursors[row - rows.start]).collect();
        self.values.put_bodies(&picks, &mut places, out);
        for (row, cursor) in rows.clone().zip(&mut *cursors) {
            *cursor += self.lengths[row];
        }
        if flip != 0 {
            for (row, &end) in rows.zip(&*cursors) {
                out[end - self.lengths[row]..end].iter_mut().for_each(|byte| *byte ^= flip);
            }
        }
    }

    /// Returns the codes of all rows, one after the other; the start of each code and the end of
    /// the last.
    pub(crate) fn codes(&self) -> (Vec<u8>, Vec<usize>) {
        let (offsets, rows) = (offsets(self.lengths.iter().copied()), self.lengths.len());
        let (mut bytes, mut cursors) = (vec![0; offsets[rows]], offsets[..rows].to_vec());
        self.put(0..rows, 0, &mut cursors, &mut bytes);
        (bytes, offsets)
    }
}
