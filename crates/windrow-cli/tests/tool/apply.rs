//! Changes applied to a directory: it changes as a whole or not at all, whatever happens.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{Work, ran, wait_until, watched, write_parquet};

const ROWS: i64 = 60_000;
const APPLY: &str = "apply out/lake in/changes.parquet --key id --temp-dir temp -q";

fn rows(ids: impl Iterator<Item = i64> + Clone, round: i64) -> RecordBatch {
    let text = ids.clone().map(|id| {
        format!("{:x} in {round}", (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64))
    });
    let rounds = ids.clone().map(|_| round);
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ("round", Arc::new(Int64Array::from_iter_values(rounds))),
        ("text", Arc::new(StringArray::from_iter_values(text))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Returns a directory with a table of several files in `out/lake`, all of round 0.
fn table() -> Work {
    let work = Work::new();
    write_parquet(&work.path("in/table.parquet"), &rows(0..ROWS, 0));
    work.run("sort in/table.parquet --by id -o out/lake --max-file-size 128KiB --row-group-size 64KiB -q")
        .succeeds();
    assert!(work.names("out/lake").len() > 2);
    work
}

/// Writes changes of every hundredth key.
fn put_changes(work: &Work, round: i64) {
    write_parquet(&work.path("in/changes.parquet"), &rows((0..ROWS).step_by(100), round));
}

/// Reads the files that a directory has when it is listed. Returns the rounds of all keys; `None` if
/// a file is gone when it is opened.
fn rounds(lake: &Path) -> Option<BTreeMap<i64, i64>> {
    let entries = fs::read_dir(lake).ok()?;
    let paths: Vec<_> = entries.map(|entry| Some(entry.ok()?.path())).collect::<Option<_>>()?;
    let mut found = BTreeMap::new();
    for path in paths {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).ok()?);
        for batch in reader.expect("a footer").build().expect("a reader") {
            let batch = batch.expect("a batch");
            let numbers = |name: &str| batch[name].as_primitive::<Int64Type>().values().clone();
            for (id, round) in numbers("id").iter().zip(&numbers("round")) {
                assert_eq!(found.insert(*id, *round), None, "key {id} twice");
            }
        }
    }
    Some(found)
}

/// Returns the round of the changed keys, which must be the same for all.
#[track_caller]
fn round_of(found: &BTreeMap<i64, i64>) -> i64 {
    assert_eq!(found.len() as i64, ROWS, "every key once");
    let round = found[&0];
    for (id, other) in found {
        assert_eq!(*other, if id % 100 == 0 { round } else { 0 }, "key {id}");
    }
    round
}

#[test]
fn a_kill_leaves_the_old_or_the_new_content() {
    let work = table();
    let (mut old, mut killed, mut done) = (0, 0, 0);
    let kills = std::env::var("WINDROW_KILLS").map_or(40, |kills| kills.parse().expect("a number"));
    for round in 1..kills {
        put_changes(&work, round);
        let mut child = work.command(APPLY).spawn().expect("started");
        // Milliseconds, spread over the time of a run.
        std::thread::sleep(Duration::from_micros(1_000 + 7_919 * round as u64 % 160_000));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let found = round_of(&rounds(&work.path("out/lake")).expect("whole"));
        assert!(found == old || found == round, "{found} after {old} and {round}");
        killed += usize::from(found == old);
        done += usize::from(found == round);
        old = found;
        assert!(work.names("out").len() <= 2, "{:?}", work.names("out"));
        assert!(work.names("temp").is_empty());
    }
    println!("{killed} killed before, {done} after the exchange");
    assert!(killed > 0);
    put_changes(&work, kills);
    work.run(APPLY).succeeds();
    assert_eq!(round_of(&rounds(&work.path("out/lake")).expect("whole")), kills);
    work.holds_only(&["lake"]);
    // A run that changes nothing cleans up, too.
    fs::create_dir(work.path("out/.lake.windrow-abcdef.tmp")).expect("created");
    work.run(APPLY).succeeds();
    work.holds_only(&["lake"]);
}

#[test]
fn two_writers_lose_nothing() {
    let work = table();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let ids = (0..ROWS).filter(move |id| id % 100 == writer);
            let name = format!("in/{writer}.parquet");
            write_parquet(&work.path(&name), &rows(ids.clone(), 1 + writer));
            let line = format!("apply out/lake {name} --key id --temp-dir temp -q");
            work.command(&line).spawn().expect("started")
        })
        .collect();
    writers.into_iter().for_each(|child| ran(child).succeeds());
    let found = rounds(&work.path("out/lake")).expect("whole");
    assert_eq!(found.len() as i64, ROWS);
    for (id, round) in found {
        let writer = id % 100;
        assert_eq!(round, if writer < 4 { 1 + writer } else { 0 }, "key {id}");
    }
    work.holds_only(&["lake"]);
    let lake = File::open(work.path("out/lake")).expect("a directory");
    lake.lock().expect("locked");
    put_changes(&work, 9);
    work.run(&format!("{APPLY} --no-wait")).says(5, &["another job writes to it"]);
}

#[test]
fn readers_see_one_content_or_miss_a_file() {
    let work = table();
    let (lake, stop) = (work.path("out/lake"), AtomicBool::new(false));
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut whole, mut last) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                let Some(found) = rounds(&lake) else { continue };
                let round = round_of(&found);
                assert!(round >= last, "{round} after {last}");
                (whole, last) = (whole + 1, round);
            }
            whole
        });
        for round in 1..12 {
            put_changes(&work, round);
            work.run(APPLY).succeeds();
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("a reader")
    });
    assert!(seen > 0);
    assert_eq!(round_of(&rounds(&lake).expect("whole")), 11);
}

#[test]
fn a_full_disk_changes_nothing() {
    let work = table();
    put_changes(&work, 1);
    let before = work.names("out/lake");
    for blocks in [1, 20, 100] {
        let ran =
            work.run_limited(&format!("-f {blocks}"), &format!("{APPLY} --memory-limit unlimited"));
        ran.says(5, &["too large"]);
        assert_eq!(work.names("out/lake"), before);
        work.holds_only(&["lake"]);
    }
    assert_eq!(round_of(&rounds(&work.path("out/lake")).expect("whole")), 0);
}

#[test]
fn another_program_in_the_directory_is_noticed() {
    let work = table();
    put_changes(&work, 1);
    let lake = work.path("out/lake");
    let child = work.command(APPLY).spawn().expect("started");
    wait_until("writing", || work.names("out").len() > 1);
    fs::write(lake.join("late.txt"), "late").expect("written");
    let ended = ran(child);
    if ended.code == Some(0) {
        // The file came before the directory was looked at, or after the exchange was over.
        return;
    }
    ended.says(5, &["another program changed it"]);
    assert_eq!(fs::read(lake.join("late.txt")).expect("there"), b"late");
    fs::remove_file(lake.join("late.txt")).expect("removed");
    assert_eq!(round_of(&rounds(&lake).expect("whole")), 0);
    work.holds_only(&["lake"]);
}

#[test]
fn other_files_stay_and_places_are_checked() {
    let work = table();
    put_changes(&work, 1);
    let lake = work.path("out/lake");
    fs::create_dir(lake.join("_notes")).expect("created");
    for other in ["_notes/a.txt", "_SUCCESS", ".part.crc", "README.md"] {
        work.put(&format!("out/lake/{other}"), "a");
    }
    // A file below the directory, and a link to a file elsewhere, are files of the table, too.
    let names = work.names("out/lake");
    let [first, second] = [0, 1]
        .map(|at| names.iter().filter(|name| name.starts_with("part")).nth(at).expect("files"));
    fs::create_dir(lake.join("below")).expect("created");
    fs::rename(lake.join(first), lake.join("below/first.parquet")).expect("moved");
    fs::rename(lake.join(second), work.path("in/second.parquet")).expect("moved");
    std::os::unix::fs::symlink("../../in/second.parquet", lake.join(second)).expect("linked");
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    mode(&lake, 0o2750);
    mode(&lake.join("below/first.parquet"), 0o600);
    std::os::unix::fs::symlink("lake", work.path("out/link")).expect("linked");
    work.run("apply out/link in/changes.parquet --key id -q").succeeds();
    for other in ["_notes/a.txt", "_SUCCESS", ".part.crc", "README.md"] {
        assert_eq!(work.read(&format!("out/lake/{other}")), b"a", "{other}");
        fs::remove_file(lake.join(other)).expect("removed");
    }
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o7777;
    assert_eq!(mode(&lake), 0o2750);
    assert_eq!(mode(&lake.join("below/first.v1.parquet")), 0o600);
    assert_eq!(work.names("out/lake/below"), ["first.v1.parquet"]);
    assert!(work.path("in/second.parquet").exists() && !lake.join(second).exists());
    fs::rename(lake.join("below/first.v1.parquet"), lake.join(first)).expect("moved");
    fs::remove_dir(lake.join("below")).expect("removed");
    assert!(fs::symlink_metadata(work.path("out/link")).expect("there").is_symlink());
    fs::remove_dir_all(work.path("out/lake/_notes")).expect("removed");
    assert_eq!(round_of(&rounds(&work.path("out/lake")).expect("whole")), 1);
    put_changes(&work, 2);
    work.shell("cd out/lake && {} apply . ../../in/changes.parquet --key id")
        .says(2, &["working directory"]);
    let name = &work.names("out/lake")[0];
    work.run(&format!("apply out/lake out/lake/{name} --key id")).says(2, &["a file of the table"]);
    work.run(&format!("{APPLY} -o out/o.parquet")).says(2, &["'-o'"]);
    work.run("apply in/table.parquet in/changes.parquet --key id").says(2, &["a directory"]);
    let plan = work.run(&format!("{APPLY} --explain"));
    plan.succeeds();
    let plan = String::from_utf8(plan.out).expect("UTF-8");
    assert!(plan.contains("of which") && plan.contains("floor"), "{plan}");
    assert_eq!(round_of(&rounds(&work.path("out/lake")).expect("whole")), 1);
}

#[test]
fn the_limit_is_kept() {
    let work = table();
    put_changes(&work, 1);
    let line = format!("{APPLY} --memory-limit");
    work.run(&format!("{line} 8MiB")).says(4, &["floor", "--memory-limit"]);
    assert_eq!(round_of(&rounds(&work.path("out/lake")).expect("whole")), 0);
    let (seen, ran) = watched(&work, &format!("{line} 96MiB"));
    ran.succeeds();
    assert!(seen <= 96 << 20, "{seen}");
    assert_eq!(round_of(&rounds(&work.path("out/lake")).expect("whole")), 1);
}
