//! Rows of nothing but numbers of eight bytes, of which some take a byte more: all columns of a row at once.

use arrow_array::ArrayRef;

use super::{Bits, Columns};
use crate::error::Result;
use crate::kernel::rows::{Code, take_growing};
use crate::kernel::values::Values;
use crate::order::{Layout, Sequence, Slot, Tail};
use crate::rows::decode::corrupt;
use crate::rows::lanes::{self, Form};

/// Reads such rows, which end at `ends`, to the columns that are `wanted`, by their position in the layout's schema;
/// nothing if there is more to the layout.
pub(in crate::rows) fn take_longer(
    layout: &Layout,
    wanted: &[bool],
    bytes: &[u8],
    start: usize,
    ends: &[u32],
) -> Result<Option<Vec<Option<ArrayRef>>>> {
    let slots = layout.slots();
    let all = slots.iter().all(|slot| lanes::slot_form(slot) == Form::Numbers(8));
    let more =
        !layout.payload().is_empty() || layout.time().is_some() || layout.tail() != Tail::None;
    if !all || more || slots.iter().any(Slot::has_marker) || layout.sequence() != Sequence::None {
        return Ok(None);
    }
    let codes: Vec<Code> = slots.iter().map(lanes::slot_code).collect();
    let mut values: Vec<Values<u64>> =
        codes.iter().map(|_| Values::with_capacity(ends.len())).collect();
    let mut valid = vec![Vec::new(); codes.len()];
    if !take_growing(&codes, start, ends, bytes, &mut values, &mut valid) {
        return Err(corrupt("a number is cut off or has no such code"));
    }
    let mut columns = Columns::new(layout.schema().fields().clone(), ends.len());
    for (slot, (values, words)) in slots.iter().zip(values.into_iter().zip(valid)) {
        if wanted[slot.column] {
            columns.valid[slot.column] = Bits { words, len: ends.len() };
            columns.put_numbers(slot.column, values.into())?;
        }
    }
    Ok(Some(columns.ready))
}
