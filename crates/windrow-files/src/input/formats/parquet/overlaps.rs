//! Check for Parquet column chunks that share bytes: the rows of a row group that a footer lists
//! twice would count twice.

use std::ops::Range;

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

/// Refuses row groups if column chunks share bytes.
///
/// # Errors
/// Names the row groups.
pub(super) fn check(groups: &[RowGroupMetaData]) -> Result<(), String> {
    let mut spans = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let mut chunks: Vec<_> = chunks(group).map(|chunk| (chunk, index)).collect();
        if let Some(shared) = shared(&mut chunks) {
            return Err(said(shared));
        }
        if let (Some((first, _)), Some((last, _))) = (chunks.first(), chunks.last()) {
            spans.push((first.start..last.end, index));
        }
    }
    if shared(&mut spans).is_none() {
        return Ok(());
    }
    // Chunks of one row group may lie between chunks of another.
    let all = groups.iter().enumerate();
    let all = all.flat_map(|(index, group)| chunks(group).map(move |chunk| (chunk, index)));
    shared(&mut all.collect::<Vec<_>>()).map_or(Ok(()), |shared| Err(said(shared)))
}

fn chunks(group: &RowGroupMetaData) -> impl Iterator<Item = Range<u64>> {
    let bytes = |chunk: &ColumnChunkMetaData| {
        let (start, length) = chunk.byte_range();
        start..start.saturating_add(length)
    };
    group.columns().iter().map(bytes).filter(|bytes| !bytes.is_empty())
}

/// Sorts numbered ranges of bytes. Returns the numbers of two overlapping ranges.
fn shared(ranges: &mut [(Range<u64>, usize)]) -> Option<[usize; 2]> {
    ranges.sort_by_key(|(bytes, index)| (bytes.start, *index));
    let mut pairs = ranges.windows(2);
    let pair = pairs.find(|pair| pair[0].0.end > pair[1].0.start)?;
    Some([pair[0].1, pair[1].1])
}

fn said([one, other]: [usize; 2]) -> String {
    match one == other {
        true => format!("row group {one} has columns that share bytes"),
        false => {
            format!("row groups {one} and {other} share bytes, so that rows would count twice")
        }
    }
}
