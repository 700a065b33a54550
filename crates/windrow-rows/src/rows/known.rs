//! Known payload columns of a row, and rows filled with known values of an older row.
//!
//! ```text
//!           key, then, sequence    null bits   fixed    bodies        tail
//! newer   | 07 ...               | 101       | 7 0 9  | 02 ab | 00  | 00 |
//! older   | 07 ...               | 111       | 4 5 8  | 01 c  | 00  | 00 |
//! filled  | of the newer         | 111       | 7 5 9  | 02 ab | 00  | of the newer |
//! ```
//! The columns of the order come from the newer row. Nested and encoded values contain their nulls
//! in their bodies; a union is null if its field is null.
//!
//! Invariant: a filled row is a row of the layout, with the rank of the newer row. Filling is
//! associative: the result does not depend on which neighbouring rows are combined first.

use super::nested::Form;
use super::row_ref::RowRef;
use super::{length, sequence, skip};
use crate::order::code::{Node, PayloadCode};
use crate::order::{Layout, Sequence, Tail};

/// The payload of a layout.
#[derive(Debug)]
pub struct Payload {
    layout: Layout,
    fields: Vec<Field>,
    /// Bytes of null bits, and bytes of null bits and fixed values.
    bits: usize,
    head: usize,
    /// The known columns of a row without nulls, in the form of [`Payload::note`].
    all: Vec<u8>,
}

#[derive(Debug)]
struct Field {
    code: PayloadCode,
    /// Position of a fixed value in the head.
    at: usize,
    nulls: Nulls,
}

/// Location of a value's null flag.
#[derive(Debug)]
enum Nulls {
    None,
    /// A bit of the head.
    Bit(usize),
    /// The body, which is the code of a value.
    Body(Node),
}

impl Payload {
    /// Returns the payload of rows of `layout`.
    pub fn of(layout: &Layout) -> Self {
        let null_bits = &layout.shape().null_bits;
        let bits = null_bits.len().div_ceil(8);
        let mut head = bits;
        let mut fields = Vec::with_capacity(layout.payload().len());
        let mut all = vec![0; bits];
        (0..null_bits.len()).for_each(|bit| all[bit / 8] |= 1 << (bit % 8));
        for (place, &(column, code)) in layout.payload().iter().enumerate() {
            let field = layout.schema().field(column);
            let node = || Node::of(field.data_type()).unwrap_or(Node::Nothing);
            let nulls = match null_bits.binary_search(&place) {
                Ok(bit) => Nulls::Bit(bit),
                Err(_) if code == PayloadCode::Value && field.is_nullable() => Nulls::Body(node()),
                Err(_) => Nulls::None,
            };
            all.extend(matches!(nulls, Nulls::Body(_)).then_some(1));
            fields.push(Field { code, at: head, nulls });
            head += code.width();
        }
        Self { layout: layout.clone(), fields, bits, head, all }
    }

    /// Writes the known columns of `row` to `known`: the null bits, and a byte for each nested or
    /// encoded value.
    pub fn note(&self, row: &[u8], known: &mut Vec<u8>) {
        known.clear();
        let start = self.start(row);
        known.extend(row.get(start..start + self.bits).unwrap_or(&[]));
        let mut at = start + self.head;
        let values = self.all.len() - self.bits;
        for field in self.bodies().take_while(|_| values > 0) {
            let body = body(row, at).unwrap_or(&[]);
            at += body.len();
            known.extend(field.body_is_known(body).map(u8::from));
        }
        known.resize(self.all.len(), 0);
    }

    /// Returns true if `known` covers all columns.
    pub fn is_all(&self, known: &[u8]) -> bool {
        known == self.all
    }

    /// Writes `newer` to `out`, with nulls replaced by the values of `older`. Copies `newer` if the
    /// bytes are not rows of the layout.
    pub fn fill(&self, newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if self.filled(newer, older, out).is_none() {
            out.clear();
            out.extend_from_slice(newer);
        }
    }

    fn filled(&self, newer: &[u8], older: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (new, old) = (self.start(newer), self.start(older));
        let heads = [newer.get(new..new + self.head)?, older.get(old..old + self.head)?];
        out.extend_from_slice(&newer[..new]);
        out.extend(heads[0][..self.bits].iter().zip(heads[1]).map(|(a, b)| a | b));
        for field in self.fields.iter().filter(|field| !field.code.varies()) {
            let from = if field.bit_is_set(heads[0]) { heads[0] } else { heads[1] };
            out.extend_from_slice(&from[field.at..][..field.code.width()]);
        }
        let (mut new, mut old) = (new + self.head, old + self.head);
        for field in self.bodies() {
            let bodies = [body(newer, new)?, body(older, old)?];
            let is_known = |at: usize| match field.body_is_known(bodies[at]) {
                Some(is_known) => is_known,
                None => field.bit_is_set(heads[at]),
            };
            // Unions have several nulls: the older null does not replace the newer.
            let is_taken = !is_known(0) && is_known(1);
            out.extend_from_slice(bodies[usize::from(is_taken)]);
            (new, old) = (new + bodies[0].len(), old + bodies[1].len());
        }
        out.extend_from_slice(&newer[new..]);
        Some(())
    }

    /// Returns true for a row that deletes its key.
    pub fn is_tombstone(&self, row: &[u8]) -> bool {
        matches!(self.layout.tail(), Tail::Tombstone(_)) && row.last() == Some(&1)
    }

    fn bodies(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.code.varies())
    }

    /// Returns the start of the payload.
    fn start(&self, row: &[u8]) -> usize {
        if self.bodies().next().is_none() {
            return row.len().saturating_sub(self.layout.tail().len() + self.head);
        }
        let slots = self.layout.slots().iter();
        let at = slots.fold(0, |at, slot| skip::skip(slot, row, at));
        match self.layout.sequence() {
            Sequence::None => at,
            Sequence::Wide => at + 8,
            Sequence::Short => {
                let flip = if self.layout.sequence_descends() { 0xff } else { 0 };
                sequence::skip_short(row, at, flip)
            }
        }
    }
}

impl Field {
    fn bit_is_set(&self, head: &[u8]) -> bool {
        match self.nulls {
            Nulls::Bit(bit) => head[bit / 8] >> (bit % 8) & 1 == 1,
            Nulls::None | Nulls::Body(_) => true,
        }
    }

    /// Returns true if a body, length included, is a value and not a null; `None` if the body does
    /// not contain its null.
    fn body_is_known(&self, body: &[u8]) -> Option<bool> {
        let Nulls::Body(node) = &self.nulls else { return None };
        let code = length::take(body).map_or(&[][..], |(_, bytes)| &body[bytes..]);
        Some(Form::STORED.is_value(node, RowRef::exact(code)))
    }
}

/// Returns the body at `at`, with its length in front.
fn body(row: &[u8], at: usize) -> Option<&[u8]> {
    let (len, bytes) = length::take(row.get(at..)?)?;
    row.get(at..at + bytes + len)
}
