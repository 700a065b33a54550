//! The budget's count of bytes agrees with the kernel's. The test has its own file since peaks are
//! per process.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use windrow::{Batcher, Budget, Codec, Finish, Order, Pool, PoolOptions};

/// Most bytes by which the two counts may differ.
const APART: usize = 16 << 20;

/// Returns a figure of the process in bytes, if the system reports it.
fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}

fn batch(index: u64) -> RecordBatch {
    let numbers = (0..8192u64).map(|i| (index * 8192 + i).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let keys = Int64Array::from_iter_values(numbers.clone().map(|n| n as i64));
    let texts = StringArray::from_iter_values(numbers.map(|n| format!("value {n:x}")));
    let columns: [(&str, ArrayRef); 2] = [("key", Arc::new(keys)), ("text", Arc::new(texts))];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn at_every_budget() {
    let layout = Order::by("key").bind(&batch(0).schema()).unwrap();
    // Ascending budgets: the peak of a process never falls.
    for (mebibytes, codec) in [(8, Codec::None), (24, Codec::Lz4), (64, Codec::None)] {
        let Some(before) = status("VmRSS:") else { return };
        let budget = mebibytes << 20;
        let options = PoolOptions::new().codec(codec);
        let pool = Pool::new(Budget::bytes(budget), options).unwrap();
        let mut batcher = Batcher::new(&layout, &pool);
        for index in 0..300 {
            batcher.push(&batch(index)).unwrap();
        }
        let mut slabs = batcher.finish().unwrap().slabs(Finish::Log);
        let mut rows = 0;
        while let Some(slab) = slabs.next(8192, usize::MAX).unwrap() {
            rows += slab.rows();
        }
        assert_eq!(rows, 300 * 8192);
        let stats = pool.stats();
        assert!(stats.spilled_bytes > 0, "{stats:?}");
        let peak = status("VmHWM:").unwrap();
        let grown = peak.saturating_sub(before);
        println!("{mebibytes} MiB: leased {}, resident {grown} more", stats.peak_leased);
        assert!(grown.abs_diff(stats.peak_leased) <= APART, "{grown} resident, {stats:?}");
    }
}
