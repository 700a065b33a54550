//! A column of nested values, ready to be written into rows.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::part::Part;
use crate::error::Result;
use crate::order::code::Node;

/// Values of a nested column, and the bytes that each takes.
pub(in crate::rows) struct Nested {
    values: Box<Part>,
    /// Whether nulls inside have low codes.
    low: bool,
    nulls: Option<NullBuffer>,
    /// Bytes of the code of each row, without a marker; 0 for a null.
    lengths: Vec<usize>,
}

impl Nested {
    pub(in crate::rows) fn of(array: &ArrayRef, node: &Node, low: bool) -> Result<Self> {
        let values = Box::new(Part::of(array, node)?);
        let rows = array.len();
        let nulls = match (0..rows).any(|row| values.is_null(row)) {
            true => Some(NullBuffer::from_iter((0..rows).map(|row| !values.is_null(row)))),
            false => None,
        };
        let mut lengths = vec![0; rows];
        let all: Vec<usize> = (0..rows).collect();
        match &nulls {
            None => values.add_body_lengths(&all, &mut lengths),
            Some(nulls) => {
                let picks: Vec<usize> = nulls.valid_indices().collect();
                let mut bodies = vec![0; picks.len()];
                values.add_body_lengths(&picks, &mut bodies);
                picks.iter().zip(bodies).for_each(|(&row, body)| lengths[row] = body);
            }
        }
        Ok(Self { values, low, nulls, lengths })
    }

    pub(in crate::rows) fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    pub(in crate::rows) fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Writes the codes of `rows`, complemented by `flip`, at their cursors, and moves those behind
    /// them.
    pub(in crate::rows) fn put(
        &self,
        rows: Range<usize>,
        flip: u8,
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        match &self.nulls {
            None => {
                let picks: Vec<usize> = rows.clone().collect();
                self.values.put_body(&picks, self.low, cursors, out);
            }
            Some(nulls) => {
                let valid = rows.clone().zip(&*cursors).filter(|(row, _)| nulls.is_valid(*row));
                let (picks, mut places): (Vec<usize>, Vec<usize>) =
                    valid.map(|(row, &cursor)| (row, cursor)).unzip();
                self.values.put_body(&picks, self.low, &mut places, out);
                for (row, cursor) in rows.clone().zip(&mut *cursors) {
                    *cursor += self.lengths[row];
                }
            }
        }
        if flip != 0 {
            for (row, &end) in rows.zip(&*cursors) {
                out[end - self.lengths[row]..end].iter_mut().for_each(|byte| *byte ^= flip);
            }
        }
    }

    /// The codes of all rows, one behind the other, and where each begins and the last one ends.
    pub(in crate::rows) fn codes(&self) -> (Vec<u8>, Vec<usize>) {
        let mut offsets = Vec::with_capacity(self.lengths.len() + 1);
        let mut end = 0;
        offsets.push(0);
        offsets.extend(self.lengths.iter().map(|length| {
            end += length;
            end
        }));
        let mut bytes = vec![0; end];
        let mut cursors = offsets[..self.lengths.len()].to_vec();
        self.put(0..self.lengths.len(), 0, &mut cursors, &mut bytes);
        (bytes, offsets)
    }
}
