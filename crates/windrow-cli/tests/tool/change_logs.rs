//! Change logs in their producers' formats, and the expected rows: tables of
//! [cases](crate::common::cases) in `change_logs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::common::{Work, cases};

/// Checks all cases of a table of `compact`; the table must have at least `count` cases.
#[track_caller]
fn check(table: &str, count: usize) {
    cases::check("compact", table, count);
}

#[test]
fn raw_formats_give_the_rows_of_the_table() {
    check(include_str!("change_logs/raw.txt"), 60);
}

#[test]
fn operations_mean_what_their_producer_or_the_caller_says() {
    check(include_str!("change_logs/words.txt"), 40);
}

const RECIPES: &str = include_str!("change_logs/recipes.txt");

#[test]
fn recipes_of_the_page_give_the_rows_of_the_table() {
    check(RECIPES, 15);
    let page = include_str!("../../../../docs/change-logs.md");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("windrow compact ")).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let tried: Vec<&str> = RECIPES.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    for command in commands {
        let options = command.split_once(' ').and_then(|(_, rest)| rest.rsplit_once(" -o "));
        let (options, _) = options.expect("an input, options and an output");
        assert!(tried.contains(&options), "no test runs {options}");
    }
}

#[test]
fn updates_without_all_columns_are_refused_or_kept() {
    check(include_str!("change_logs/unchanged.txt"), 30);
}

#[test]
fn updates_without_all_columns_are_filled_in() {
    check(include_str!("change_logs/known.txt"), 40);
}

/// A log in which half of the updates lack a column, spilled and merged under a small limit.
#[test]
fn what_is_known_last_survives_spilling() {
    let work = Work::new();
    let (keys, mut log) = (20_000_usize, String::new());
    let mut rows: Vec<Option<(String, String)>> = vec![None; keys];
    let mut state = 1_u64;
    for lsn in 0..250_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (id, kind) = ((state >> 33) as usize % keys, state >> 60);
        let (name, bio) = (format!("n{lsn}"), format!("a biography of some length, number {lsn}"));
        let after = |bio: &str| format!("{{\"id\":{id},\"name\":\"{name}\",\"bio\":\"{bio}\"}}");
        let (op, before, after) = match (&mut rows[id], kind) {
            (row @ Some(_), 0) => {
                *row = None;
                ("d", format!("{{\"id\":{id}}}"), "null".to_owned())
            }
            (Some((old, known)), 1..8) => {
                let unavailable = after("__debezium_unavailable_value");
                old.clone_from(&name);
                assert!(!known.is_empty());
                ("u", "null".to_owned(), unavailable)
            }
            (row, _) => {
                let written = after(&bio);
                let op = if row.is_some() { "u" } else { "c" };
                *row = Some((name.clone(), bio));
                (op, "null".to_owned(), written)
            }
        };
        log += &format!(
            "{{\"before\":{before},\"after\":{after},\"source\":{{\"lsn\":{lsn}}},\"op\":\"{op}\"}}\n"
        );
    }
    // The order is the log's, whatever the order of the input.
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_by_key(|line| line.len() % 7);
    work.put("in/a.ndjson", &(lines.join("\n") + "\n"));
    let mut expected = "id,name,bio\n".to_owned();
    for (id, row) in rows.iter().enumerate() {
        if let Some((name, bio)) = row {
            expected += &format!("{id},{name},\"{bio}\"\n");
        }
    }
    for (out, limits) in
        [("a", "--threads 1"), ("b", "--threads 2 --memory-limit 80MiB --temp-dir temp")]
    {
        let line = "compact in/a.ndjson --op-preset debezium --key id --order-by source.lsn";
        work.run(&format!("{line} {limits} -o out/{out}.csv")).succeeds();
        assert!(work.text(&format!("out/{out}.csv")) == expected, "{limits}");
    }
}

#[test]
fn text_is_ordered_by_what_it_stands_for() {
    check(include_str!("change_logs/order.txt"), 40);
}

#[test]
fn a_raw_log_in_a_pipe_gives_what_it_gives_as_a_file() {
    let work = Work::new();
    let mut log = String::new();
    for n in 0..30_000 {
        let (id, action) = (n % 1000, if n % 7 == 0 { 'D' } else { 'I' });
        let columns = if action == 'D' { "identity" } else { "columns" };
        log += &format!(
            "{{\"action\":\"{action}\",\"lsn\":\"0/{n:X}\",\"schema\":\"s\",\"table\":\"t\",\"{columns}\":\
             [{{\"name\":\"id\",\"value\":{id}}},{{\"name\":\"v\",\"value\":\"v{n}\"}}]}}\n"
        );
    }
    assert!(log.len() > 2 << 20, "longer than the sample");
    work.put("in/a.ndjson", &log);
    let compact = "--op-preset auto --key id --order-by lsn --memory-limit 128MiB";
    work.run(&format!("compact in/a.ndjson {compact} -o out/a.csv")).succeeds();
    let piped = "{} compact - --input-format ndjson";
    work.shell(&format!("{piped} {compact} -o out/b.csv < in/a.ndjson")).succeeds();
    work.shell(&format!("cat in/a.ndjson | {piped} {compact} -o out/c.csv")).succeeds();
    let rows = work.text("out/a.csv");
    assert_eq!(rows, work.text("out/b.csv"));
    assert_eq!(rows, work.text("out/c.csv"));
    let live: Vec<String> =
        (29_000..30_000).filter(|n| n % 7 != 0).map(|n| format!("{},v{n}", n % 1000)).collect();
    assert_eq!(rows, format!("id,v\n{}\n", live.join("\n")));
}

#[test]
fn a_fault_behind_the_sample_names_its_line() {
    let work = Work::new();
    let line = "{\"database\":\"d\",\"table\":\"t\",\"type\":\"insert\",\"data\":{\"id\":1}}\n";
    let mut log = line.repeat(40_000);
    assert!(log.len() > 2 << 20, "longer than the sample");
    log += "{\"database\":\"d\",\"table\":\"u\",\"type\":\"insert\",\"data\":{\"id\":1}}\n";
    work.put("in/a.ndjson", &log);
    let ran = work.run("compact in/a.ndjson --op-preset maxwell --key id -o out/o.csv");
    ran.says(3, &["in/a.ndjson", "line 40001", "d.u", "d.t", "--table d.u"]);
    work.holds_only(&[]);
}

#[test]
fn what_auto_found_is_not_said_to_those_who_want_quiet() {
    let work = Work::new();
    work.put("in/a.ndjson", "{\"id\":1,\"__op\":\"c\"}\n");
    let ran = work.run("compact in/a.ndjson --op-preset auto --key id -o out/o.csv -q");
    ran.succeeds();
    assert_eq!(ran.err, "");
}

#[test]
fn keys_that_change_keep_their_place_in_a_long_log() {
    let work = Work::new();
    // A log of many record batches, to which deletes of old keys are added.
    let (mut state, mut table, mut log) = (7_u64, BTreeMap::new(), String::new());
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for step in 0..30_000 {
        let (id, other) = (random(300), random(300));
        let of = |name: &str, id: u64, v: u64| {
            format!(
                "\"{name}\":[{{\"name\":\"id\",\"value\":{id}}},{{\"name\":\"v\",\"value\":{v}}}]"
            )
        };
        let change = match table.remove(&id) {
            None => {
                table.insert(id, step);
                format!("\"action\":\"I\",{}", of("columns", id, step))
            }
            Some(old) if random(3) == 0 => format!("\"action\":\"D\",{}", of("identity", id, old)),
            Some(old) => {
                let to = if table.contains_key(&other) { id } else { other };
                table.insert(to, step);
                format!("\"action\":\"U\",{},{}", of("columns", to, step), of("identity", id, old))
            }
        };
        writeln!(log, "{{{change},\"schema\":\"s\",\"table\":\"t\"}}").expect("text");
    }
    work.put("in/a.ndjson", log);
    let expected: String = table.iter().map(|(id, v)| format!("{id},{v}\n")).collect();
    for threads in [1, 2] {
        let compact =
            "compact in/a.ndjson --op-preset wal2json --key id --select id,v -o out/o.csv";
        work.run(&format!("{compact} --threads {threads}")).succeeds();
        assert_eq!(work.text("out/o.csv"), format!("id,v\n{expected}"));
    }
}
