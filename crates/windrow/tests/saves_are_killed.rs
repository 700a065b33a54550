//! Processes that save a table again and again, and are killed with signal 9: the directory holds
//! the state of the last save, or of the one under way.
#![cfg(feature = "ipc")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::Int64Type;
use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use windrow::{Budget, Pool, PoolOptions, Table};

/// Names the directory, for a process that saves.
const DIRECTORY: &str = "WINDROW_TEST_SAVES_TO";
const KILLS: u64 = 25;

fn rows(ids: impl Iterator<Item = i64>, time: u64) -> RecordBatch {
    let ids: Vec<i64> = ids.collect();
    let texts = ids.iter().map(|id| format!("{time} {id:>120}"));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let ids: ArrayRef = Arc::new(Int64Array::from(ids));
    RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap()
}

/// Returns the ids that are written at a time, and whether they are deleted.
fn change(time: u64) -> (impl Iterator<Item = i64>, bool) {
    ((0..200).map(move |at| (at * 7 + time as i64 * 31) % 1999), time % 4 == 3)
}

fn pool() -> Pool {
    Pool::new(Budget::bytes(1 << 20), PoolOptions::new().chunk_bytes(16 << 10)).unwrap()
}

fn saves_until_killed(directory: &Path) -> ! {
    let pool = pool();
    let mut table = match Table::open(directory, &pool) {
        Ok(table) => table,
        Err(_) => Table::new(&rows(std::iter::empty(), 0).schema(), "id", &pool).unwrap(),
    };
    loop {
        let empty = table.spine().upper().elements() == [0];
        let time = if empty { 0 } else { table.now() + 1 };
        let (ids, is_deletion) = change(time);
        let rows = rows(ids, time);
        let written = match is_deletion {
            true => table.delete(&rows.project(&[0]).unwrap()).unwrap(),
            false => table.upsert(&rows).unwrap(),
        };
        assert_eq!(written, time);
        table.forget_before(time.saturating_sub(2)).unwrap();
        table.save(directory).unwrap();
        println!("saved {time}");
    }
}

#[test]
fn a_killed_save_leaves_the_state_before_or_after() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        saves_until_killed(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    for kill in 0..KILLS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--nocapture", "a_killed_save_leaves_the_state_before_or_after"]);
        command.env(DIRECTORY, directory.path()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut saved = |line: String| line.split_once("saved ")?.1.parse::<u64>().ok();
        let mut last = lines.by_ref().filter_map(&mut saved).nth(3 + kill as usize % 5).unwrap();
        std::thread::sleep(Duration::from_micros(kill * 7919 % 9000));
        child.kill().unwrap();
        child.wait().unwrap();
        last = lines.filter_map(&mut saved).last().unwrap_or(last);
        let table = Table::open(directory.path(), &pool()).unwrap();
        let now = table.now();
        assert!([last, last + 1].contains(&now), "{now} after {last}");
        let mut model = BTreeMap::new();
        for time in 0..=now {
            let (mut ids, is_deletion) = change(time);
            match is_deletion {
                true => assert!(ids.by_ref().all(|id| model.remove(&id) != Some(time))),
                false => model.extend(ids.map(|id| (id, time))),
            }
        }
        let mut found = table.scan().batches(10_000).unwrap();
        let found = found.next().unwrap().unwrap();
        let ids = found.column(0).as_primitive::<Int64Type>().values().iter().copied();
        let texts = found.column(1).as_string::<i32>().iter().flatten();
        let times = texts.map(|text| text.split_once(' ').unwrap().0.parse::<u64>().unwrap());
        assert!(ids.zip(times).eq(model), "at {now}");
    }
}
