//! Temporary files in trouble: shared by two processes, left by killed ones, removed by others.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use crate::common::{Work, ran, wait_until, write_log};

const ROWS: u64 = 700_000;

fn work() -> Work {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), ROWS);
    work
}

/// Returns a sort with spilling, from `in/a.parquet` into `out/{name}`.
fn sort(name: &str) -> String {
    format!(
        "sort in/a.parquet --by payload,lsn -o out/{name} --temp-dir temp --memory-limit 64MiB \
         --row-group-size 2MiB -q"
    )
}

#[test]
fn two_processes_share_a_directory() {
    let work = work();
    work.run(&sort("expected.parquet")).succeeds();
    let expected = work.read("out/expected.parquet");
    for round in 0..2 {
        let names = [format!("a{round}.parquet"), format!("b{round}.parquet")];
        let started = names.each_ref().map(|name| work.command(&sort(name)).spawn());
        for (child, name) in started.into_iter().zip(&names) {
            ran(child.expect("started")).succeeds();
            assert!(work.read(&format!("out/{name}")) == expected);
        }
    }
    assert!(work.names("temp").is_empty());
}

#[test]
fn past_the_page_cache_the_bytes_are_the_same() {
    let work = work();
    work.run(&sort("expected.parquet")).succeeds();
    let expected = work.read("out/expected.parquet");
    for codec in ["none", "lz4"] {
        let name = format!("{codec}.parquet");
        let direct = format!("{} --spill-direct --spill-compression {codec}", sort(&name));
        work.run(&direct).succeeds();
        assert!(work.read(&format!("out/{name}")) == expected);
    }
    assert!(work.names("temp").is_empty());
}

#[test]
fn twenty_kills_leave_nothing_that_the_next_run_minds() {
    let work = work();
    work.run(&sort("expected.parquet")).succeeds();
    let expected = work.read("out/expected.parquet");
    fs::remove_file(work.path("out/expected.parquet")).expect("removed");
    let mut state = 7u64;
    let mut killed = 0;
    for _ in 0..20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = work.command(&sort("o.parquet")).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(state >> 33 & 1023));
        child.kill().expect("killed");
        let status = child.wait().expect("ended");
        assert!(work.names("temp").is_empty(), "{:?}", work.names("temp"));
        let names = work.names("out");
        assert!(names.len() <= 1, "{names:?}");
        // The process may be killed after the output is complete.
        if work.path("out/o.parquet").exists() {
            assert!(work.read("out/o.parquet") == expected);
            fs::remove_file(work.path("out/o.parquet")).expect("a whole output");
        } else {
            assert!(status.signal().is_some(), "{status}");
            killed += 1;
        }
    }
    assert!(killed > 0, "every run was over before it was killed");
    work.run(&sort("o.parquet")).succeeds();
    work.holds_only(&["o.parquet"]);
    assert!(work.read("out/o.parquet") == expected);
}

#[test]
fn a_directory_that_is_taken_away_is_an_error_or_does_not_matter() {
    let work = work();
    work.run(&sort("expected.parquet")).succeeds();
    for delay in [0, 50, 200, 500] {
        let child = work.command(&sort("o.parquet")).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(delay));
        fs::remove_dir_all(work.path("temp")).expect("removed");
        let ran = ran(child);
        fs::create_dir(work.path("temp")).expect("made again");
        if ran.code == Some(0) {
            assert!(work.read("out/o.parquet") == work.read("out/expected.parquet"));
            fs::remove_file(work.path("out/o.parquet")).expect("a whole output");
        } else {
            // Removed before the job began, or during the job.
            ran.says(if ran.code == Some(2) { 2 } else { 5 }, &["temp"]);
            work.holds_only(&["expected.parquet"]);
        }
    }
}

#[test]
fn what_is_spilled_has_no_name_and_is_counted() {
    let work = work();
    let line = sort("o.parquet") + " --stats out/stats.json";
    let mut child = work.command(&line).spawn().expect("started");
    wait_until("over", || {
        assert!(work.names("temp").is_empty());
        child.try_wait().expect("a state").is_some()
    });
    ran(child).succeeds();
    let stats: serde_json::Value =
        serde_json::from_slice(&work.read("out/stats.json")).expect("JSON");
    assert!(stats["spilled_bytes"].as_u64() > Some(1 << 20), "{stats}");
    let phases = &stats["phase_spilled_bytes"];
    let sum: Option<u64> = ["read", "settle", "write"].iter().map(|p| phases[p].as_u64()).sum();
    assert_eq!(sum, stats["spilled_bytes"].as_u64());
}
