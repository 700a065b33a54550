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
/// Half of the columns of a wide record.
pub(crate) type Half = (u64, u64, u64, u64, u64);

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
fn consolidated<K: Ord, V: Ord>(mut changes: Vec<Change<K, V>>) -> Vec<Change<K, V>> {
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
pub(crate) fn pair(regime: Regime, count: usize, seed: u64) -> (Vec<Ints>, Vec<Ints>) {
    let mut rng = Rng::new(seed);
    let range = count as u64;
    let random = |rng: &mut Rng, base: u64, keys: u64| {
        let change = |_| ((base + rng.below(keys), rng.below(keys)), rng.below(4), diff(rng));
        consolidated((0..count).map(change).collect())
    };
    match regime {
        Regime::Random => (random(&mut rng, 0, 2 * range), random(&mut rng, 0, 2 * range)),
        Regime::Disjoint => (random(&mut rng, 0, range), random(&mut rng, range, range)),
        Regime::Alternating => {
            let base = rng.below(1 << 32);
            let side = |value| (0..range).map(|i| ((base + i, value), i & 3, 1)).collect();
            (side(7), side(9))
        }
        Regime::Equal => {
            // About 40 % of a side's keys also occur on the second side.
            let mut side = || {
                let change = |_| {
                    let key = rng.below(range);
                    ((key >> 3, key & 7), rng.below(2), diff(&mut rng))
                };
                consolidated((0..count).map(change).collect())
            };
            (side(), side())
        }
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
            let [a, b] = sides;
            (a, b)
        }
        Regime::Sorted => {
            // Stretches of one sorted sequence, as long as chunks of integers, alternate between
            // the sides.
            let change =
                |_| ((rng.below(4 * range), rng.below(range)), rng.below(4), diff(&mut rng));
            let all = consolidated((0..2 * count).map(change).collect());
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for (index, piece) in all.chunks((1 << 16).min(count.max(1))).enumerate() {
                [&mut a, &mut b][index % 2].extend_from_slice(piece);
            }
            (a, b)
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

/// The key and value types of a record.
pub(crate) trait Shape {
    type Key: Ord + Clone + 'static;
    type Val: Ord + Clone + 'static;
    const NAME: &'static str;
    /// Nominal bytes of a record.
    const BYTES: usize;
    /// Converts two integers to a record of this shape.
    fn of(key: u64, val: u64) -> (Self::Key, Self::Val);
    /// Returns the columns of keys and values.
    fn columns(changes: &[Change<Self::Key, Self::Val>]) -> Vec<ArrayRef>;

    fn changes(ints: &[Ints]) -> Vec<Change<Self::Key, Self::Val>> {
        ints.iter().map(|&((key, val), time, diff)| (Self::of(key, val), time, diff)).collect()
    }

    fn sorted(ints: &[Ints]) -> Vec<Change<Self::Key, Self::Val>> {
        let mut changes = Self::changes(ints);
        changes.sort_unstable();
        changes
    }

    /// Returns the schema shared by all record batches, as from a single producer: columns from `a`
    /// on, `time` and `diff`.
    fn schema() -> SchemaRef {
        let names = ('a'..='j').map(String::from);
        let fields = names.zip(Self::columns(&[])).chain([
            ("time".to_owned(), u64s([].into_iter())),
            ("diff".to_owned(), Arc::new(Int64Array::from(vec![0; 0])) as ArrayRef),
        ]);
        let field = |(name, column): (String, ArrayRef)| {
            Field::new(name, column.data_type().clone(), false)
        };
        Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
    }

    fn record_batch(
        schema: &SchemaRef,
        changes: &[Change<Self::Key, Self::Val>],
    ) -> Result<RecordBatch> {
        let mut columns = Self::columns(changes);
        columns.push(u64s(changes.iter().map(|change| change.1)));
        columns.push(Arc::new(Int64Array::from_iter_values(changes.iter().map(|c| c.2))));
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

/// `((u64, u64), u64, i64)`.
pub(crate) struct Integers;

impl Shape for Integers {
    type Key = u64;
    type Val = u64;
    const NAME: &'static str = "ints";
    const BYTES: usize = 32;

    fn of(key: u64, val: u64) -> (u64, u64) {
        (key, val)
    }

    fn columns(changes: &[Ints]) -> Vec<ArrayRef> {
        vec![u64s(changes.iter().map(|c| c.0.0)), u64s(changes.iter().map(|c| c.0.1))]
    }
}

/// `((i64, 24-character string), u64, i64)`.
pub(crate) struct RowKeyed;

impl Shape for RowKeyed {
    type Key = i64;
    type Val = String;
    const NAME: &'static str = "row-keyed";
    const BYTES: usize = 64;

    fn of(key: u64, val: u64) -> (i64, String) {
        let hash = val.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (key as i64, format!("{hash:016x}{:08x}", val as u32))
    }

    fn columns(changes: &[Change<i64, String>]) -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from_iter_values(changes.iter().map(|c| c.0.0))),
            Arc::new(StringArray::from_iter_values(changes.iter().map(|c| &c.0.1))),
        ]
    }
}

/// Ten integers, time and diff.
pub(crate) struct Wide;

impl Shape for Wide {
    type Key = Half;
    type Val = Half;
    const NAME: &'static str = "12 columns";
    const BYTES: usize = 96;

    fn of(key: u64, val: u64) -> (Half, Half) {
        ((key, val, 3, 4, val), (key ^ val, 7, 8, 9, key))
    }

    fn columns(changes: &[Change<Half, Half>]) -> Vec<ArrayRef> {
        let fields: [fn(&Half) -> u64; 5] = [|h| h.0, |h| h.1, |h| h.2, |h| h.3, |h| h.4];
        let column = |is_key: bool, field: fn(&Half) -> u64| {
            u64s(changes.iter().map(|c| field(if is_key { &c.0.0 } else { &c.0.1 })))
        };
        [true, false].into_iter().flat_map(|half| fields.map(|field| column(half, field))).collect()
    }
}
