//! Changes pushed, sealed and advanced in an order that nobody thought of, by memory without a limit and
//! by a pool that writes everything to its file, in rows that vary and in rows of one length: what comes out is
//! what thirty slow lines say.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{Int64Type, UInt64Type};
use windrow::arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, Int64Array, RecordBatch, UInt64Array,
};
use windrow::arrow_schema::{DataType, Field, Schema};
use windrow::{Antichain, Batch, Batcher, Budget, ForceSpill, Layout, Order, Pool};

/// Bytes of words of one length: as many as any has, behind which are zeros. No word has one of its own.
const WIDTH: i32 = 48;

/// Layouts of words that vary and of words of one length.
static LAYOUTS: LazyLock<[Layout; 2]> = LazyLock::new(|| {
    [DataType::Binary, DataType::FixedSizeBinary(WIDTH)].map(|words| {
        let schema = Schema::new(vec![
            Field::new("word", words, true),
            Field::new("number", DataType::UInt64, false),
            Field::new("time", DataType::UInt64, false),
            Field::new("diff", DataType::Int64, false),
        ]);
        let order = Order::by("word").time("time").diff("diff");
        order.bind(&Arc::new(schema)).expect("columns that there are")
    })
});

/// A pool whose pages are all written to its file and read back.
static FILE: LazyLock<Pool> = LazyLock::new(|| {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(64 << 20))
        .expect("a directory for temporary files");
    pool.set_policy(Arc::new(ForceSpill));
    pool
});

type Change = (Option<Vec<u8>>, u64, u64);

fn record_batch(layout: &Layout, changes: &[(Change, i64)]) -> RecordBatch {
    let words = changes.iter().map(|((word, _, _), _)| word.as_deref());
    let words: ArrayRef = match layout.schema().field(0).data_type() {
        DataType::Binary => Arc::new(words.collect::<BinaryArray>()),
        _ => {
            let padded = words.map(|word| {
                let mut padded = word?.to_vec();
                padded.resize(WIDTH as usize, 0);
                Some(padded)
            });
            let words = FixedSizeBinaryArray::try_from_sparse_iter_with_size(padded, WIDTH);
            Arc::new(words.expect("words of one length"))
        }
    };
    let numbers = UInt64Array::from_iter_values(changes.iter().map(|change| change.0.1));
    let times = UInt64Array::from_iter_values(changes.iter().map(|change| change.0.2));
    let diffs = Int64Array::from_iter_values(changes.iter().map(|change| change.1));
    let columns = vec![words, Arc::new(numbers) as _, Arc::new(times) as _, Arc::new(diffs) as _];
    RecordBatch::try_new(layout.schema().clone(), columns).expect("columns as the schema has them")
}

/// The changes of a batch, which must be in order and none of them twice.
fn changes_of(batch: Batch) -> BTreeMap<Change, i64> {
    let mut found = BTreeMap::new();
    let mut last: Option<(bool, Vec<u8>)> = None;
    for batch in batch.record_batches(7).expect("a batch can be read") {
        let batch = batch.expect("a batch can be read");
        let words = batch.column(0);
        let word = |row: usize| match words.as_binary_opt::<i32>() {
            _ if words.is_null(row) => None,
            Some(words) => Some(words.value(row).to_vec()),
            None => {
                let padded = words.as_fixed_size_binary().value(row);
                Some(padded.split(|&byte| byte == 0).next().unwrap_or(&[]).to_vec())
            }
        };
        let [numbers, times] = [1, 2].map(|at| batch.column(at).as_primitive::<UInt64Type>());
        let diffs = batch.column(3).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let word = word(row);
            let key = (word.is_none(), word.clone().unwrap_or_default());
            assert!(last.as_ref().is_none_or(|last| *last <= key), "words in order, nulls last");
            last = Some(key);
            let change = (word, numbers.value(row), times.value(row));
            assert!(found.insert(change, diffs.value(row)).is_none(), "a change once");
        }
    }
    found
}

fuzz_target!(|data: &[u8]| {
    let Some((&shape, mut bytes)) = data.split_first() else { return };
    let pool = if shape & 1 > 0 { FILE.clone() } else { Pool::unlimited() };
    let layout = &LAYOUTS[usize::from(shape & 2 > 0)];
    let mut batcher = Batcher::new(layout, &pool);
    let mut held: BTreeMap<Change, i64> = BTreeMap::new();
    let mut frontier = 0;
    let add = |held: &mut BTreeMap<Change, i64>, change: Change, diff: i64| {
        let sum = held.entry(change.clone()).or_default();
        *sum += diff;
        if *sum == 0 {
            held.remove(&change);
        }
    };
    while let Some((&[step, count], rest)) = bytes.split_first_chunk() {
        bytes = rest;
        if step % 4 > 0 {
            // Four bytes of a change: a word that is repeated, a number, a time, a diff.
            let (front, rest) = bytes.split_at((usize::from(count) * 4).min(bytes.len()));
            bytes = rest;
            let change = |bytes: &[u8]| {
                let word = (bytes[0] > 15)
                    .then(|| vec![bytes[0]; usize::from(bytes[1]) % 16 * usize::from(step / 64)]);
                let change = (word, u64::from(bytes[1] / 16), frontier + u64::from(bytes[2] % 8));
                (change, i64::from(bytes[3] as i8 % 3))
            };
            let changes: Vec<_> = front.chunks_exact(4).map(change).collect();
            batcher.push(&record_batch(layout, &changes)).expect("changes can be pushed");
            for (change, diff) in changes {
                add(&mut held, change, diff);
            }
        } else {
            frontier += u64::from(count % 4);
            let sealed = batcher.seal(&Antichain::at(frontier)).expect("changes can be sealed");
            let later: BTreeMap<_, _> = held
                .iter()
                .filter(|(change, _)| change.2 >= frontier)
                .map(|(c, d)| (c.clone(), *d))
                .collect();
            held.retain(|change, _| change.2 < frontier);
            let before = std::mem::replace(&mut held, later);
            if step & 64 > 0 {
                let since = frontier + u64::from(step / 128);
                let sealed = sealed.advance(&Antichain::at(since)).expect("times can be moved up");
                let mut moved = BTreeMap::new();
                for ((word, number, time), diff) in before {
                    add(&mut moved, (word, number, time.max(since)), diff);
                }
                assert_eq!(changes_of(sealed), moved);
            } else {
                assert_eq!(changes_of(sealed), before);
            }
            let lowest = held.keys().map(|change| change.2).min();
            assert_eq!(batcher.frontier(), &lowest.map_or_else(Antichain::new, Antichain::at));
        }
    }
    assert_eq!(changes_of(batcher.finish().expect("a batcher finishes")), held);
});
