//! Rows that were encoded elsewhere, looked over before they are taken in.

use super::skip::skip;
use crate::error::{Error, Result};
use crate::order::{Layout, Sequence};

/// Fails unless `bytes` are rows of `layout`, whose rows are slots, time and tail alone: of its stride, or ending at
/// `ends` and as long as their slots say. What the values are is found when they are decoded.
pub(crate) fn check_rows(layout: &Layout, bytes: &[u8], ends: &[u32]) -> Result<()> {
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
    // What stands behind the slots: time and tail.
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
