//! Streaming transforms of sorted rows: a sift drops rows, or combines several rows into one.
//!
//! ```text
//! last merge --> record batches in order --Sift--> record batches to write
//! ```
//! A sift receives every row once, in order, on one thread. It keeps one or two rows in memory.

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_ord::partition::partition;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;

use crate::error::{Result, failed};
use crate::nested::copied;

/// A transform of the sorted rows.
pub(crate) trait Sift: Send {
    /// Returns the output for the next rows.
    fn push(&mut self, batch: &RecordBatch) -> Result<RecordBatch>;

    /// Returns the remaining output at the end, if any.
    fn finish(&mut self) -> Result<Option<RecordBatch>>;

    /// Returns the number of keys dropped because they are deleted.
    fn deleted(&self) -> u64 {
        0
    }

    /// Returns the number of keys whose row comes from a snapshot taken after changes of the key.
    fn renewed(&self) -> u64 {
        0
    }

    /// Returns true if no further row can affect the output.
    fn is_done(&self) -> bool {
        false
    }
}

/// The factory of a job's sift. A restarted job starts a new sift.
pub(crate) struct Sifting {
    /// The schema of the output.
    pub(crate) schema: SchemaRef,
    /// Whether the output is in the order of the input.
    pub(crate) keeps_order: bool,
    /// Copies of a long row in the sift, in addition to the batch that holds the row.
    pub(crate) copies: usize,
    pub(crate) start: Box<dyn Fn() -> Box<dyn Sift> + Send + Sync>,
}

/// Passes the first rows, up to a limit.
pub(super) struct First {
    pub(super) left: u64,
}

impl Sift for First {
    fn push(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.num_rows());
        self.left -= rows as u64;
        Ok(batch.slice(0, rows))
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}

/// Passes the rows whose key occurs once.
pub(super) struct Alone {
    /// Positions of the key columns.
    key: Vec<usize>,
    /// Positions of the columns to write.
    shown: Vec<usize>,
    /// The last row so far, and whether it is the first row of its key.
    last: Option<(RecordBatch, bool)>,
}

impl Alone {
    pub(super) fn new(key: Vec<usize>, shown: Vec<usize>) -> Self {
        Self { key, shown, last: None }
    }
}

impl Sift for Alone {
    /// Returns the rows now known to have a unique key: the row held back, and rows of `batch`.
    fn push(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let first_is_new = self.last.as_ref().is_none_or(|(_, alone)| *alone);
        let last = self.last.iter().map(|(last, _)| last);
        let all = concat_batches(&batch.schema(), last.chain([batch])).map_err(failed)?;
        let starts = starts(&all, &self.key)?;
        let mut alone: Vec<bool> = (0..all.num_rows())
            .map(|row| starts[row] && starts.get(row + 1).copied().unwrap_or(false))
            .collect();
        // `last` records whether the row held back was the first of its key.
        if let Some(first) = alone.first_mut() {
            *first = *first && first_is_new;
        }
        let last = all.num_rows() - 1;
        let last_is_new = if last == 0 { first_is_new } else { starts[last] };
        // A copy: a slice would keep the whole batch in memory.
        self.last = Some((copied(&all.slice(last, 1)).map_err(failed)?, last_is_new));
        debug_assert!(batch.num_rows() > 0);
        let kept = filter_record_batch(&all, &BooleanArray::from(alone)).map_err(failed)?;
        kept.project(&self.shown).map_err(failed)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        match self.last.take() {
            Some((last, true)) => last.project(&self.shown).map(Some).map_err(failed),
            _ => Ok(None),
        }
    }
}

/// Returns for each row of `batch` whether its key differs from the key of the row before it.
pub(super) fn starts(batch: &RecordBatch, key: &[usize]) -> Result<Vec<bool>> {
    let mut starts = vec![false; batch.num_rows()];
    if key.is_empty() {
        starts.iter_mut().take(1).for_each(|start| *start = true);
        return Ok(starts);
    }
    let columns: Vec<ArrayRef> = key.iter().map(|&column| batch.column(column).clone()).collect();
    for range in partition(&columns).map_err(failed)?.ranges() {
        starts[range.start] = true;
    }
    Ok(starts)
}

/// Returns true if the first rows of two record batches have equal keys.
pub(super) fn same_key(one: &RecordBatch, other: &RecordBatch, key: &[usize]) -> Result<bool> {
    let pair = concat_batches(&one.schema(), [&one.slice(0, 1), &other.slice(0, 1)]);
    Ok(!starts(&pair.map_err(failed)?, key)?[1])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

    fn sifted(mut sift: impl Sift, batches: &[&[(i64, i64)]]) -> Vec<i64> {
        let mut found = Vec::new();
        let mut note = |batch: RecordBatch| {
            let values = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
            found.extend(values.values().iter().copied());
        };
        for rows in batches {
            let column = |of: fn(&(i64, i64)) -> i64| -> ArrayRef {
                Arc::new(rows.iter().map(of).collect::<Int64Array>())
            };
            let batch =
                RecordBatch::try_from_iter([("k", column(|r| r.0)), ("v", column(|r| r.1))]);
            note(sift.push(&batch.unwrap()).unwrap());
        }
        if let Some(batch) = sift.finish().unwrap() {
            note(batch);
        }
        found
    }

    #[test]
    fn rows_alone_are_found_across_batches() {
        let alone = || Alone::new(vec![0], vec![0, 1]);
        assert_eq!(sifted(alone(), &[&[(1, 1), (2, 2), (2, 3), (3, 4)]]), [1, 4]);
        assert_eq!(sifted(alone(), &[&[(1, 1)], &[(1, 2)], &[(2, 3)]]), [3]);
        assert_eq!(sifted(alone(), &[&[(1, 1)], &[(1, 2)], &[(1, 3)]]), [0; 0]);
        assert_eq!(sifted(alone(), &[&[(1, 1)], &[(2, 2)], &[(2, 3), (3, 4)]]), [1, 4]);
        assert_eq!(sifted(alone(), &[&[(1, 1), (1, 2)], &[(1, 3), (4, 4)], &[(5, 5)]]), [4, 5]);
        assert_eq!(sifted(alone(), &[]), [0; 0]);
    }

    #[test]
    fn the_first_rows_are_as_many_as_wanted() {
        let rows: [&[(i64, i64)]; 2] = [&[(1, 1), (2, 2)], &[(3, 3), (4, 4)]];
        for (most, expected) in
            [(0, vec![]), (1, vec![1]), (3, vec![1, 2, 3]), (9, vec![1, 2, 3, 4])]
        {
            assert_eq!(sifted(First { left: most }, &rows), expected);
        }
    }
}
