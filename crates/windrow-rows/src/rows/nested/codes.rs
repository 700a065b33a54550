//! Precomputed codes: elements of lists, values of runs and of dictionaries.
//!
//! ```text
//! elements   | 01 code 0 | 01 code 1 | 01 code 2 | 01 code 3 |     framed as in their lists
//! list 0..3  \___________________________________/                 one copy, like one value
//! ```

use arrow_array::{Array, ArrayRef};

use super::framing::{Frame, Framing, Ordered};
use super::tree::Tree;
use crate::error::Result;
use windrow_kernel::copy::copy_short;
use windrow_kernel::rows::blocks::{encoded_len, put_block_string};

/// Values of one field that are written before the next field.
const TILE: usize = 512;

/// Codes of values, one after the other.
pub(in crate::rows) struct Codes {
    bytes: Vec<u8>,
    places: Places,
}

enum Places {
    /// All codes are these bytes, stored once.
    Repeated,
    /// All codes have this length.
    Same(usize),
    /// The start of each code, and the end of the last.
    Offsets(Vec<usize>),
}

/// Returns the start of each value, and the end of the last, for values of `lens` bytes.
pub(super) fn offsets(lens: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut end = 0;
    let ends = lens.map(|len| {
        end += len;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// A selection of values.
#[derive(Clone, Copy)]
pub(in crate::rows) enum Picks<'a> {
    /// The first values, by number.
    First(usize),
    Keys(&'a [usize]),
}

impl Picks<'_> {
    fn len(self) -> usize {
        match self {
            Self::First(count) => count,
            Self::Keys(keys) => keys.len(),
        }
    }

    #[inline(always)]
    fn get(self, at: usize) -> usize {
        match self {
            Self::First(_) => at,
            Self::Keys(keys) => keys[at],
        }
    }
}

impl Codes {
    /// Encodes the values `picks` of `fields`. The fields of a value follow each other.
    pub(in crate::rows) fn of<F: Framing>(
        fields: &[Tree<F>],
        picks: Picks<'_>,
        frame: Frame,
    ) -> Self {
        let count = picks.len();
        if let Some(code) = fields.iter().map(Tree::constant).collect::<Option<Vec<_>>>() {
            let one = Self { bytes: code.concat(), places: Places::Repeated };
            return one.framed(1, frame);
        }
        let front = match frame {
            Frame::Behind(_) => 1,
            Frame::Bare | Frame::Blocks(_) => 0,
        };
        let same = fields.iter().try_fold(front, |sum, field| Some(sum + field.same_len()?));
        let (places, end) = match same {
            Some(len) => (Places::Same(len), len * count),
            None => {
                let picks: Vec<usize> = (0..count).map(|at| picks.get(at)).collect();
                let mut offsets = vec![front; count + 1];
                offsets[0] = 0;
                fields.iter().for_each(|field| field.add_lengths(&picks, &mut offsets[1..]));
                let mut end = 0;
                for offset in &mut offsets {
                    end += *offset;
                    *offset = end;
                }
                (Places::Offsets(offsets), end)
            }
        };
        let mut codes = Self { bytes: vec![0; end], places };
        codes.put(fields, picks, frame);
        match frame {
            Frame::Bare | Frame::Behind(_) => codes,
            Frame::Blocks(_) => codes.framed(count, frame),
        }
    }

    /// Writes the values tile by tile: the next field finds the last output in the cache.
    fn put<F: Framing>(&mut self, fields: &[Tree<F>], picks: Picks<'_>, frame: Frame) {
        let (mut rows, mut cursors) = ([0; TILE], [0; TILE]);
        for first in (0..picks.len()).step_by(TILE) {
            let len = TILE.min(picks.len() - first);
            let (rows, cursors) = (&mut rows[..len], &mut cursors[..len]);
            for ((row, cursor), at) in rows.iter_mut().zip(&mut *cursors).zip(first..) {
                (*row, *cursor) = (picks.get(at), self.start(at));
                if let Frame::Behind(byte) = frame {
                    self.bytes[*cursor] = byte;
                    *cursor += 1;
                }
            }
            fields.iter().for_each(|field| field.put(rows, cursors, &mut self.bytes));
        }
    }

    /// Puts the codes into a frame in which they were not written.
    fn framed(self, count: usize, frame: Frame) -> Self {
        match frame {
            Frame::Bare => self,
            Frame::Behind(byte) => Self { bytes: [&[byte], &self.bytes[..]].concat(), ..self },
            Frame::Blocks(flip) => {
                let lens = (0..count).map(|at| encoded_len(self.len_between(at, at + 1)));
                let offsets = offsets(lens);
                let mut bytes = vec![0; offsets[count]];
                for at in 0..count {
                    let code = &self.bytes[self.start(at)..self.start(at + 1)];
                    put_block_string(code, flip, &mut bytes[offsets[at]..]);
                }
                let places = match self.places {
                    Places::Repeated => Places::Repeated,
                    Places::Same(len) => Places::Same(encoded_len(len)),
                    Places::Offsets(_) => Places::Offsets(offsets),
                };
                Self { bytes, places }
            }
        }
    }

    /// Returns true if the codes take no bytes.
    pub(in crate::rows) fn is_nothing(&self) -> bool {
        matches!(self.places, Places::Repeated) && self.bytes.is_empty()
    }

    /// Returns the start of a value; of repeated codes, only the first two starts.
    #[inline(always)]
    fn start(&self, at: usize) -> usize {
        match &self.places {
            Places::Repeated => at.min(1) * self.bytes.len(),
            Places::Same(len) => at * len,
            Places::Offsets(offsets) => offsets[at],
        }
    }

    /// Returns the bytes of the values from `start` to `end`.
    #[inline(always)]
    pub(in crate::rows) fn len_between(&self, start: usize, end: usize) -> usize {
        match &self.places {
            Places::Repeated => (end - start) * self.bytes.len(),
            Places::Same(len) => (end - start) * len,
            Places::Offsets(offsets) => offsets[end] - offsets[start],
        }
    }

    /// Writes the values from `start` to `end` to the start of `out`; returns their bytes.
    #[inline(always)]
    pub(in crate::rows) fn write(&self, start: usize, end: usize, out: &mut [u8]) -> usize {
        let len = self.len_between(start, end);
        if let Places::Repeated = self.places {
            let copies = out[..len].chunks_exact_mut(self.bytes.len().max(1));
            copies.for_each(|copy| copy.copy_from_slice(&self.bytes));
        } else {
            let first = self.start(start);
            copy_short(out, &self.bytes[first..first + len]);
        }
        len
    }

    /// Returns the codes of all `count` values, and the start of each code and the end of the last.
    pub(in crate::rows) fn into_parts(self, count: usize) -> (Vec<u8>, Vec<usize>) {
        match self.places {
            Places::Repeated => {
                let len = self.bytes.len();
                (self.bytes.repeat(count), (0..=count).map(|at| at * len).collect())
            }
            Places::Same(len) => (self.bytes, (0..=count).map(|at| at * len).collect()),
            Places::Offsets(offsets) => (self.bytes, offsets),
        }
    }
}

/// Encodes all values of `array` in the form of columns that take no part in an order
/// ([`Form::STORED`](super::Form::STORED)). Returns the codes, the start of each code and the end
/// of the last.
pub(in crate::rows) fn stored(array: &ArrayRef) -> Result<(Vec<u8>, Vec<usize>)> {
    let tree = [Tree::of(array, Ordered { low: true })?];
    let codes = Codes::of(&tree, Picks::First(array.len()), Frame::Bare);
    Ok(codes.into_parts(array.len()))
}
