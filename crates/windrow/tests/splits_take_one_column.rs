//! A record batch that is given away is split beside the memory of one column, as counted by the
//! kernel. The test has its own file since peaks are per process.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use windrow::Partitioner;

const COLUMNS: u64 = 10;
const ROWS: u64 = 2 << 20;
/// Bytes of a column.
const COLUMN: usize = ROWS as usize * 8;

/// Returns a figure of the process in bytes, if the system reports it.
fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}

#[test]
fn of_ten() {
    let Some(before) = status("VmRSS:") else { return };
    let columns = (0..COLUMNS).map(|column| {
        let values = UInt64Array::from_iter_values((0..ROWS).map(|row| row * COLUMNS + column));
        (format!("c{column}"), Arc::new(values) as ArrayRef)
    });
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut partitioner = Partitioner::round_robin(16);
    let parts = partitioner.split_owned(batch).unwrap();
    let grown = status("VmHWM:").unwrap().saturating_sub(before);
    // Ten columns, one more, ids and targets of half a column each, and the ends of huge pages; a
    // split of a record batch that the caller keeps takes twenty.
    assert!(grown <= 15 * COLUMN, "{} MiB", grown >> 20);
    for partition in &parts {
        let first = partition.column(0).as_primitive::<UInt64Type>();
        assert!(first.values().is_sorted());
        let last = partition.column(9).as_primitive::<UInt64Type>();
        assert!(first.values().iter().zip(last.values()).all(|(a, b)| a + 9 == *b));
    }
    assert_eq!(parts.batch().num_rows(), ROWS as usize);
}
