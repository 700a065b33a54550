//! Columns and ids of the cells.

use arrow::array::RecordBatch;

use crate::Result;
use crate::columns::{self, Kind};
use windrow_testdata::rng::Rng;

/// A name, and the kinds of columns, which take turns.
pub(super) type Type = (&'static str, &'static [Kind]);

pub(super) const INTEGER: Type = ("INTEGER", &[Kind::I32]);
pub(super) const BIGINT: Type = ("BIGINT", &[Kind::I64]);
pub(super) const MIXED: Type =
    ("MIXED", &[Kind::I32, Kind::I64, Kind::View(0, 24), Kind::Decimal, Kind::Bool]);
/// Texts have lengths from 0 to 24: views, like Velox's strings, and offsets with bytes.
pub(super) const TYPES: [Type; 14] = [
    ("BOOLEAN", &[Kind::Bool]),
    ("TINYINT", &[Kind::I8]),
    ("SMALLINT", &[Kind::I16]),
    INTEGER,
    BIGINT,
    ("DOUBLE", &[Kind::F64]),
    ("HUGEINT", &[Kind::Decimal]),
    ("VARCHAR", &[Kind::View(0, 24)]),
    ("UTF8", &[Kind::Utf8("", 0, 24)]),
    ("ROW", &[Kind::Struct]),
    ("ARRAY", &[Kind::List]),
    ("MAP", &[Kind::Map]),
    ("DICTIONARY", &[Kind::Dictionary(100)]),
    MIXED,
];

/// Generates a record batch of `columns` columns, with a tenth of the values null if `nulls`.
pub(super) fn record_batch(
    (_, kinds): Type,
    columns: usize,
    rows: usize,
    nulls: bool,
) -> Result<RecordBatch> {
    let kinds = kinds.iter().cycle().take(columns).copied();
    columns::record_batch(kinds, 99, rows, nulls.then_some(10))
}

/// A distribution of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Uniform,
    /// Nine of ten rows belong to partition 0.
    Skewed,
    Sorted,
}

impl Shape {
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Sets of ids of one shape, all below the number of partitions.
pub(super) struct Ids {
    shape: Shape,
    partitions: usize,
    rng: Rng,
    sets: Vec<Vec<u32>>,
}

impl Ids {
    pub(super) fn new(shape: Shape, rows: usize, partitions: usize, sets: usize) -> Self {
        let sets = vec![vec![0; rows]; sets];
        let mut ids = Self { shape, partitions, rng: Rng::new(1), sets };
        ids.refresh();
        ids
    }

    /// Replaces all ids by new ones.
    pub(super) fn refresh(&mut self) {
        for set in &mut self.sets {
            for id in &mut *set {
                let is_first = self.shape == Shape::Skewed && !self.rng.percent(10);
                *id = if is_first { 0 } else { self.rng.below(self.partitions as u64) as u32 };
            }
            if self.shape == Shape::Sorted {
                set.sort_unstable();
            }
        }
    }

    pub(super) fn set(&self, turn: usize) -> &[u32] {
        &self.sets[turn % self.sets.len()]
    }

    /// Returns the exclusive upper bound of the ids.
    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }
}
