//! Cuts a part into runs of exactly so many rows, whatever batches it comes in.
//!
//! Writers look at their buffers once a call, so pages and messages would begin where batches do, and
//! batches are as large as the memory limit allows. Runs that lie within one batch are slices; only a run
//! that spans batches is copied.

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;

use super::array_bytes;
use crate::error::{Error, Result};
use crate::watch::Watch;

/// Calls `each` with runs of `rows` rows, the last of which may be shorter; returns the number of rows.
///
/// The pieces of a run are handed over one by one where they cannot be one array: only if dictionaries of
/// narrow keys have too many values between them.
pub(super) fn rebatch(
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    rows: usize,
    watch: &Watch,
    mut each: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<u64> {
    runs(batches, rows, |pieces| {
        if let [_whole] = pieces.as_slice() {
            return pieces.into_iter().try_for_each(&mut each);
        }
        let Some(first) = pieces.first() else { return Ok(()) };
        watch.room_for(pieces.iter().map(array_bytes).sum());
        match concat_batches(&first.schema(), &pieces) {
            Ok(run) => {
                // Whoever takes the copy is not to have the pieces beside it.
                drop(pieces);
                each(run)
            }
            Err(arrow::error::ArrowError::DictionaryKeyOverflowError) => {
                pieces.into_iter().try_for_each(&mut each)
            }
            Err(error) => Err(Error::data(error.to_string())),
        }
    })
}

/// Calls `each` with the pieces of runs of `rows` rows, as [`rebatch`] does with the runs.
pub(super) fn runs(
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    rows: usize,
    mut each: impl FnMut(Vec<RecordBatch>) -> Result<()>,
) -> Result<u64> {
    let mut pieces: Vec<RecordBatch> = Vec::new();
    let mut gathered = 0;
    let mut total = 0;
    for batch in batches {
        let batch = batch?;
        total += batch.num_rows() as u64;
        let mut start = 0;
        while start < batch.num_rows() {
            let taken = (rows - gathered).min(batch.num_rows() - start);
            pieces.push(batch.slice(start, taken));
            start += taken;
            gathered += taken;
            if gathered == rows {
                each(std::mem::take(&mut pieces))?;
                gathered = 0;
            }
        }
    }
    if !pieces.is_empty() {
        each(pieces)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, cast::AsArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn runs_do_not_depend_on_batches() {
        for size in [1, 3, 7, 10, 25] {
            let values: Vec<i32> = (0..25).collect();
            let mut batches = values.chunks(size).map(|chunk| {
                let column = Arc::new(Int32Array::from(chunk.to_vec())) as _;
                Ok(RecordBatch::try_from_iter([("a", column)]).expect("one column"))
            });
            let mut runs = Vec::new();
            let total = rebatch(&mut batches, 10, &Watch::default(), |run| {
                runs.push(run.column(0).as_primitive::<Int32Type>().values().to_vec());
                Ok(())
            });
            assert_eq!(total.expect("no error"), 25);
            let expected: Vec<Vec<i32>> = values.chunks(10).map(<[i32]>::to_vec).collect();
            assert_eq!(runs, expected);
        }
    }
}
