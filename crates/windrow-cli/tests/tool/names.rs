//! Odd names of columns and files.

use crate::common::{self, Work};

#[test]
fn columns_of_our_own_are_not_offered() {
    let work = Work::new();
    work.put("in/a.csv", "id,op,lsn\n1,I,1\n");
    let compact = "compact in/a.csv --op-column op -o out/o.csv";
    for (line, known) in [
        (format!("{compact} --key nope --order-by lsn"), "id, op, lsn"),
        (format!("{compact} --key id --order-by nope"), "id, op, lsn"),
        (format!("{compact} --key id --order-by lsn --select nope"), "id, op, lsn"),
        (format!("{compact} --key id --order-by __windrow_deleted"), "id, op, lsn"),
        (format!("{compact} --key id --order-by lsn --select __windrow_deleted"), "id, op, lsn"),
        ("partition in/a.csv --by id --into 2 --sort nope -o out/d".to_owned(), "id, op, lsn"),
    ] {
        let ran = work.run(&line);
        ran.says(2, &["no column named", known]);
        assert!(!ran.err.contains(&format!("{known},")), "{}", ran.err);
    }
    work.holds_only(&[]);
}

#[test]
fn names_in_quotes_and_marks_in_front() {
    let work = Work::new();
    work.put("in/a.csv", "\"a,b\",\"c \"\"d\"\"\",e\n2,x,1\n1,y,2\n");
    let sort = ["sort", "in/a.csv", "--by", "\"a,b\":desc", "-o", "out/o.csv", "--select"];
    let select = |names: &str| {
        let mut command = work.command("");
        command.args(sort).arg(names);
        common::ran(command.spawn().expect("started"))
    };
    select("e,\"a,b\"").succeeds();
    assert_eq!(work.read("out/o.csv"), b"e,\"a,b\"\n1,2\n2,1\n");
    select("\"a,b").says(2, &["--select", "quote"]);
    select("e,,e").says(2, &["--select", "empty"]);

    let marked = "\u{FEFF}{\"id\":2}\n{\"id\":1}\n\u{FEFF}{\"id\":0}\n";
    work.put("in/a.ndjson", marked);
    work.run("sort in/a.ndjson --by id -o out/o.csv").succeeds();
    assert_eq!(work.read("out/o.csv"), b"id\n0\n1\n2\n");
    let stdin = "cat in/a.ndjson | {} sort - --input-format ndjson --by id -o out/o.csv -q";
    work.shell(stdin).succeeds();
    assert_eq!(work.read("out/o.csv"), b"id\n0\n1\n2\n");
    work.put("in/b.csv", "\u{FEFF}id,v\n2,a\n1,b\n");
    work.run("sort in/b.csv --by id -o out/o.csv").succeeds();
    assert_eq!(work.read("out/o.csv"), b"id,v\n1,b\n2,a\n");
}

/// Properties of a Parquet writer are set by name, and few encodings suit all types.
#[test]
fn columns_of_one_name_and_several_types() {
    let work = Work::new();
    for rows in [["true,1,x,2.5,2", "false,2,y,0.5,1"], ["1,true,2.5,x,2", "2,false,0.5,y,1"]] {
        work.put("in/a.csv", format!("v,v,v,v,k\n{}\n{}\n", rows[0], rows[1]));
        for more in ["", " --encoding plain", " --max-file-size 1MiB --output-format parquet"] {
            let out = if more.contains("max") { "out/d" } else { "out/o.parquet" };
            work.run(&format!("sort in/a.csv --by k -o {out}{more}")).succeeds();
            work.run(&format!("head {out} -o out/o.csv")).succeeds();
            let wanted = format!("v,v,v,v,k\n{}\n{}\n", rows[1], rows[0]);
            assert_eq!(work.read("out/o.csv"), wanted.as_bytes());
            if out == "out/d" {
                std::fs::remove_dir_all(work.path(out)).expect("removed");
            }
        }
    }
}

#[test]
fn outputs_through_links_leave_the_links() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    std::os::unix::fs::symlink("far.csv", work.path("out/link.csv")).expect("linked");
    for _ in 0..2 {
        // The link's target is missing at first, and exists in the second run.
        work.run("sort in/a.csv --by id -o out/link.csv").succeeds();
        assert!(work.path("out/link.csv").is_symlink());
        assert_eq!(work.read("out/far.csv"), b"id\n1\n2\n");
        work.holds_only(&["far.csv", "link.csv"]);
    }
    std::os::unix::fs::symlink("round.csv", work.path("out/round.csv")).expect("linked");
    work.run("sort in/a.csv --by id -o out/round.csv").says(2, &["round.csv", "link"]);
}

#[test]
fn one_page_is_the_manual() {
    let work = Work::new();
    let ran = work.run("completions man");
    ran.succeeds();
    let page = String::from_utf8(ran.out).expect("text");
    for verb in ["SORT", "COMPACT", "MERGE", "PARTITION", "CHECK", "INSPECT"] {
        assert!(page.contains(&format!(".SH \"WINDROW {verb}\"")), "{verb}");
    }
    assert!(page.contains("memory\\-limit") && page.contains("Exit codes"), "{page}");
    // The page refers to no other page.
    assert!(!page.contains("windrow\\-sort(1)"), "{page}");
}

#[test]
fn two_columns_of_one_name() {
    let work = Work::new();
    work.put("in/a.csv", "a,a,b\n2,3,x\n1,4,w\n");
    work.run("sort in/a.csv --by b -o out/o.csv").succeeds();
    assert_eq!(work.read("out/o.csv"), b"a,a,b\n1,4,w\n2,3,x\n");
    work.run("sort in/a.csv --by a -o out/o.csv").says(2, &["more than one", "\"a\""]);
    let select = "sort in/a.csv --by b --select a -o out/o.csv";
    work.run(select).says(2, &["--select", "more than one", "\"a\""]);
    work.run("sort in/a.csv --by b -o out/o.ndjson").says(2, &["NDJSON", "\"a\"", "--select"]);
    work.holds_only(&["o.csv"]);
}

#[test]
fn names_without_end_and_columns_without_number() {
    let work = Work::new();
    let name = "n".repeat(70_000);
    work.put("in/a.csv", format!("{name},b\n2,x\n1,w\n"));
    work.run("sort in/a.csv --by b -o out/o.parquet").succeeds();
    let ran = work.run("inspect out/o.parquet");
    ran.succeeds();
    assert!(String::from_utf8(ran.out).expect("text").contains(&name));

    let names: Vec<String> = (0..2000).map(|i| format!("c{i}")).collect();
    let row = |r: usize| (0..2000).map(|i| ((i + r) % 7).to_string()).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..300).map(row).collect();
    work.put("in/a.csv", format!("{}\n{}\n", names.join(","), rows.join("\n")));
    let ran = work.run("sort in/a.csv --by nope -o out/o.csv");
    ran.says(2, &["no column named \"nope\"", "c0, c1", "and 1950 more"]);
    // Text has no costs per column.
    let tight = "--memory-limit 96MiB -q";
    for output in ["o.csv", "o.ndjson"] {
        work.run(&format!("sort in/a.csv --by c5 -o out/{output} {tight}")).succeeds();
    }
}
