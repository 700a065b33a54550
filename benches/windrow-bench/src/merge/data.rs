//! Changes `((key, value), time, diff)` in regimes that separate merge batchers.
//!
//! Every data set has its own seed: with repeated keys, the branch predictor's memory would distort
//! the times.

use std::sync::Arc;

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use windrow::arrow_schema::{Field, Schema, SchemaRef};

use crate::Result;
use windrow_testdata::rng::Rng;

/// One change.
pub(crate) type Change<K, V> = ((K, V), u64, i64);
/// A change of two integers: 32 bytes as rows and as Rust values.
pub(crate) type Ints = Change<u64, u64>;

/// The relation between the keys of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regime {
    Random,
    Alternating,
    Equal,
    Runs,
    Disjoint,
    Sorted,
}

impl Regime {
    pub(crate) fn name(self) -> &'static str {
        ["random", "alternating", "40% equal", "runs of ~64", "disjoint", "sorted"][self as usize]
    }
}

fn diff(rng: &mut Rng) -> i64 {
    let diff = rng.below(6) as i64 - 3;
    if diff >= 0 { diff + 1 } else { diff }
}

/// Sorts, adds up equal changes, and drops zeros.
fn consolidated(mut changes: Vec<Ints>) -> Vec<Ints> {
    changes.sort_unstable();
    changes.dedup_by(|next, kept| {
        let equal = next.0 == kept.0 && next.1 == kept.1;
        kept.2 += i64::from(equal) * next.2;
        equal
    });
    changes.retain(|change| change.2 != 0);
    changes
}

/// Generates two inputs of a merge, each consolidated, with about `count` changes.
pub(crate) fn pair(regime: Regime, count: usize, seed: u64) -> [Vec<Ints>; 2] {
    let mut rng = Rng::new(seed);
    let range = count as u64;
    let random = |rng: &mut Rng, base: u64, keys: u64| {
        let change = |_| ((base + rng.below(keys), rng.below(keys)), rng.below(4), diff(rng));
        consolidated((0..count).map(change).collect())
    };
    match regime {
        Regime::Random => [0, 0].map(|base| random(&mut rng, base, 2 * range)),
        Regime::Disjoint => [0, range].map(|base| random(&mut rng, base, range)),
        Regime::Alternating => {
            let base = rng.below(1 << 32);
            [7, 9].map(|value| (0..range).map(|i| ((base + i, value), i & 3, 1)).collect())
        }
        // About 40 % of a side's keys also occur on the second side.
        Regime::Equal => [(); 2].map(|()| {
            let change = |_| {
                let key = rng.below(range);
                ((key >> 3, key & 7), rng.below(2), diff(&mut rng))
            };
            consolidated((0..count).map(change).collect())
        }),
        Regime::Runs => {
            let mut sides = [Vec::new(), Vec::new()];
            let (mut key, mut side) = (rng.below(1 << 32), 0);
            while sides.iter().any(|side| side.len() < count) {
                for _ in 0..1 + rng.below(127) {
                    key += 1 + rng.below(3);
                    let change = ((key, rng.below(1000)), rng.below(4), diff(&mut rng));
                    if sides[side].len() < count {
                        sides[side].push(change);
                    }
                }
                side = 1 - side;
            }
            sides
        }
        Regime::Sorted => {
            // Stretches of one sorted sequence, as long as chunks of integers, alternate between
            // the sides.
            let change =
                |_| ((rng.below(4 * range), rng.below(range)), rng.below(4), diff(&mut rng));
            let all = consolidated((0..2 * count).map(change).collect());
            let stretches = all.chunks((1 << 16).min(count.max(1)));
            [0, 1].map(|side| stretches.clone().skip(side).step_by(2).flatten().copied().collect())
        }
    }
}

/// Generates `rounds` pushes of unordered changes, `total` in all.
pub(crate) fn pushes(regime: Regime, total: usize, rounds: usize, seed: u64) -> Vec<Vec<Ints>> {
    let mut rng = Rng::new(seed);
    let (range, each) = (total as u64, total.div_ceil(rounds));
    let mut all: Vec<Ints> = Vec::with_capacity(total);
    for index in 0..total {
        let round = (index / each) as u64;
        let key = match regime {
            Regime::Equal => {
                let key = rng.below(range);
                (key >> 3, key & 7)
            }
            Regime::Disjoint => (round * range + rng.below(range), rng.below(range)),
            Regime::Alternating => (index as u64 % each as u64, round),
            Regime::Runs => (rng.below(range / 64 + 1) * 64 + index as u64 % 64, round),
            Regime::Random | Regime::Sorted => (rng.below(2 * range), rng.below(2 * range)),
        };
        all.push((key, rng.below(4), diff(&mut rng)));
    }
    if regime == Regime::Sorted {
        all = consolidated(all);
    }
    all.chunks(each).map(<[Ints]>::to_vec).collect()
}

/// The columns of a record, made of two integers.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Nominal bytes of a record.
    pub(crate) bytes: usize,
    numbers: &'static [fn(u64, u64) -> u64],
    /// A column of 24-character strings behind the numbers.
    has_text: bool,
}

pub(crate) const SHAPES: [Shape; 3] = [
    Shape { name: "ints", bytes: 32, numbers: &[|key, _| key, |_, val| val], has_text: false },
    Shape { name: "row-keyed", bytes: 64, numbers: &[|key, _| key], has_text: true },
    Shape { name: "12 columns", bytes: 96, numbers: &WIDE, has_text: false },
];
/// The columns of a wide record: half of them are its key, half its value.
pub(crate) const WIDE: [fn(u64, u64) -> u64; 10] = [
    |key, _| key,
    |_, val| val,
    |_, _| 3,
    |_, _| 4,
    |_, val| val,
    |key, val| key ^ val,
    |_, _| 7,
    |_, _| 8,
    |_, _| 9,
    |key, _| key,
];

pub(crate) fn text(val: u64) -> String {
    let hash = val.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{hash:016x}{:08x}", val as u32)
}

impl Shape {
    /// Sorts changes in the order of their columns.
    pub(crate) fn sort(&self, changes: &mut [Ints]) {
        if self.has_text {
            changes.sort_by_cached_key(|&((key, val), time, diff)| (key, text(val), time, diff));
        } else {
            changes.sort_unstable();
        }
    }

    /// Returns the schema shared by all record batches, as from a single producer: columns from `a`
    /// on, `time` and `diff`.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |(name, column): (String, ArrayRef)| {
            Field::new(name, column.data_type().clone(), false)
        };
        let mut names: Vec<String> = ('a'..='j').map(String::from).collect();
        names.truncate(self.numbers.len() + usize::from(self.has_text));
        names.extend(["time", "diff"].map(String::from));
        Arc::new(Schema::new(
            names.into_iter().zip(self.columns(&[])).map(field).collect::<Vec<_>>(),
        ))
    }

    pub(crate) fn record_batch(&self, schema: &SchemaRef, changes: &[Ints]) -> Result<RecordBatch> {
        Ok(RecordBatch::try_new(Arc::clone(schema), self.columns(changes))?)
    }

    fn columns(&self, changes: &[Ints]) -> Vec<ArrayRef> {
        let number = |of: &fn(u64, u64) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(changes.iter().map(|c| of(c.0.0, c.0.1))))
        };
        let mut columns: Vec<ArrayRef> = self.numbers.iter().map(number).collect();
        if self.has_text {
            let texts = changes.iter().map(|change| text(change.0.1));
            columns.push(Arc::new(StringArray::from_iter_values(texts)));
        }
        columns.push(Arc::new(UInt64Array::from_iter_values(changes.iter().map(|c| c.1))));
        columns.push(Arc::new(Int64Array::from_iter_values(changes.iter().map(|c| c.2))));
        columns
    }
}
