//! A table of four times the memory limit under random inserts and reads. Used by tests and by a
//! program of windrow-testdata, compiled with optimization.

use std::collections::HashMap;
use std::sync::Arc;

use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::UInt64Type;
use windrow::arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use windrow::{Budget, Mergers, Pool, Table};

/// Memory limit in bytes.
const LIMIT: usize = 32 << 20;
/// Bytes that leases may exceed the limit by: one chunk of each batch being merged or read.
const HELD: usize = 1 << 20;
/// Bytes that the process may take beyond the limit: its code, and memory that is not leased.
const BESIDE: usize = 8 << 20;
/// Bytes of `BESIDE` that are not mapped from files.
const ANONYMOUS: usize = 2 << 20;
/// Bytes of a value. A row has a key, a time and a diff of 8 bytes each in addition.
const VALUE: usize = 200;
const KEYS: u64 = (4 * LIMIT / (VALUE + 24)) as u64;
/// Rows of a call.
const ROWS: u64 = 500;

/// Returns a figure of the process in bytes, if the system reports it.
fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 27)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Returns the value of a key written in a round.
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

/// Returns distinct keys in random order.
fn drawn(round: u32, count: u64) -> Vec<u64> {
    let mut keys: Vec<u64> =
        (0..count).map(|at| mixed(u64::from(round) << 32 | at) % KEYS).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.sort_unstable_by_key(|&key| mixed(key));
    keys
}

/// Inserts and reads at random; the calls merge, or threads do.
pub(crate) fn churn(mergers: Option<&Mergers>) {
    assert_ne!(KEYS % 7919, 0);
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(LIMIT)).unwrap();
    let mut table = Table::new(&rows(&[], 0).schema(), "key", &pool).unwrap();
    if let Some(mergers) = mergers {
        table.merge_on(mergers);
    }
    // The round of each key's last write; absent keys were written in the first round.
    let mut changed: HashMap<u64, u32> = HashMap::new();
    // 7919 is prime and does not divide the number of keys.
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
        // Code without optimization is larger, and the kernel decides how much of it is mapped.
        let mapped = status("RssFile:").unwrap();
        assert!(peak - mapped <= LIMIT + ANONYMOUS, "{peak} resident, {mapped} mapped, {stats:?}");
        assert!(cfg!(debug_assertions) || peak <= LIMIT + BESIDE, "{peak} resident, {stats:?}");
    }
}
