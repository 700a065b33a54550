//! Columns and ids of the cells.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringViewArray,
};

use windrow_testdata::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    BigInt,
    HugeInt,
    /// Views, like the seed's strings.
    VarChar,
    /// Offsets and bytes, with lengths from 0 to 24.
    Utf8,
    Mixed,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::Boolean,
        Self::Integer,
        Self::BigInt,
        Self::HugeInt,
        Self::VarChar,
        Self::Utf8,
        Self::Mixed,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Integer => "INTEGER",
            Self::BigInt => "BIGINT",
            Self::HugeInt => "HUGEINT",
            Self::VarChar => "VARCHAR",
            Self::Utf8 => "UTF8",
            Self::Mixed => "MIXED",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Uniform,
    /// Nine of ten rows belong to partition 0.
    Skewed,
    Sorted,
    RoundRobin,
}

impl Shape {
    pub(super) const ALL: [Self; 4] = [Self::Uniform, Self::Skewed, Self::Sorted, Self::RoundRobin];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Skewed => "skewed",
            Self::Sorted => "sorted",
            Self::RoundRobin => "round-robin",
        }
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
        let (rng, partitions) = (&mut self.rng, self.partitions);
        for set in &mut self.sets {
            // The first partition is the only random choice of a round-robin set.
            let first = rng.below(partitions as u64) as usize;
            for (row, id) in set.iter_mut().enumerate() {
                *id = match self.shape {
                    Shape::RoundRobin => ((first + row) % partitions) as u32,
                    Shape::Skewed if !rng.percent(10) => 0,
                    _ => rng.below(partitions as u64) as u32,
                };
            }
            if self.shape == Shape::Sorted {
                sort(set, partitions);
            }
        }
    }

    pub(super) fn set(&self, turn: usize) -> Set<'_> {
        Set { ids: &self.sets[turn % self.sets.len()], partitions: self.partitions }
    }
}

/// Sorts as the standard library does, but by counting, which is faster.
fn sort(ids: &mut [u32], partitions: usize) {
    let mut counts = vec![0; partitions];
    ids.iter().for_each(|&id| counts[id as usize] += 1);
    let mut rest = ids;
    for (id, count) in (0..).zip(counts) {
        let run;
        (run, rest) = rest.split_at_mut(count);
        run.fill(id);
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
pub(super) fn record_batch(kind: Kind, columns: usize, rows: usize, nulls: bool) -> RecordBatch {
    let mut rng = Rng::new(99);
    let columns = (0..columns).map(|index| {
        let kind = match kind {
            Kind::Mixed => {
                [Kind::Integer, Kind::BigInt, Kind::VarChar, Kind::HugeInt, Kind::Boolean]
                    [index % 5]
            }
            kind => kind,
        };
        (format!("c{index}"), column(kind, rows, nulls, &mut rng))
    });
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn column(kind: Kind, rows: usize, nulls: bool, rng: &mut Rng) -> ArrayRef {
    let valid: Vec<bool> = (0..rows).map(|_| !nulls || !rng.percent(10)).collect();
    macro_rules! array {
        ($array:ty, $value:expr) => {{
            let value = $value;
            let values: Vec<Option<_>> =
                valid.iter().map(|valid| valid.then_some(value(&mut *rng))).collect();
            Arc::new(<$array>::from(values))
        }};
    }
    match kind {
        Kind::Boolean => array!(BooleanArray, |rng: &mut Rng| rng.below(2) == 1),
        Kind::Integer | Kind::Mixed => array!(Int32Array, |rng: &mut Rng| rng.next_u64() as i32),
        Kind::BigInt => array!(Int64Array, |rng: &mut Rng| rng.next_u64() as i64),
        Kind::HugeInt => array!(Decimal128Array, |rng: &mut Rng| i128::from(rng.next_u64())),
        Kind::VarChar => {
            let texts: Vec<Option<String>> =
                valid.iter().map(|valid| valid.then(|| text(rng))).collect();
            Arc::new(StringViewArray::from_iter(texts))
        }
        Kind::Utf8 => array!(StringArray, text),
    }
}

fn text(rng: &mut Rng) -> String {
    let len = rng.below(25);
    (0..len).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}
