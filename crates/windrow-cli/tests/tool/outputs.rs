//! Destinations of outputs, and refused ones: an unnamed input, or a closed standard output.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use crate::common::{Work, ran};

#[test]
fn an_output_that_a_pattern_or_a_directory_finds() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    work.run("sort in/*.csv --by id -o in/sorted.csv").succeeds();
    for line in [
        "sort in/*.csv --by id -o in/sorted.csv",
        "sort in/a.csv in/s*.csv --by id -o in/../in/sorted.csv",
        "sort in --by id -o in/sorted.csv",
        "merge **/s*.csv --by id -o in/sorted.csv",
        "sort in/*.csv --by id -o in/sorted.csv --explain",
    ] {
        work.run(line).says(2, &["in/sorted.csv", "stands for it, too", "name the inputs"]);
    }
    assert_eq!(work.text("in/sorted.csv"), "id\n1\n2\n");
    // An explicitly named input may be the output.
    work.run("sort in/a.csv in/sorted.csv --by id -o in/sorted.csv").succeeds();
    assert_eq!(work.text("in/sorted.csv"), "id\n1\n1\n2\n2\n");
    std::os::unix::fs::symlink("../in/sorted.csv", work.path("out/link.csv")).expect("linked");
    work.run("sort in/*.csv --by id -o out/link.csv").says(2, &["out/link.csv"]);
    work.run("sort in/*.csv --by id -o out/o.csv").succeeds();
}

#[test]
fn partitions_within_an_input() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    for out in ["in/parts", "in/none/../parts"] {
        fs::create_dir_all(work.path("in/none")).expect("created");
        let line = format!("partition in --by id --into 2 --output-format csv -o {out}");
        work.run(&line).says(2, &["parts", "is in in, which is an input"]);
    }
    work.run("partition in/*.csv --by id --into 2 --output-format csv -o in/parts").succeeds();
    let again = "partition in/**/*.csv --by id --into 2 --output-format csv -o in/parts";
    work.run(again).says(2, &["in/parts", "stands for it, too"]);
}

#[test]
fn a_standard_output_that_is_closed() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let sort = "{} sort in/a.csv --by id -o - --output-format csv";
    work.shell(&format!("{sort} >&-")).says(5, &["standard output", "closed"]);
    work.shell(&format!("{sort} -o /dev/stdout >&-").replace(" -o -", "")).says(5, &["closed"]);
    work.shell(&format!("{sort} > /dev/null")).succeeds();
    work.shell("{} sort in/a.csv --by id -o /dev/null --output-format csv >&-").succeeds();
}

#[test]
fn names_that_are_not_utf8() {
    let work = Work::new();
    let odd = |name: &[u8]| work.path("in").join(OsStr::from_bytes(name));
    work.put("in/a.csv", "id\n2\n1\n");
    fs::write(odd(b"caf\xe9.txt"), "").expect("written");
    fs::create_dir(odd(b"d\xe9")).expect("created");
    fs::write(odd(b"d\xe9/a.csv"), "id\n3\n").expect("written");
    for (inputs, rows) in [("in/*.csv", 2), ("in/a*", 2), ("in/**/*.csv", 3), ("in/*/a.csv", 1)] {
        work.run(&format!("sort {inputs} --by id -o out/o.csv")).succeeds();
        assert_eq!(work.text("out/o.csv").lines().count(), 1 + rows, "{inputs}");
        work.run(&format!("inspect {inputs}")).succeeds();
    }
    for verb in ["check", "sort"] {
        let mut command = work.command(verb);
        command.arg(odd(b"d\xe9/a.csv")).args(["--by", "id"]);
        if verb == "sort" {
            command.arg("-o").arg(odd(b"out\xe9.csv"));
        }
        ran(command.spawn().expect("started")).succeeds();
    }
    assert_eq!(fs::read(odd(b"out\xe9.csv")).expect("written"), b"id\n3\n");
}

#[test]
fn in_place_keeps_owner_and_mode() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let path = work.path("in/a.csv");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("changed");
    // Only root can create a file of another owner.
    let other = chown(&path, Some(1000), Some(1001)).is_ok();
    let before = fs::metadata(&path).expect("there");
    work.run("sort in/a.csv --by id -o in/a.csv").succeeds();
    let after = fs::metadata(&path).expect("there");
    assert_eq!(work.text("in/a.csv"), "id\n1\n2\n");
    assert_ne!(before.ino(), after.ino());
    let about = |file: &fs::Metadata| (file.uid(), file.gid(), file.mode());
    assert_eq!(about(&before), about(&after));
    assert!(!other || after.uid() == 1000);
    fs::create_dir(work.path("out/p")).expect("created");
    if chown(work.path("out/p"), Some(1000), Some(1001)).is_ok() {
        work.run("partition in/a.csv --by id --into 2 -o out/p").succeeds();
        assert_eq!(fs::metadata(work.path("out/p")).expect("there").uid(), 1000);
    }
}

#[test]
fn limits_in_every_unit() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    for limit in
        ["1t", "1T", "1TiB", "1tb", "2g", "2GiB", "600m", "600MB", "700000k", "700000000", "50%"]
    {
        let line = format!("sort in/a.csv --by id -o out/o.csv --memory-limit {limit}");
        work.run(&line).succeeds();
    }
    for limit in ["1x", "-1g", "1e9", "0"] {
        let line = format!("sort in/a.csv --by id -o out/o.csv --memory-limit={limit}");
        work.run(&line).says(2, &["--memory-limit"]);
    }
}
