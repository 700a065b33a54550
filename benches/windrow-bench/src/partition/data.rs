//! Columns and ids of the cells.

use arrow::array::RecordBatch;

use crate::columns::{Kind, column};
use windrow_testdata::rng::Rng;

/// Texts have lengths from 0 to 24: views, like the seed's strings, and offsets with bytes.
pub(super) const BOOLEAN: Type = ("BOOLEAN", &[Kind::Bool]);
pub(super) const INTEGER: Type = ("INTEGER", &[Kind::I32]);
pub(super) const BIGINT: Type = ("BIGINT", &[Kind::I64]);
pub(super) const HUGEINT: Type = ("HUGEINT", &[Kind::Decimal]);
pub(super) const VARCHAR: Type = ("VARCHAR", &[Kind::View(0, 24)]);
pub(super) const UTF8: Type = ("UTF8", &[Kind::Utf8("", 0, 24)]);
pub(super) const MIXED: Type =
    ("MIXED", &[Kind::I32, Kind::I64, Kind::View(0, 24), Kind::Decimal, Kind::Bool]);

/// A name, and the kinds of columns, which take turns.
pub(super) type Type = (&'static str, &'static [Kind]);

/// A distribution of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Uniform,
    /// Nine of ten rows belong to partition 0.
    Skewed,
    Sorted,
}

impl Shape {
    pub(super) const ALL: [Self; 3] = [Self::Uniform, Self::Skewed, Self::Sorted];

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

/// One set of ids.
#[derive(Clone, Copy)]
pub(super) struct Set<'a> {
    ids: &'a [u32],
    partitions: usize,
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

    pub(super) fn set(&self, turn: usize) -> Set<'_> {
        Set { ids: &self.sets[turn % self.sets.len()], partitions: self.partitions }
    }
}

impl<'a> Set<'a> {
    pub(super) fn ids(self) -> &'a [u32] {
        self.ids
    }

    /// Returns the exclusive upper bound of the ids.
    pub(super) fn partitions(self) -> usize {
        self.partitions
    }
}

/// Generates a record batch of `columns` columns, with a tenth of the values null if `nulls`.
pub(super) fn record_batch(
    (_, kinds): Type,
    columns: usize,
    rows: usize,
    nulls: bool,
) -> RecordBatch {
    let mut rng = Rng::new(99);
    let kinds = kinds.iter().cycle().take(columns).enumerate();
    let columns = kinds.map(|(index, &kind)| {
        (format!("c{index}"), column(kind, &mut rng, rows, if nulls { 10 } else { 0 }))
    });
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}
