//! Conversion of strings for the kernels: offsets of 32 bits.
//!
//! ```text
//! offsets of 64 bits   the same bytes, other offsets
//! dictionary           the ranks of its values, by key: no strings are left
//! ```
//!
//! Few rows need later keys: a later key is converted only if the keys before it distinguish fewer
//! values than the number of rows.

use arrow_buffer::Buffer;

use super::key::{Key, Values};
use super::rows::All;
use crate::rows::bytes::Bytes;

/// Minimum number of rows for a conversion.
const LEAST_ROWS: usize = 256;
/// Minimum number of rows for each value of a ranked dictionary.
const REPEATS: usize = 4;

/// Converts the strings among `keys` that most of `count` rows need, where a conversion pays.
pub(super) fn put_together(keys: &mut [Key], count: usize) {
    let Some(first) = keys.first_mut() else { return };
    put_key(first, count);
    let Some(last) = keys.iter().rposition(Key::is_apart) else { return };
    let mut told = 1u64;
    for at in 1..=last {
        told = told.saturating_mul(keys[at - 1].spread(&All(count)));
        if told >= count as u64 {
            return;
        }
        put_key(&mut keys[at], count);
    }
}

fn put_key(key: &mut Key, count: usize) {
    let Values::Bytes(bytes) = &key.values else { return };
    let changed = match bytes {
        _ if count < LEAST_ROWS || !key.is_apart() => None,
        Bytes::Large { offsets, data } => narrowed(offsets, data),
        Bytes::Picked { values, keys } if values.len() <= count / REPEATS => {
            Some(Values::ranks(ranks(values, keys), key.descending))
        }
        Bytes::Small { .. } | Bytes::Views(_) | Bytes::Picked { .. } => None,
    };
    if let Some(values) = changed {
        key.replace(values);
    }
}

/// Returns the strings with offsets of 32 bits, if 32 bits suffice.
fn narrowed(offsets: &[i64], data: &Buffer) -> Option<Values> {
    let (&first, &last) = (offsets.first()?, offsets.last()?);
    i32::try_from(last - first).ok()?;
    let data = data.slice_with_length(first as usize, (last - first) as usize);
    let offsets = offsets.iter().map(|end| (end - first) as i32).collect::<Vec<_>>().into();
    Some(Values::Bytes(Bytes::Small { offsets, data }))
}

/// Returns for each key the rank of its value among `values`.
fn ranks(values: &Bytes, keys: &[u32]) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..values.len() as u32).collect();
    sorted.sort_unstable_by_key(|&value| values.get(value as usize));
    let mut ranks = vec![0; sorted.len()];
    let mut rank = 0;
    for pair in sorted.windows(2) {
        rank += u32::from(values.get(pair[0] as usize) != values.get(pair[1] as usize));
        ranks[pair[1] as usize] = rank;
    }
    keys.iter().map(|&key| ranks[key as usize]).collect()
}
