//! Check for Parquet column chunks that share bytes: the rows of a row group that a footer lists
//! twice would count twice.

use std::ops::Range;

use parquet::file::metadata::RowGroupMetaData;

use crate::input::row_groups::bytes_of;

/// Refuses row groups if column chunks share bytes.
///
/// # Errors
/// Names the row groups.
pub(super) fn check(groups: &[RowGroupMetaData]) -> Result<(), String> {
    let all = groups.iter().enumerate().flat_map(|(index, group)| {
        let chunks = group.columns().iter().map(bytes_of);
        chunks.filter(|bytes| !bytes.is_empty()).map(move |bytes| (bytes, index))
    });
    match shared(&mut all.collect::<Vec<_>>()) {
        None => Ok(()),
        Some([one, other]) if one == other => {
            Err(format!("row group {one} has columns that share bytes"))
        }
        Some([one, other]) => {
            Err(format!("row groups {one} and {other} share bytes, so that rows would count twice"))
        }
    }
}

/// Sorts numbered ranges of bytes. Returns the numbers of two overlapping ranges.
fn shared(ranges: &mut [(Range<u64>, usize)]) -> Option<[usize; 2]> {
    ranges.sort_by_key(|(bytes, index)| (bytes.start, *index));
    let mut pairs = ranges.windows(2);
    let pair = pairs.find(|pair| pair[0].0.end > pair[1].0.start)?;
    Some([pair[0].1, pair[1].1])
}
