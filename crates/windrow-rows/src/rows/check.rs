//! Validation of rows from other encoders.

use super::skip::skip;
use crate::error::{Error, Result};
use crate::order::{Layout, Sequence};

/// Fails unless `bytes` are rows of `layout`. The rows must consist of slots, time and tail alone.
/// They have the layout's stride, or end at `ends` and are as long as their slots say. The decoder
/// validates the values.
pub fn check_rows(layout: &Layout, bytes: &[u8], ends: &[u32]) -> Result<()> {
    if layout.sequence() != Sequence::None || !layout.payload().is_empty() {
        let message = "encoded rows need an order with a diff, of every column";
        return Err(Error::InvalidOrder(message.into()));
    }
    if let Some(stride) = layout.stride() {
        return match bytes.len().is_multiple_of(stride) {
            true => Ok(()),
            false => Err(corrupt(format!("{} bytes of rows of {stride} each", bytes.len()))),
        };
    }
    if !ends.is_sorted() || ends.last().map_or(0, |&end| end as usize) != bytes.len() {
        return Err(corrupt(format!("row ends that do not ascend to {}", bytes.len())));
    }
    let fixed: usize = layout.slots().iter().map(|slot| slot.fixed_len()).sum();
    // Bytes after the slots: time and tail.
    let behind = layout.shape().fixed - fixed;
    let mut start = 0;
    for &end in ends {
        let row = &bytes[start..end as usize];
        let slots = layout.slots().iter().fold(0, |at, slot| skip(slot, row, at));
        if slots + behind != row.len() {
            return Err(corrupt(format!("{} bytes for {} of columns", row.len(), slots + behind)));
        }
        start = end as usize;
    }
    Ok(())
}

fn corrupt(message: String) -> Error {
    Error::Corrupt { place: "encoded row".into(), message }
}
