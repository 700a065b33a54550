//! Thousands of partitions, one of them hot, within a fixed limit, as counted by the kernel instead
//! of the budget. The test has its own file since peaks are per process.

mod common;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, RecordBatch, StringViewArray, UInt64Array,
};
use common::arrays::Rng;
use windrow::{Budget, PartitionBuilder, Partitioner, Pool};

const PARTITIONS: usize = 2048;
const HOT: usize = 1234;
const ROWS: u64 = 8192;
const BATCHES: u64 = 300;
/// Bytes beyond the budget: the pushed record batch, the returned chunk with its sources, and free
/// memory that the allocator retains.
const BESIDE: usize = 8 << 20;

/// Returns a figure of the process in bytes, if the system reports it.
fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}

fn batch(first: u64) -> RecordBatch {
    let numbers = first..first + ROWS;
    let columns: [(&str, ArrayRef); 4] = [
        ("number", Arc::new(UInt64Array::from_iter_values(numbers.clone()))),
        ("text", {
            let texts =
                numbers.clone().map(|n| (n % 10 > 0).then(|| format!("the row number {n}")));
            Arc::new(texts.collect::<StringViewArray>())
        }),
        ("amount", {
            let amounts = numbers.clone().map(|n| i128::from(n) << 40);
            Arc::new(Decimal128Array::from_iter_values(amounts))
        }),
        ("even", Arc::new(numbers.map(|n| Some(n % 2 == 0)).collect::<BooleanArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn two_thousand_partitions_with_one_hot_key_stay_within_the_limit() {
    // Ascending limits: the peak of a process never falls. The rows are about 150 MiB.
    for mebibytes in [8, 16, 64] {
        let Some(before) = status("VmRSS:") else { return };
        let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(mebibytes << 20)).unwrap();
        let partitioner = Partitioner::ids(PARTITIONS);
        let mut builder = PartitionBuilder::new(partitioner, &batch(0).schema(), &pool).unwrap();
        let mut rng = Rng::new(3);
        let mut expected = vec![0; PARTITIONS];
        for index in 0..BATCHES {
            let ids: Vec<u32> = (0..ROWS)
                .map(|_| if rng.below(10) > 0 { HOT } else { rng.below(PARTITIONS) } as u32)
                .collect();
            ids.iter().for_each(|&id| expected[id as usize] += 1);
            builder.push_by_ids(&batch(index * ROWS), &ids).unwrap();
        }
        for (partition, expected) in expected.into_iter().enumerate() {
            let (mut rows, mut next) = (0, 0);
            for chunk in builder.flush(partition).unwrap() {
                let chunk = chunk.unwrap();
                rows += chunk.num_rows();
                for (row, &number) in
                    chunk.column(0).as_primitive::<UInt64Type>().values().iter().enumerate()
                {
                    assert!(number >= next);
                    next = number + 1;
                    let text = chunk.column(1).as_string_view();
                    let null = number % 10 == 0;
                    assert!(
                        null && arrow_array::Array::is_null(text, row)
                            || text.value(row).ends_with(&number.to_string())
                    );
                }
            }
            assert_eq!(rows, expected);
        }
        let stats = pool.stats();
        assert!(stats.spilled_bytes > 0 && stats.peak_leased <= (mebibytes << 20) + (1 << 20));
        let grown = status("VmHWM:").unwrap().saturating_sub(before);
        println!("{mebibytes} MiB: leased {}, resident {grown} more", stats.peak_leased);
        assert!(grown <= (mebibytes << 20) + BESIDE, "{grown} resident, {stats:?}");
    }
}
