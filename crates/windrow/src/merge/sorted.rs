//! Sorted inputs: record batches in, chunks out, with the order verified.
//!
//! Under rules that combine rows, the last group of a record batch may continue in the next one:
//! the group is reduced to the needed rows and held back until it is complete.

use std::cmp::Ordering;
use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::chunks::ChunkSource;
use crate::chunk::{Arranger, Builder, Chunk, Finish, Place, Wraps};
use windrow_kernel::prefetch::Ahead;
use windrow_pool::Pool;
use windrow_rows::engine::{Encoder, Sequence};
use windrow_rows::{Error, Layout, Result, Rule, key_len};

/// Verifies that the rows of one input ascend by the bound order, as [`crate::merge`] requires: by
/// the key, then within the key. Under [`Rule::Sum`] the order is the key, then every other column
/// in schema order, then the time; under [`Rule::Last`] and [`Rule::LastKnown`] the key alone.
///
/// ```
/// use std::sync::Arc;
/// use windrow::arrow_array::{Int64Array, RecordBatch};
/// use windrow::{Error, Order, OrderCheck};
///
/// let batch = RecordBatch::try_from_iter([(
///     "id",
///     Arc::new(Int64Array::from(vec![1, 3, 2])) as windrow::arrow_array::ArrayRef,
/// )])?;
/// let layout = Order::by("id").bind(&batch.schema())?;
/// let found = OrderCheck::new(&layout, 0).push(&batch);
/// assert!(matches!(found, Err(Error::OutOfOrder { row: 2, .. })));
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Debug)]
pub struct OrderCheck {
    encoder: Encoder,
    steps: Steps,
    bytes: Vec<u8>,
}

/// Compares each row with the previous one.
#[derive(Debug)]
struct Steps {
    layout: Layout,
    input: usize,
    unique: bool,
    row: u64,
    before: Vec<u8>,
}

impl OrderCheck {
    /// Returns a check of input number `input`, which errors name.
    pub fn new(layout: &Layout, input: usize) -> Self {
        Self { encoder: Encoder::new(layout), steps: Steps::new(layout, input), bytes: Vec::new() }
    }

    /// Also fails when two rows have the same key.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.steps.unique = true;
        self
    }

    /// Checks the next rows of the input.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] and [`Error::Repeated`] with the first offending row.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let ends = encode(&self.encoder, batch, self.steps.row, &mut self.bytes)?;
        let mut start = 0;
        for end in ends {
            self.steps.step(&self.bytes[start..end])?;
            start = end;
        }
        Ok(())
    }
}

impl Steps {
    fn new(layout: &Layout, input: usize) -> Self {
        Self { layout: layout.clone(), input, unique: false, row: 0, before: Vec::new() }
    }

    fn step(&mut self, row: &[u8]) -> Result<()> {
        let (input, number) = (self.input, self.row);
        if number > 0 {
            // If the last row of a key wins, rows of one key may come in any order: the merge finds
            // the winner.
            let compared = if self.layout.rule().prefers_last() {
                key_len(&self.layout, &self.before)
            } else {
                self.before.len() - self.layout.tail().len()
            };
            if self.before[..compared].cmp(&row[..compared.min(row.len())]) == Ordering::Greater {
                return Err(Error::OutOfOrder { input, row: number });
            }
            if self.unique {
                let key = key_len(&self.layout, &self.before);
                if row.starts_with(&self.before[..key]) {
                    return Err(Error::Repeated { input, row: number });
                }
            }
        }
        row.clone_into(&mut self.before);
        self.row += 1;
        Ok(())
    }
}

/// Encodes all of `batch` into `bytes` and returns the row ends.
fn encode(
    encoder: &Encoder,
    batch: &RecordBatch,
    sequence: u64,
    bytes: &mut Vec<u8>,
) -> Result<Vec<usize>> {
    let prepared = encoder.prepare(batch, sequence)?;
    let mut ends = Vec::new();
    let end = prepared.add_ends(0, &mut ends, |end| end);
    bytes.resize(end, 0);
    encoder.encode(&prepared, 0..prepared.len(), bytes);
    Ok(ends)
}

/// A run read from record batches with ascending rows.
pub(crate) struct SortedInput<I> {
    batches: I,
    layout: Layout,
    encoder: Encoder,
    steps: Steps,
    arranger: Arranger,
    builder: Builder,
    bytes: Vec<u8>,
    /// The rows that represent the last group so far.
    held: Vec<Vec<u8>>,
    ended: bool,
}

/// Bits of a sequence number for the row of an input; the other bits number the inputs.
pub(crate) const ROW_BITS: u32 = 40;

impl<I: Iterator<Item = Result<RecordBatch>> + Send> SortedInput<I> {
    pub(crate) fn new(
        layout: &Layout,
        pool: &Pool,
        input: usize,
        wraps: &Wraps,
        batches: I,
    ) -> Self {
        Self {
            batches,
            layout: layout.clone(),
            encoder: Encoder::new(layout),
            steps: Steps::new(layout, input),
            arranger: Arranger::default(),
            builder: Builder::new(layout, pool, Finish::Log, wraps),
            bytes: Vec::new(),
            held: Vec::new(),
            ended: false,
        }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let Steps { input, row, .. } = self.steps;
        let sequence = sequence(&self.layout, input, row, batch.num_rows())?;
        let ends = encode(&self.encoder, batch, sequence, &mut self.bytes)?;
        let held = std::mem::take(&mut self.held);
        let mut rows: Vec<&[u8]> = Vec::with_capacity(ends.len() + 1);
        rows.extend(held.iter().map(Vec::as_slice));
        let mut start = 0;
        for end in ends {
            let row = &self.bytes[start..end];
            self.steps.step(row)?;
            rows.push(row);
            start = end;
        }
        let order = self.arranger.order(
            from_ref(&(0..rows.len())),
            &rows[..],
            self.layout.tail().len(),
            &mut Ahead::default(),
        );
        let decided = decided(&self.layout, &rows, order);
        self.builder.push(&rows[..], &order[..decided], false, &mut Ahead::default())?;
        self.held = reduce(&self.layout, &mut self.builder, &rows, &order[decided..]);
        self.builder.flush();
        Ok(())
    }
}

/// Returns the sequence number of row `row` of an input, after all rows of earlier inputs. `rows`
/// rows follow.
pub(super) fn sequence(layout: &Layout, input: usize, row: u64, rows: usize) -> Result<u64> {
    let first = (input as u64).checked_mul(1 << ROW_BITS);
    let fits = row.saturating_add(rows as u64) <= 1 << ROW_BITS;
    match first.filter(|_| fits) {
        Some(first) => Ok(first + row),
        // The layout has no sequence numbers.
        None if layout.sequence() == Sequence::None => Ok(0),
        None => Err(Error::InvalidOrder(format!(
            "row {row} of input {input}: there can be 2^24 inputs of 2^{ROW_BITS} rows each"
        ))),
    }
}

/// Returns how many rows of `order` no later row can affect: all but the last group.
fn decided(layout: &Layout, rows: &[&[u8]], order: &[Place]) -> usize {
    let Some(&last) = order.last() else { return 0 };
    let last = rows[last.index()];
    let group = match layout.rule() {
        Rule::Keep | Rule::First => return order.len(),
        Rule::Last | Rule::LastKnown => &last[..key_len(layout, last)],
        Rule::Sum => &last[..last.len() - layout.tail().len()],
    };
    order.partition_point(|place| !rows[place.index()].starts_with(group))
}

/// Reduces a group to the needed rows, mostly one; empty for an empty group.
fn reduce(layout: &Layout, builder: &mut Builder, rows: &[&[u8]], group: &[Place]) -> Vec<Vec<u8>> {
    let Some((&first, rest)) = group.split_first() else { return Vec::new() };
    if layout.rule() == Rule::LastKnown {
        return builder.needed(group.iter().map(|place| rows[place.index()]));
    }
    let first = rows[first.index()];
    let mut row = first.to_vec();
    if layout.rule() == Rule::Sum {
        let tail = layout.tail().len();
        let (body, sum) = row.split_at_mut(first.len() - tail);
        for other in rest.iter().map(|place| rows[place.index()]) {
            builder.add_diffs(body, sum, &other[other.len() - tail..]);
        }
    }
    vec![row]
}

impl<I: Iterator<Item = Result<RecordBatch>> + Send> ChunkSource for SortedInput<I> {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        loop {
            if let Some(chunk) = self.builder.take() {
                return Ok(Some(chunk));
            }
            if self.ended {
                return Ok(None);
            }
            match self.batches.next() {
                Some(batch) => self.push(&batch?)?,
                None => {
                    self.ended = true;
                    let held = std::mem::take(&mut self.held);
                    let rows: Vec<&[u8]> = held.iter().map(Vec::as_slice).collect();
                    let order: Vec<Place> = (0..rows.len()).map(Place::of).collect();
                    self.builder.push(&rows[..], &order, false, &mut Ahead::default())?;
                    self.builder.flush();
                }
            }
        }
    }
}
