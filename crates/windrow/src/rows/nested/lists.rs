//! Lists of every kind to their ordered codes: with offsets, views, of one size, maps.
//!
//! ```text
//! framed        | 01 element | 01 element | 00 |         of one size   | element | element |
//! cursor of a list ^      ^ of an element
//! ```
//!
//! The bytes of elements are summed beforehand, so that each element has its place before any of them
//! is written, and all elements of many lists are written at once.

use arrow_array::{Array, ArrayRef};

use super::super::fixed::{Word, with_word};
use super::super::spans::{self, Spans};
use super::part::Part;
use super::{END, MORE, VALUE};
use crate::error::Result;
use crate::order::code::{Kind, Node};

/// Lists of any kind.
pub(super) struct Lists {
    /// Each element behind a byte, and an end.
    framed: bool,
    /// Where each list begins and ends among the elements.
    spans: Spans,
    sizes: Sizes,
    elements: Box<Part>,
}

/// Bytes of the elements of lists.
enum Sizes {
    Same(usize),
    /// Sums of those in front of each element.
    Sums(Vec<usize>),
}

impl Sizes {
    fn of(elements: &Part, count: usize) -> Self {
        if let Some(size) = elements.same_len() {
            return Self::Same(size);
        }
        let mut sizes = vec![0; count + 1];
        let picks: Vec<usize> = (0..count).collect();
        elements.add_lengths(&picks, &mut sizes[1..]);
        let mut sum = 0;
        for size in &mut sizes {
            sum += *size;
            *size = sum;
        }
        Self::Sums(sizes)
    }

    #[inline(always)]
    fn between(&self, start: usize, end: usize) -> usize {
        match self {
            Self::Same(size) => size * (end - start),
            Self::Sums(sums) => sums[end] - sums[start],
        }
    }
}

impl Lists {
    pub(super) fn new(
        framed: bool,
        mut spans: Spans,
        elements: &ArrayRef,
        node: &Node,
    ) -> Result<Self> {
        let elements = spans::used(&mut spans, elements);
        let count = elements.len();
        let elements = Box::new(Part::of(&elements, node)?);
        let sizes = Sizes::of(&elements, count);
        Ok(Self { framed, spans, sizes, elements })
    }

    /// Bytes of a list, without its marker.
    pub(super) fn len_of(&self, row: usize) -> usize {
        let (start, end) = self.spans[row];
        let frames = if self.framed { end - start + 1 } else { 0 };
        self.sizes.between(start, end) + frames
    }

    /// Writes the list of each of `picks` at its cursor, and moves the cursor behind it.
    pub(super) fn put(&self, picks: &[usize], low: bool, cursors: &mut [usize], out: &mut [u8]) {
        if !self.framed && self.elements.is_nothing() {
            return;
        }
        if let (true, Some((values, width, kind))) = (self.framed, self.elements.numbers()) {
            return with_word!(width, W => self.put_numbers::<W>(values, kind, picks, cursors, out));
        }
        let count = picks.iter().map(|&row| self.spans[row].1 - self.spans[row].0).sum();
        let (mut elements, mut places) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (&row, cursor) in picks.iter().zip(cursors) {
            let (start, end) = self.spans[row];
            elements.extend(start..end);
            if !self.framed {
                for element in start..end {
                    places.push(*cursor);
                    *cursor += self.sizes.between(element, element + 1);
                }
                continue;
            }
            for element in start..end {
                out[*cursor] = MORE;
                places.push(*cursor + 1);
                *cursor += 1 + self.sizes.between(element, element + 1);
            }
            out[*cursor] = END;
            *cursor += 1;
        }
        self.elements.put(&elements, low, &mut places, out);
    }

    /// Lists of numbers without nulls: each with its frame and its marker.
    fn put_numbers<W: Word>(
        &self,
        values: &[u8],
        kind: Kind,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        let element = 2 + W::BYTES;
        for (&row, cursor) in picks.iter().zip(cursors) {
            let (start, end) = self.spans[row];
            let values = values[start * W::BYTES..end * W::BYTES].chunks_exact(W::BYTES);
            let (elements, behind) = out[*cursor..].split_at_mut((end - start) * element);
            for (target, value) in elements.chunks_exact_mut(element).zip(values) {
                (target[0], target[1]) = (MORE, VALUE);
                W::read_native(value).code(kind, false).write_big(&mut target[2..]);
            }
            behind[0] = END;
            *cursor += (end - start) * element + 1;
        }
    }
}
