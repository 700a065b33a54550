//! Tests of the example programs: each works as described, and is short.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of lines of an example.
const LINES: usize = 40;

/// Runs an example, and returns its output. `cargo test` builds examples beside the tests, except
/// for a run of these tests alone.
fn run(name: &str, args: &[&Path]) -> String {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", env!("CARGO_PKG_NAME"), "--examples"]);
        assert!(cargo.status().unwrap().success());
    }
    let done = Command::new(&program).args(args).output();
    let done = done.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn events() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let events = directory.path().join("events.csv");
    let rows = (0..1000).map(|i| format!("{},{}\n", i * 7 % 100, i));
    fs::write(&events, "id,n\n".to_owned() + &rows.collect::<String>()).unwrap();
    (directory, events)
}

#[test]
fn sort() {
    let (directory, events) = events();
    let out = directory.path().join("out.csv");
    let printed = run("sort", &[&events, "id,n:desc".as_ref(), &out, "256MiB".as_ref()]);
    assert!(printed.contains("memory limit") && printed.contains("1000 rows in"), "{printed}");
    assert!(fs::read_to_string(&out).unwrap().starts_with("id,n\n0,900\n0,800\n"));
}

#[test]
fn compact() {
    let directory = tempfile::tempdir().unwrap();
    let (log, out) = (directory.path().join("log.ndjson"), directory.path().join("out.csv"));
    let event = |op: &str, id: u32, v: &str, lsn: u32| {
        let row = format!(r#"{{"id":{id},"v":"{v}"}}"#);
        let (before, after) = if op == "d" { (&*row, "null") } else { ("null", &*row) };
        format!(r#"{{"op":"{op}","before":{before},"after":{after},"source":{{"lsn":{lsn}}}}}"#)
            + "\n"
    };
    let events = [
        event("c", 1, "a", 1),
        event("c", 2, "b", 2),
        event("u", 1, "c", 3),
        event("d", 2, "b", 4),
    ];
    fs::write(&log, events.concat()).unwrap();
    let printed = run("compact", &[&log, "id".as_ref(), "source.lsn".as_ref(), &out]);
    assert_eq!(printed, "4 changes, 1 live rows\n");
    assert_eq!(fs::read_to_string(&out).unwrap(), "id,v\n1,c\n");
}

#[test]
fn merge() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("a.csv"), "id,v\n1,a\n3,a\n").unwrap();
    fs::write(path("b.csv"), "id,v\n2,b\n3,b\n").unwrap();
    let args = ["id".as_ref(), &*path("out.csv"), &*path("a.csv"), &*path("b.csv")];
    assert_eq!(run("merge", &args), "3 rows\n");
    assert_eq!(fs::read_to_string(path("out.csv")).unwrap(), "id,v\n1,a\n2,b\n3,b\n");
    fs::write(path("b.csv"), "id,v\n3,b\n2,b\n").unwrap();
    assert!(run("merge", &args).starts_with("not sorted: Some(\""));
}

#[test]
fn partition() {
    let (directory, events) = events();
    let parts = directory.path().join("parts");
    let printed = run("partition", &[&events, "id".as_ref(), "8".as_ref(), &parts]);
    assert_eq!(printed, "1000 rows in 8 files\n");
    assert_eq!(fs::read_dir(&parts).unwrap().count(), 8);
}

#[test]
fn cancel() {
    let (directory, events) = events();
    let out = directory.path().join("out.parquet");
    let args = |rows| [&*events, "id".as_ref(), &*out, Path::new(rows)];
    assert_eq!(run("cancel", &args("10")), "cancelled\n");
    assert!(!out.exists());
    assert_eq!(run("cancel", &args("1000000")), "1000 rows\n");
    assert!(out.exists());
}

#[test]
fn channel() {
    assert_eq!(run("channel", &[]), "100000 rows\n");
}

#[test]
fn they_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES, "{}: {lines} lines", path.display());
    }
}
