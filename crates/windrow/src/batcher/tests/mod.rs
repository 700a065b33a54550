//! All paths against a model of thirty slow lines: a map from (row, time) to the sum of diffs.

mod cursors;
mod frontiers;
mod merges;
mod moves;
mod overflow;
mod probes;
mod ranges;
mod retained;
#[cfg(feature = "ipc")]
mod saved;
mod small;
mod spines;
mod staging;
mod wide;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::DataType;

use crate::batch::Batch;
use crate::batcher::Batcher;
use crate::chunk::tests::{staging, tiny};
use windrow_pool::Pool;
use windrow_rows::{Layout, Order, Result, Time};

/// A change: key, value, time, diff.
pub(super) type Change = (u64, u64, u64, i64);
/// The sums of changes.
pub(super) type Model = BTreeMap<(String, u64, u64), i64>;

/// How rows encode keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Rows of 32 bytes.
    Numbers,
    /// Variable-length rows, some with empty keys.
    Texts,
    /// Variable-length rows with a common prefix of 100 bytes.
    LongTexts,
}

pub(super) const ALL_KEYS: [Keys; 3] = [Keys::Numbers, Keys::Texts, Keys::LongTexts];

impl Keys {
    /// Returns the key as text, in key order.
    fn text(self, key: u64) -> String {
        match self {
            Self::Numbers => format!("{key:020}"),
            Self::Texts if key == 0 => String::new(),
            Self::Texts => format!("{key:06}{}", "x".repeat(key as usize % 7)),
            Self::LongTexts => format!("{}{key:06}", "prefix-of-20-letters".repeat(5)),
        }
    }

    pub(super) fn layout(self) -> Layout {
        let order = Order::by(["key", "value"]).time("time").diff("diff");
        order.bind(&self.record_batch(&[]).schema()).unwrap()
    }

    pub(super) fn record_batch(self, changes: &[Change]) -> RecordBatch {
        let numbers = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as ArrayRef;
        let key: ArrayRef = match self {
            Self::Numbers => numbers(changes.iter().map(|c| c.0).collect()),
            _ => Arc::new(StringArray::from_iter_values(changes.iter().map(|c| self.text(c.0)))),
        };
        let diffs: Vec<i64> = changes.iter().map(|c| c.3).collect();
        RecordBatch::try_from_iter_with_nullable([
            ("key", key, false),
            ("value", numbers(changes.iter().map(|c| c.1).collect()), false),
            ("time", numbers(changes.iter().map(|c| c.2).collect()), false),
            ("diff", Arc::new(Int64Array::from(diffs)), false),
        ])
        .unwrap()
    }

    pub(super) fn model(self, changes: &[Change]) -> Model {
        let mut model = Model::new();
        for &(key, value, time, diff) in changes {
            *model.entry((self.text(key), value, time)).or_default() += diff;
        }
        model.retain(|_, diff| *diff != 0);
        model
    }

    /// Reads the rows of a batch, which must ascend strictly and have no zeros.
    pub(super) fn read<T: Time>(self, batch: Batch<T>) -> Result<Model> {
        let mut rows = Vec::new();
        for record_batch in batch.record_batches(1000)? {
            let record_batch = record_batch?;
            let value = record_batch.column(1).as_primitive::<UInt64Type>();
            let time = record_batch.column(2).as_primitive::<UInt64Type>();
            let diff = record_batch.column(3).as_primitive::<Int64Type>();
            for row in 0..record_batch.num_rows() {
                let key = match self {
                    Self::Numbers => {
                        self.text(record_batch.column(0).as_primitive::<UInt64Type>().value(row))
                    }
                    _ => record_batch.column(0).as_string::<i32>().value(row).to_owned(),
                };
                rows.push(((key, value.value(row), time.value(row)), diff.value(row)));
            }
        }
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "rows ascend");
        assert!(rows.iter().all(|row| row.1 != 0), "no diff is zero");
        Ok(rows.into_iter().collect())
    }
}

/// Makes a batch of one run.
pub(super) fn batch_of(keys: Keys, pool: &Pool, changes: &[Change]) -> Batch {
    let pieces = changes.chunks(50).map(|piece| keys.record_batch(piece));
    batch_in(&keys.layout(), pool, pieces)
}

/// Makes a batch of one run from rows of any layout.
pub(super) fn batch_in(
    layout: &Layout,
    pool: &Pool,
    pieces: impl Iterator<Item = RecordBatch>,
) -> Batch {
    let mut batcher = Batcher::new(layout, pool);
    pieces.for_each(|piece| batcher.push(&piece).unwrap());
    batcher.finish().unwrap().settle().unwrap()
}

/// Decodes a time of eight bytes from its code.
pub(super) fn time_of<T: Time>(code: u64) -> T {
    T::decode(&code.to_be_bytes())
}

/// Encodes a time of eight bytes.
pub(super) fn code_of<T: Time>(time: T) -> u64 {
    let mut code = [0; 8];
    time.encode(&mut code);
    u64::from_be_bytes(code)
}

/// Two dimensions in one column: the halves of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Round(pub(super) u32, pub(super) u32);

impl Time for Round {
    const TOTAL: bool = false;
    const WIDTH: usize = 8;

    fn least() -> Self {
        Self(0, 0)
    }

    fn fits(data_type: &DataType) -> bool {
        *data_type == DataType::UInt64
    }

    fn decode(code: &[u8]) -> Self {
        let (epoch, round) = <(u32, u32)>::decode(code);
        Self(epoch, round)
    }

    fn encode(self, code: &mut [u8]) {
        (self.0, self.1).encode(code);
    }

    fn less_equal(self, other: Self) -> bool {
        self.0 <= other.0 && self.1 <= other.1
    }

    fn join(self, other: Self) -> Self {
        Self(self.0.max(other.0), self.1.max(other.1))
    }

    fn meet(self, other: Self) -> Self {
        Self(self.0.min(other.0), self.1.min(other.1))
    }
}
