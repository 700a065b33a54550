//! Merges sorted record batches by encoded keys alone; all columns stay columns.
//!
//! ```text
//! run 0   keys 1 4 7   columns a a a   \               picks           gather
//! run 1   keys 2 3     columns b b      >-- tree -->  0:0 1:0..2 0:1..  -->  a b b a ..
//!                                      /
//! ```
//! Rows are picked on one thread, and gathered on any thread. Picks keep the record batches of their
//! rows in memory, which no budget counts.
//!
//! Invariant: the rows, their order and the ends of blocks equal those of [`merge_in`](crate::merge_in).

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;

use super::sorted::sequence;
use crate::chunk::gallop;
use windrow_rows::engine::{Encoder, Prepared};
use windrow_rows::{Error, Layout, Result, RowEncoder, Rows, Rule};

/// Reads one sorted input of a [`ColumnarMerge`]: encodes the keys and checks their order.
///
/// The iterator ends after an error.
pub struct KeyedRun<I> {
    batches: I,
    layout: Layout,
    keys: RowEncoder,
    lengths: Encoder,
    input: usize,
    row: u64,
    last: Vec<u8>,
    failed: bool,
}

/// A record batch with the keys of its rows.
pub struct KeyedBatch {
    batch: RecordBatch,
    keys: Rows,
    lengths: Lengths,
}

/// The lengths of rows, were they encoded whole.
enum Lengths {
    Same(usize),
    /// The start of each row, and the end of the last one.
    Starts(Vec<usize>),
}

impl Lengths {
    fn of(prepared: &Prepared) -> Self {
        match prepared.stride() {
            Some(stride) => Self::Same(stride),
            None => {
                let mut starts = vec![0];
                prepared.add_ends(0, &mut starts, |end| end);
                Self::Starts(starts)
            }
        }
    }

    fn bytes(&self, rows: &Range<usize>) -> usize {
        match self {
            Self::Same(length) => length * rows.len(),
            Self::Starts(starts) => starts[rows.end] - starts[rows.start],
        }
    }

    /// Returns the end of the shortest range from `rows.start` on with at least `bytes` bytes, or
    /// the end of `rows`.
    fn reaching(&self, rows: &Range<usize>, bytes: usize) -> usize {
        match self {
            Self::Same(length) => rows.end.min(rows.start + bytes.div_ceil((*length).max(1))),
            Self::Starts(starts) => {
                let short = |start: &usize| start - starts[rows.start] < bytes;
                rows.start + starts[rows.clone()].partition_point(short)
            }
        }
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> KeyedRun<I> {
    /// Reads `batches` as input number `input`, which orders equal keys and names the input in
    /// errors.
    pub fn new(layout: &Layout, input: usize, batches: I) -> Self {
        Self {
            batches,
            layout: layout.clone(),
            keys: RowEncoder::of_keys(layout),
            lengths: Encoder::new(layout),
            input,
            row: 0,
            last: Vec::new(),
            failed: false,
        }
    }

    fn keyed(&mut self, batch: RecordBatch) -> Result<KeyedBatch> {
        let sequence = sequence(&self.layout, self.input, self.row, batch.num_rows())?;
        let lengths = Lengths::of(&self.lengths.prepare(&batch, sequence)?);
        let columns: Vec<usize> = self.layout.key().collect();
        let keys = self.keys.encode(&batch.project(&columns)?)?;
        let falls = |row: usize| keys.row(row - 1) > keys.row(row);
        let falls_first = self.row > 0 && self.last.as_slice() > keys.row(0);
        let fallen = if falls_first { Some(0) } else { (1..keys.len()).find(|&row| falls(row)) };
        if let Some(row) = fallen {
            return Err(Error::OutOfOrder { input: self.input, row: self.row + row as u64 });
        }
        self.row += keys.len() as u64;
        keys.row(keys.len() - 1).clone_into(&mut self.last);
        Ok(KeyedBatch { batch, keys, lengths })
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for KeyedRun<I> {
    type Item = Result<KeyedBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = loop {
            match self.batches.next()? {
                Ok(batch) if batch.num_rows() == 0 => {}
                batch => break batch,
            }
        };
        let keyed = batch.and_then(|batch| self.keyed(batch));
        self.failed = keyed.is_err();
        Some(keyed)
    }
}

/// The record batches of one input.
pub type KeyedBatches = Box<dyn Iterator<Item = Result<KeyedBatch>> + Send>;

/// Merges sorted inputs like [`merge_in`](crate::merge_in), without encoding the columns besides
/// the key.
pub struct ColumnarMerge {
    layout: Layout,
    heads: Vec<Head>,
    /// A loser tree: the winner, then the loser of each match.
    tree: Vec<usize>,
    /// How often the winner has won in succession.
    streak: usize,
    /// Under [`Rule::Last`], the last row so far of the current key.
    candidate: Option<(usize, Arc<KeyedBatch>, usize)>,
    failed: bool,
}

/// An input, at its first row that is not picked yet.
struct Head {
    batches: KeyedBatches,
    current: Option<Arc<KeyedBatch>>,
    at: usize,
    /// The last record batch with picked rows, and its position in the current block.
    picked: Option<(Arc<KeyedBatch>, usize)>,
}

impl Head {
    fn key(&self) -> Option<&[u8]> {
        self.current.as_ref().map(|current| current.keys.row(self.at))
    }

    /// Moves to row `at` of the record batch, or behind it.
    fn move_to(&mut self, at: usize) -> Result<()> {
        self.at = at;
        if self.current.as_ref().is_none_or(|current| at >= current.keys.len()) {
            self.at = 0;
            self.current = self.batches.next().transpose()?.map(Arc::new);
        }
        Ok(())
    }
}

/// A block of merged rows, which are still in the record batches of the inputs.
#[derive(Default)]
pub struct Picks {
    layout: Option<Layout>,
    batches: Vec<Arc<KeyedBatch>>,
    /// Rows of the record batches, in order.
    ranges: Vec<(usize, Range<usize>)>,
    rows: usize,
    bytes: usize,
}

impl ColumnarMerge {
    /// Returns true if rows of `layout` can be merged this way: the rule keeps every row or the last
    /// one of each key, the order has no columns beside the key, and no column is nested, has
    /// a dictionary or is run-end encoded.
    pub fn serves(layout: &Layout) -> bool {
        let is_plain = |data_type: &DataType| {
            !data_type.is_nested()
                && !matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
        };
        matches!(layout.rule(), Rule::Keep | Rule::Last)
            && layout.order().len() == layout.key().count()
            && layout.schema().fields().iter().all(|field| is_plain(field.data_type()))
    }

    /// Merges `inputs`, whose rows are ordered by `layout`. Of equal keys, rows of earlier inputs
    /// come first.
    pub fn new(layout: &Layout, inputs: impl IntoIterator<Item = KeyedBatches>) -> Self {
        let head = |batches| Head { batches, current: None, at: 0, picked: None };
        Self {
            layout: layout.clone(),
            heads: inputs.into_iter().map(head).collect(),
            tree: Vec::new(),
            streak: 0,
            candidate: None,
            failed: false,
        }
    }

    /// Returns the next block: at most `rows` rows, ending with the row that reaches `bytes` bytes
    /// of encoded rows. Returns `None` at the end.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] and errors of the inputs. After an error, [`Error::Lost`].
    pub fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<Picks>> {
        if self.failed {
            return Err(Error::Lost);
        }
        let picks = self.pick(rows.max(1), bytes.max(1));
        self.failed = picks.is_err();
        picks
    }

    fn pick(&mut self, rows: usize, bytes: usize) -> Result<Option<Picks>> {
        if self.tree.is_empty() {
            self.build()?;
        }
        let mut picks = Picks { layout: Some(self.layout.clone()), ..Picks::default() };
        self.heads.iter_mut().for_each(|head| head.picked = None);
        while picks.rows < rows && picks.bytes < bytes {
            let Some(&winner) = self.tree.first() else { break };
            let head = &self.heads[winner];
            let Some(current) = head.current.clone() else {
                if let Some((input, batch, row)) = self.candidate.take() {
                    self.take(&mut picks, input, &batch, row..row + 1);
                }
                break;
            };
            let at = head.at;
            let end = match self.layout.rule() {
                Rule::Last => {
                    let before = self.candidate.replace((winner, Arc::clone(&current), at));
                    if let Some((input, batch, row)) = before
                        && batch.keys.row(row) != current.keys.row(at)
                    {
                        self.take(&mut picks, input, &batch, row..row + 1);
                    }
                    at + 1
                }
                _ => {
                    let all = at..self.run_end(winner, &current, at).min(at + (rows - picks.rows));
                    let end = current.lengths.reaching(&all, bytes - picks.bytes);
                    self.take(&mut picks, winner, &current, at..end);
                    end
                }
            };
            self.heads[winner].move_to(end)?;
            self.replay(winner);
        }
        Ok((picks.rows > 0).then_some(picks))
    }

    /// Returns the end of the rows of `winner` that come before the heads of all others.
    fn run_end(&self, winner: usize, current: &KeyedBatch, at: usize) -> usize {
        /// Streak from which a search pays.
        const LONG: usize = 4;
        if self.streak < LONG {
            return at + 1;
        }
        let path = self.path(winner).map(|node| self.tree[node]);
        let others = path.filter_map(|other| Some((self.heads[other].key()?, other)));
        let Some((key, other)) = others.min() else { return current.keys.len() };
        let before = |row: usize| match current.keys.row(row).cmp(key) {
            Ordering::Equal => winner < other,
            order => order == Ordering::Less,
        };
        gallop(at + 1..current.keys.len(), before)
    }

    /// Appends rows of an input.
    fn take(
        &mut self,
        picks: &mut Picks,
        input: usize,
        batch: &Arc<KeyedBatch>,
        rows: Range<usize>,
    ) {
        let picked = &mut self.heads[input].picked;
        let slot = match picked {
            Some((last, slot)) if Arc::ptr_eq(last, batch) => *slot,
            _ => {
                picks.batches.push(Arc::clone(batch));
                let slot = picks.batches.len() - 1;
                *picked = Some((Arc::clone(batch), slot));
                slot
            }
        };
        picks.rows += rows.len();
        picks.bytes += batch.lengths.bytes(&rows);
        match picks.ranges.last_mut() {
            Some((last, range)) if *last == slot && range.end == rows.start => range.end = rows.end,
            _ => picks.ranges.push((slot, rows)),
        }
    }

    /// Reads the first record batch of each input, and plays all matches.
    fn build(&mut self) -> Result<()> {
        self.heads.iter_mut().try_for_each(|head| head.move_to(0))?;
        let leaves = self.heads.len();
        let mut winners: Vec<usize> = vec![0; leaves];
        winners.extend(0..leaves);
        self.tree = vec![0; leaves];
        for node in (1..leaves).rev() {
            let [a, b] = [winners[2 * node], winners[2 * node + 1]];
            let first = self.is_before(a, b);
            (winners[node], self.tree[node]) = if first { (a, b) } else { (b, a) };
        }
        if let (Some(top), Some(winner)) = (self.tree.first_mut(), winners.get(1)) {
            *top = *winner;
        }
        Ok(())
    }

    /// Returns the nodes between the leaf of `input` and the winner.
    fn path(&self, input: usize) -> impl Iterator<Item = usize> + use<> {
        let mut node = input + self.heads.len();
        std::iter::from_fn(move || {
            node /= 2;
            (node > 0).then_some(node)
        })
    }

    /// Plays the matches of `input` again.
    fn replay(&mut self, input: usize) {
        let mut winner = input;
        for node in self.path(input) {
            if self.is_before(self.tree[node], winner) {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
        }
        self.streak = if self.tree[0] == winner { self.streak + 1 } else { 0 };
        self.tree[0] = winner;
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        match (self.heads[a].key(), self.heads[b].key()) {
            (Some(key), Some(other)) => (key, a) < (other, b),
            (key, other) => key.is_some() && other.is_none(),
        }
    }
}

impl Picks {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of the rows, were they encoded.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gathers the columns at `projection` in the layout's schema.
    ///
    /// # Errors
    /// [`Error::Arrow`] for more than 2 GiB of strings of 32-bit offsets.
    pub fn gather(&self, projection: &[usize]) -> Result<RecordBatch> {
        /// Mean rows of a range from which copies of ranges are faster than copies of rows.
        const LONG: usize = 32;
        let mut indices = Vec::new();
        let is_long = self.rows >= LONG * self.ranges.len();
        if !is_long {
            indices.reserve(self.rows);
            for (slot, rows) in &self.ranges {
                indices.extend(rows.clone().map(|row| (*slot, row)));
            }
        }
        let column = |&column: &usize| -> Result<ArrayRef> {
            let array = |slot: usize| self.batches[slot].batch.column(column);
            if !is_long {
                let arrays: Vec<&dyn Array> =
                    (0..self.batches.len()).map(|slot| &**array(slot)).collect();
                return Ok(interleave(&arrays, &indices)?);
            }
            let slices = self.ranges.iter();
            let slices: Vec<ArrayRef> =
                slices.map(|(slot, rows)| array(*slot).slice(rows.start, rows.len())).collect();
            match &slices[..] {
                [only] => Ok(Arc::clone(only)),
                many => Ok(concat(&many.iter().map(|slice| &**slice).collect::<Vec<_>>())?),
            }
        };
        let columns = projection.iter().map(column).collect::<Result<Vec<_>>>()?;
        let schema = match &self.layout {
            Some(layout) => layout.schema().project(projection)?,
            None => Schema::empty(),
        };
        let rows = RecordBatchOptions::new().with_row_count(Some(self.rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), columns, &rows)?)
    }
}

shown!(ColumnarMerge, it => order: it.layout.order(), inputs: it.heads.len());

shown!(Picks, it => rows: it.rows, bytes: it.bytes);
