//! Cuts a part into runs of an exact number of rows, independent of its record batches. Runs with
//! long values have fewer rows.
//!
//! Writers check their buffers once in each call. Without runs, pages and messages would start
//! where record batches do, and the memory limit determines the size of record batches. A run
//! within one record batch is a slice. A run across record batches is copied, and so is a run that
//! ends within a byte of bits, whose other bits belong to later rows.
//!
//! ```text
//! values  | short ............................ | long | long | short ....
//! runs    [ so many rows     ][ so many rows  ][ so many bytes of long values ]
//! ```
//! Invariant: the ends of runs depend only on the rows. Values shorter than [`LONG`] do not count,
//! so that record batches without longer values need no sums.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use super::part::{Incoming, array_bytes};
use crate::error::{Error, Result};
use crate::input::long_values;
use crate::nested::copied;
use crate::watch::Watch;

/// Minimum bytes of a long value.
const LONG: u64 = 1 << 10;

/// Finds the ends of runs.
pub(super) struct Runs {
    rows: usize,
    bytes: u64,
    /// Rows of the current run, and bytes of its long values.
    gathered: usize,
    long: u64,
}

impl Runs {
    /// Makes runs of `rows` rows. A run ends earlier once its long values have `bytes` bytes.
    pub(super) fn of(rows: usize, bytes: usize) -> Self {
        Self { rows, bytes: bytes as u64, gathered: 0, long: 0 }
    }

    /// Returns the ends of runs in the next rows.
    pub(super) fn ends(&mut self, batch: &RecordBatch) -> Vec<usize> {
        let mut ends = Vec::new();
        let long = long_values(batch, LONG);
        let mut at = 0;
        while at < batch.num_rows() {
            let taken = match &long {
                None => (self.rows - self.gathered).min(batch.num_rows() - at),
                Some(long) => {
                    self.long += long[at];
                    1
                }
            };
            at += taken;
            self.gathered += taken;
            if self.gathered == self.rows || self.long >= self.bytes {
                (self.gathered, self.long) = (0, 0);
                ends.push(at);
            }
        }
        ends
    }
}

/// Calls `each` with `runs`, and returns the number of rows.
///
/// If the dictionaries of a run's pieces have too many values for their narrow keys, the pieces
/// cannot be one array, and are passed one by one.
pub(super) fn rebatch(
    batches: Incoming<'_>,
    runs: Runs,
    watch: &Watch,
    mut each: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<u64> {
    pieces(batches, runs, |pieces| {
        let Some(first) = pieces.first() else { return Ok(()) };
        if pieces.len() == 1 && first.num_rows().is_multiple_of(8) {
            return pieces.into_iter().try_for_each(&mut each);
        }
        watch.room_for(pieces.iter().map(array_bytes).sum());
        let joined = match pieces.as_slice() {
            // To put one together copies nothing.
            [whole] => copied(whole),
            _ => concat_batches(&first.schema(), &pieces),
        };
        match joined {
            Ok(run) => {
                // Free the pieces before the copy is used.
                drop(pieces);
                each(run)
            }
            Err(arrow_schema::ArrowError::DictionaryKeyOverflowError) => {
                pieces.into_iter().try_for_each(&mut each)
            }
            Err(error) => Err(Error::data(error.to_string())),
        }
    })
}

/// Calls `each` with the pieces of each run, without concatenating them.
pub(super) fn pieces(
    batches: Incoming<'_>,
    mut runs: Runs,
    each: impl FnMut(Vec<RecordBatch>) -> Result<()>,
) -> Result<u64> {
    let mut cut = batches.map(|batch| {
        let batch = batch?;
        let ends = runs.ends(&batch);
        Ok((batch, ends))
    });
    pieces_at(&mut cut, each)
}

/// Calls `each` with the pieces of each run. The ends of runs accompany each record batch.
pub(super) fn pieces_at(
    batches: &mut dyn Iterator<Item = Result<(RecordBatch, Vec<usize>)>>,
    mut each: impl FnMut(Vec<RecordBatch>) -> Result<()>,
) -> Result<u64> {
    let mut pieces: Vec<RecordBatch> = Vec::new();
    let mut total = 0;
    for batch in batches {
        let (batch, ends) = batch?;
        total += batch.num_rows() as u64;
        let mut start = 0;
        for end in ends {
            pieces.push(batch.slice(start, end - start));
            start = end;
            each(std::mem::take(&mut pieces))?;
        }
        if start < batch.num_rows() {
            pieces.push(batch.slice(start, batch.num_rows() - start));
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

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, StringArray};

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
            let total = rebatch(&mut batches, Runs::of(10, 1), &Watch::default(), |run| {
                runs.push(run.column(0).as_primitive::<Int32Type>().values().to_vec());
                Ok(())
            });
            assert_eq!(total.expect("no error"), 25);
            let expected: Vec<Vec<i32>> = values.chunks(10).map(<[i32]>::to_vec).collect();
            assert_eq!(runs, expected);
        }
    }

    #[test]
    fn runs_hold_no_bits_of_other_rows() {
        let bits = |rows: usize| {
            let nulls = (0..rows).map(|row| (row % 3 > 0).then_some(1)).collect::<Int32Array>();
            let batch = RecordBatch::try_from_iter([("a", Arc::new(nulls) as _)]);
            let mut batches = std::iter::once(Ok(batch.expect("one column").slice(0, 10)));
            let mut bytes = Vec::new();
            let rows = rebatch(&mut batches, Runs::of(100, 100), &Watch::default(), |run| {
                let nulls = run.column(0).nulls().expect("some are null");
                bytes.extend_from_slice(nulls.inner().sliced().as_slice());
                Ok(())
            });
            assert_eq!(rows.expect("no error"), 10);
            bytes
        };
        assert_eq!(bits(10), bits(16));
    }

    #[test]
    fn long_values_end_runs_wherever_batches_begin() {
        let lengths = [1, 1023, 1024, 3000, 5, 5000, 1, 1, 1, 2000, 1500, 1, 1, 1, 1, 4];
        for size in 1..lengths.len() {
            let mut batches = lengths.chunks(size).map(|chunk| {
                let texts = chunk.iter().map(|&length| "x".repeat(length));
                let column = Arc::new(StringArray::from_iter_values(texts)) as _;
                Ok(RecordBatch::try_from_iter([("a", column)]).expect("one column"))
            });
            let mut runs = Vec::new();
            let total = rebatch(&mut batches, Runs::of(4, 4000), &Watch::default(), |run| {
                runs.push(run.num_rows());
                Ok(())
            });
            assert_eq!((total.expect("no error"), &*runs), (16, &[4, 2, 4, 4, 2][..]), "{size}");
        }
    }
}
