//! The container: a record batch, with a time and a diff for each row.

use std::sync::Arc;

use arrow_select::filter::filter_record_batch;
use differential_dataflow::collection::containers::{Enter, Leave, Negate, ResultsIn};
use differential_dataflow::difference::Abelian;
use timely::container::Accountable;
use timely::progress::Timestamp;
use timely::progress::timestamp::{PathSummary, Refines};
use windrow::arrow_array::{BooleanArray, RecordBatch};
use windrow::arrow_schema::Schema;
use windrow::{Error, Result};

/// Rows with their times and diffs: a container of timely.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_differential::Changes;
///
/// # let users: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
/// # let batch = RecordBatch::try_from_iter([("user", users)])?;
/// // the first row comes at 3, the second one goes at 4
/// let changes = Changes::new(batch, vec![3_u64, 4], vec![1_i64, -1])?;
/// assert_eq!(changes.diffs(), [1, -1]);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Changes<T, R> {
    batch: RecordBatch,
    times: Vec<T>,
    diffs: Vec<R>,
}

impl<T, R> Changes<T, R> {
    /// Combines rows with their times and diffs.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if there are more or fewer times or diffs than rows.
    pub fn new(batch: RecordBatch, times: Vec<T>, diffs: Vec<R>) -> Result<Self> {
        let rows = batch.num_rows();
        if times.len() != rows || diffs.len() != rows {
            let (times, diffs) = (times.len(), diffs.len());
            let message = format!("{times} times and {diffs} diffs of {rows} rows");
            return Err(Error::InvalidOrder(message));
        }
        Ok(Self { batch, times, diffs })
    }

    /// Returns the rows.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Returns the time of each row.
    pub fn times(&self) -> &[T] {
        &self.times
    }

    /// Returns the diff of each row.
    pub fn diffs(&self) -> &[R] {
        &self.diffs
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Returns true if the container has no rows.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Returns rows, times and diffs.
    pub fn into_parts(self) -> (RecordBatch, Vec<T>, Vec<R>) {
        (self.batch, self.times, self.diffs)
    }

    fn with_times<T2>(self, times: impl FnMut(T) -> T2) -> Changes<T2, R> {
        let times = self.times.into_iter().map(times).collect();
        Changes { batch: self.batch, times, diffs: self.diffs }
    }
}

impl<T, R> Default for Changes<T, R> {
    fn default() -> Self {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        Self { batch, times: Vec::new(), diffs: Vec::new() }
    }
}

impl<T, R> Accountable for Changes<T, R> {
    fn record_count(&self) -> i64 {
        self.times.len() as i64
    }
}

impl<T, R: Abelian> Negate for Changes<T, R> {
    fn negate(mut self) -> Self {
        self.diffs.iter_mut().for_each(Abelian::negate);
        self
    }
}

impl<T1: Timestamp, T2: Refines<T1>, R> Enter<T1, T2> for Changes<T1, R> {
    type InnerContainer = Changes<T2, R>;

    fn enter(self) -> Changes<T2, R> {
        self.with_times(T2::to_inner)
    }
}

impl<T1: Refines<T2>, T2: Timestamp, R> Leave<T1, T2> for Changes<T1, R> {
    type OuterContainer = Changes<T2, R>;

    fn leave(self) -> Changes<T2, R> {
        self.with_times(T1::to_outer)
    }
}

/// Removes the rows whose times have no successor.
impl<T: Timestamp, R> ResultsIn<T::Summary> for Changes<T, R> {
    fn results_in(self, step: &T::Summary) -> Self {
        let later: Vec<_> = self.times.iter().map(|time| step.results_in(time)).collect();
        let batch = if later.iter().all(Option::is_some) {
            self.batch
        } else {
            let stays: BooleanArray = later.iter().map(|time| Some(time.is_some())).collect();
            filter_record_batch(&self.batch, &stays).expect("a flag for each row")
        };
        let diffs = self.diffs.into_iter().zip(&later).filter(|(_, time)| time.is_some());
        let diffs = diffs.map(|(diff, _)| diff).collect();
        Self { batch, times: later.into_iter().flatten().collect(), diffs }
    }
}
