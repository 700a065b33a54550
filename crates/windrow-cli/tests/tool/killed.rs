//! A killed process leaves its inputs unchanged and at most one temporary output, which the next
//! run removes. A process asked to stop leaves nothing.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{self, Ran, Work, ran, wait_until, write_log};

const ROWS: u64 = 500_000;
const SORT: &str = "sort in/a.parquet --by payload,lsn -o out/o.parquet --temp-dir temp \
                    --memory-limit 64MiB --row-group-size 2MiB --spill-compression lz4 -q";

fn work() -> Work {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), ROWS);
    work
}

fn temporaries(work: &Work) -> Vec<String> {
    let mut names = work.names("out");
    names.retain(|name| name != "o.parquet");
    names
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.expect("kill").success());
}

/// When to send the signal: after some milliseconds, or once a temporary output has bytes.
#[derive(Clone, Copy, Debug)]
enum When {
    After(u64),
    Writing,
}

const TIMES: [When; 6] = [
    When::After(5),
    When::After(40),
    When::After(150),
    When::After(400),
    When::After(800),
    When::Writing,
];

/// Waits for the moment. `before` holds the temporaries of earlier runs.
fn wait(work: &Work, child: &mut Child, when: When, before: &[String]) {
    match when {
        When::After(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
        When::Writing => wait_until("writing", || {
            let written = |name: &String| {
                std::fs::metadata(work.path("out").join(name)).is_ok_and(|file| file.len() > 0)
            };
            let ended = child.try_wait().expect("a state").is_some();
            assert!(!ended, "over before it was seen to write");
            temporaries(work).iter().any(|name| !before.contains(name) && written(name))
        }),
    }
}

#[test]
fn a_kill_leaves_one_temporary_at_most_and_the_next_run_removes_it() {
    let work = work();
    let input = work.read("in/a.parquet");
    let (mut caught, mut ended) = (0, 0);
    let mut times: Vec<When> = TIMES.into_iter().rev().collect();
    while let Some(when) = times.pop() {
        let before = temporaries(&work);
        let mut child = work.command(SORT).spawn().expect("started");
        wait(&work, &mut child, when, &before);
        child.kill().expect("killed");
        let status = child.wait().expect("ended");
        if status.signal().is_none() {
            std::fs::remove_file(work.path("out/o.parquet")).expect("a whole output");
            ended += 1;
            // It ended between the look and the signal: once more.
            if matches!(when, When::Writing) && ended < 20 {
                times.push(when);
            }
            continue;
        }
        let left = temporaries(&work);
        assert!(left.len() <= 1, "{when:?}: {left:?}");
        for name in &left {
            assert!(name.starts_with(".o.parquet.windrow-") && name.ends_with(".tmp"), "{name}");
        }
        caught += left.len();
        assert!(!work.path("out/o.parquet").exists(), "{when:?}");
        assert!(work.names("temp").is_empty(), "{when:?}");
        assert!(work.read("in/a.parquet") == input, "{when:?}");
    }
    assert!(caught > 0, "no run was killed while it wrote");
    assert_eq!(temporaries(&work).len(), 1, "the last of them");
    work.run(SORT).succeeds();
    work.holds_only(&["o.parquet"]);
    let (sorted, rows) = (work.path("out/o.parquet"), ROWS as usize);
    assert_eq!(common::read_parquet(&sorted).num_rows(), rows);
    work.run("check out/o.parquet --by payload,lsn").succeeds();
}

/// Asks a sort to stop; returns `None` if the sort ended before.
fn stopped(work: &Work, name: &str, when: When) -> Option<Ran> {
    let before = temporaries(work);
    let mut child = work.command_that_signals_reach(SORT).spawn().expect("started");
    // A process that has just started has no handlers yet, and nothing to clean up.
    wait_until("handlers", || handles_signals(child.id()));
    wait(work, &mut child, when, &before);
    signal(&child, name);
    let ended = ran(child);
    work.holds_only(&["o.parquet"]);
    (ended.code != Some(0)).then_some(ended)
}

#[test]
fn a_request_to_stop_leaves_nothing() {
    /// A busy machine wakes the test up too late: the next attempt is earlier.
    const ATTEMPTS: u64 = 8;
    let work = work();
    work.put("out/o.parquet", "old");
    for (name, when) in ["INT", "TERM", "HUP"].iter().cycle().zip(TIMES) {
        let mut attempts = (0..ATTEMPTS).map(|attempt| match when {
            When::After(milliseconds) => When::After(milliseconds >> attempt),
            When::Writing => When::Writing,
        });
        let ended = attempts.find_map(|when| {
            let ended = stopped(&work, name, when);
            if ended.is_none() {
                work.put("out/o.parquet", "old");
            }
            ended
        });
        let ended = ended.expect("a run that was not over before it was asked to stop");
        ended.says(130, &["interrupted"]);
        assert_eq!(work.read("out/o.parquet"), b"old", "{when:?}");
    }
}

const TERM: u32 = 15;

/// Returns true if the process catches SIGTERM.
fn handles_signals(pid: u32) -> bool {
    signals(pid, "SigCgt:", TERM)
}

/// Returns true if a line of the process status has this signal in its mask.
fn signals(pid: u32, line: &str, number: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|own| own.strip_prefix(line));
    let mask = mask.map(|mask| u64::from_str_radix(mask.trim(), 16).expect("hex"));
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

#[test]
fn a_job_that_waits_for_input_can_be_stopped() {
    let work = Work::new();
    for format in ["csv", "ndjson", "arrow-stream", "parquet"] {
        let sort = format!("sort - --by id --input-format {format} -o out/o.csv --temp-dir temp");
        let mut command = work.command_that_signals_reach(&sort);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
        wait_until("handlers", || handles_signals(child.id()));
        std::thread::sleep(Duration::from_millis(50));
        signal(&child, "INT");
        // Held open, like a terminal.
        let _input = child.stdin.take();
        ran(child).says(130, &["interrupted"]);
        work.holds_only(&[]);
    }
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let sort = "sort - --by id --input-format csv -o out/o.csv";
    let script = format!("trap '' HUP; exec {} {sort}", env!("CARGO_BIN_EXE_windrow"));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(work.path("."));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    wait_until("handlers", || handles_signals(child.id()));
    signal(&child, "HUP");
    std::thread::sleep(Duration::from_millis(100));
    let mut input = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut input, b"id\n2\n1\n").expect("still there");
    drop(input);
    ran(child).succeeds();
    assert_eq!(work.read("out/o.csv"), b"id\n1\n2\n");
}
