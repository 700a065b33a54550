//! The shape of a layout's rows: fixed positions and lengths.
//!
//! ```text
//! | slots | sequence | null bits, fixed payload | length, bytes | length, bytes | time | tail |
//!                      \________ head ________/
//! ```
//!
//! Invariant: everything here follows from the schema and the order alone.

use arrow_schema::Schema;

use super::Tail;
use super::code::PayloadCode;
use super::layout::Slot;

/// How a row stores its position in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// No position.
    None,
    /// Eight bytes, big-endian, in rows of one length.
    Wide,
    /// The short code of `rows`, 1 to 10 bytes, in rows whose lengths vary.
    Short,
}

/// Lengths and positions common to all rows of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Payload columns with a null bit, by position in the payload.
    pub(crate) null_bits: Vec<usize>,
    /// Bytes of a row without its variable parts.
    pub(crate) fixed: usize,
    pub(crate) sequence: Sequence,
    /// Bytes of every row, if all rows have the same length.
    pub(crate) stride: Option<usize>,
    /// Bytes of every row of most record batches: only rare values make a row longer.
    pub(crate) common: Option<usize>,
}

impl Shape {
    pub(super) fn new(
        schema: &Schema,
        slots: &[Slot],
        payload: &[(usize, PayloadCode)],
        sequenced: bool,
        time: usize,
        tail: &Tail,
    ) -> Self {
        let nullable = |&(column, code): &(usize, PayloadCode)| {
            code.has_null_bit() && schema.field(column).is_nullable()
        };
        let null_bits: Vec<usize> =
            (0..payload.len()).filter(|&at| nullable(&payload[at])).collect();
        let head = null_bits.len().div_ceil(8)
            + payload.iter().map(|(_, code)| code.width()).sum::<usize>();
        let varies = slots.iter().any(|slot| slot.code.varies())
            || payload.iter().any(|(_, code)| code.varies());
        let escapes = slots.iter().any(|slot| slot.escapes);
        let sequence = match (sequenced, varies) {
            (false, _) => Sequence::None,
            (true, false) => Sequence::Wide,
            (true, true) => Sequence::Short,
        };
        let wide = if sequence == Sequence::Wide { 8 } else { 0 };
        let slots: usize = slots.iter().map(Slot::fixed_len).sum();
        let fixed = slots + wide + head + time + tail.len();
        let common = (!varies).then_some(fixed);
        Self { null_bits, fixed, sequence, stride: common.filter(|_| !escapes), common }
    }
}
