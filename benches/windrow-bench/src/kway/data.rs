//! Sorted records, as arrays of words and as batches; also those of the bench beside DBSP.

use std::sync::Arc;

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use windrow::{Batch, Batcher, Layout, Order, Pool};

use crate::Result;
use crate::rng::Rng;

/// Compared words or a text, and a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Record<T>(pub(crate) T, pub(crate) i64);

/// Eleven words.
pub(crate) type Words = [u64; 11];
/// A text of 24 bytes, five values.
pub(crate) type Text = ([u8; 24], [u64; 5]);

/// Formats the first three words as 24 characters.
pub(crate) fn text(words: &Words) -> String {
    let [a, b, c, ..] = words;
    format!("{a:08x}{b:08x}{c:08x}")
}

/// The relation between the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Keys below 100: the values decide the order.
    FewKeys,
    /// Keys below 1e8.
    ManyKeys,
    /// Four of five records are duplicates.
    Duplicates,
    Disjoint,
    /// String keys of 24 bytes.
    Strings,
}

/// Sorted runs of words.
pub(crate) type Runs = Vec<Vec<Record<Words>>>;

/// Returns the number of records of all runs.
pub(crate) fn records(runs: &Runs) -> f64 {
    runs.iter().map(Vec::len).sum::<usize>() as f64
}

/// Generates `count` sorted runs, each without equal records, of random values of so many bits.
pub(crate) fn runs(work: Work, count: usize, records: usize, bits: u32, seed: u64) -> Runs {
    let mut rng = Rng::new(seed);
    let mut run = |run: u64| {
        let mut record = |_| {
            let key = match work {
                Work::FewKeys => rng.below(100),
                Work::ManyKeys | Work::Strings => rng.below(100_000_000),
                Work::Duplicates => rng.below(records as u64 / 5),
                Work::Disjoint => (run << 32) + rng.below(100_000_000),
            };
            // For duplicates, the same key implies the same record.
            let mut of_key = Rng::new(key);
            let from = if work == Work::Duplicates { &mut of_key } else { &mut rng };
            let mut words = [key; 11];
            words[1..].fill_with(|| from.next_u64() >> (64 - bits));
            Record(words, 1)
        };
        let mut out: Vec<_> = (0..records / count).map(&mut record).collect();
        out.sort_unstable();
        out.dedup();
        out
    };
    (0..count as u64).map(&mut run).collect()
}

/// Converts records to columns; strings replace the first three words.
fn record_batch(work: Work, records: &[Record<Words>]) -> RecordBatch {
    let words = |range: std::ops::Range<usize>| {
        range.map(|at| {
            let word = UInt64Array::from_iter_values(records.iter().map(|record| record.0[at]));
            (format!("v{at}"), Arc::new(word) as ArrayRef, false)
        })
    };
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    if work == Work::Strings {
        let texts = StringArray::from_iter_values(records.iter().map(|record| text(&record.0)));
        columns.push(("key".into(), Arc::new(texts), false));
        columns.extend(words(3..8));
    } else {
        columns.extend(words(0..11));
    }
    let diffs = Int64Array::from_iter_values(records.iter().map(|record| record.1));
    columns.push(("diff".into(), Arc::new(diffs), false));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// Returns the layout of the records.
pub(crate) fn layout(work: Work) -> Result<Layout> {
    let schema = record_batch(work, &[]).schema();
    Ok(Order::by(schema.field(0).name().as_str()).diff("diff").bind(&schema)?)
}

/// Builds a batch of one chain from a sorted run, in memory as far as the pool's limit allows.
pub(crate) fn chain(
    layout: &Layout,
    pool: &Pool,
    work: Work,
    run: &[Record<Words>],
) -> Result<Batch> {
    let mut batcher = Batcher::new(layout, pool);
    for piece in run.chunks(8192) {
        batcher.push(&record_batch(work, piece))?;
    }
    Ok(batcher.finish()?.settle()?)
}
