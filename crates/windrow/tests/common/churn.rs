//! A table of four times the memory that it may take, under random inserts and reads: of tests, and of a program of
//! windrow-testdata, which is optimized.

use std::collections::HashMap;
use std::sync::Arc;

use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::UInt64Type;
use windrow::arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use windrow::{Budget, Mergers, Pool, Table};

/// Bytes that all of it may take.
const LIMIT: usize = 32 << 20;
/// Bytes that may be leased beyond: of each batch that is merged or read a chunk is held, and they meet.
const HELD: usize = 1 << 20;
/// Bytes that the process may take beyond: its code, and what is not leased.
const BESIDE: usize = 8 << 20;
/// Bytes of these that are not mapped from files.
const ANONYMOUS: usize = 2 << 20;
/// Bytes of a value. A row has a key of 8 bytes and as many of a time and of a diff beside.
const VALUE: usize = 200;
const KEYS: u64 = (4 * LIMIT / (VALUE + 24)) as u64;
/// Rows of a call.
const ROWS: u64 = 500;

/// A figure of the process in bytes, where the system tells.
fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 27)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// The value that a key has since this round.
fn value(key: u64, round: u32) -> Vec<u8> {
    let seed = mixed(key << 20 | u64::from(round));
    (0..VALUE as u64 / 8).flat_map(|at| mixed(seed + at).to_le_bytes()).collect()
}

fn keys(keys: &[u64]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
    RecordBatch::try_from_iter([("key", keys)]).unwrap()
}

fn rows(of: &[u64], round: u32) -> RecordBatch {
    let values = BinaryArray::from_iter_values(of.iter().map(|&key| value(key, round)));
    let keys = Arc::clone(keys(of).column(0));
    RecordBatch::try_from_iter([("key", keys), ("value", Arc::new(values) as ArrayRef)]).unwrap()
}

/// Keys in any order, each at most once.
fn drawn(round: u32, count: u64) -> Vec<u64> {
    let mut keys: Vec<u64> =
        (0..count).map(|at| mixed(u64::from(round) << 32 | at) % KEYS).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.sort_unstable_by_key(|&key| mixed(key));
    keys
}

/// Inserts and reads at random, on the table's own time or with threads that merge.
pub(crate) fn churn(mergers: Option<&Mergers>) {
    assert_ne!(KEYS % 7919, 0);
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(LIMIT)).unwrap();
    let mut table = Table::new(&rows(&[], 0).schema(), "key", &pool).unwrap();
    if let Some(mergers) = mergers {
        table.merge_on(mergers);
    }
    // The round since which a key has its value; the first is that of all keys which are not here.
    let mut changed: HashMap<u64, u32> = HashMap::new();
    // 7919 is prime, and no divisor of the number of keys.
    for from in (0..KEYS).step_by(ROWS as usize) {
        let some: Vec<u64> = (from..KEYS.min(from + ROWS)).map(|key| key * 7919 % KEYS).collect();
        table.upsert(&rows(&some, 0)).unwrap();
    }
    for round in 1..60 {
        let written = drawn(round, ROWS / 4);
        let time = table.upsert(&rows(&written, round)).unwrap();
        table.forget_before(time).unwrap();
        changed.extend(written.iter().map(|&key| (key, round)));
        let read = drawn(1000 + round, ROWS / 4);
        let found = table.get(&keys(&read)).unwrap();
        assert_eq!(found.num_rows(), read.len());
        let values = found.column(1).as_binary::<i32>();
        for (key, got) in found.column(0).as_primitive::<UInt64Type>().values().iter().zip(values) {
            let round = changed.get(key).copied().unwrap_or(0);
            assert_eq!(got, Some(&value(*key, round)[..]), "{key}");
        }
    }
    let state: u64 = table.spine().batches().filter_map(|batch| batch.bytes()).sum();
    assert!(state >= 4 * LIMIT as u64, "{state} bytes");
    let stats = pool.stats();
    assert!(stats.spilled_bytes > 3 * LIMIT, "{stats:?}");
    assert!(stats.peak_leased <= LIMIT + HELD, "{stats:?}");
    if let Some(peak) = status("VmHWM:") {
        println!("{peak} bytes resident at the peak, {} leased, {stats:?}", stats.peak_leased);
        // Code that is not optimized is longer, and how much of it is mapped depends on what the system has of the file.
        let mapped = status("RssFile:").unwrap();
        assert!(peak - mapped <= LIMIT + ANONYMOUS, "{peak} resident, {mapped} mapped, {stats:?}");
        assert!(cfg!(debug_assertions) || peak <= LIMIT + BESIDE, "{peak} resident, {stats:?}");
    }
}
