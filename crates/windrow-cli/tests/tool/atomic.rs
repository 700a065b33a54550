//! The output appears complete or not at all, whatever exists at its path, even an input.

use crate::common::{
    Work, log_rows, ran, read_parquet, wait_until, while_running, write_log, write_parquet,
};

#[test]
fn an_output_may_take_the_place_of_its_input() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 150_000);
    work.run("sort in/a.parquet --by lsn -o out/expected.parquet").succeeds();
    let expected = work.read("out/expected.parquet");
    let tight = "--memory-limit 64MiB --row-group-size 1MiB";
    for limits in ["", tight] {
        write_log(&work.path("in/b.parquet"), 150_000);
        work.run(&format!("sort in/b.parquet --by lsn -o in/b.parquet {limits}")).succeeds();
        let same = work.read("in/b.parquet") == expected;
        assert!(same || !limits.is_empty(), "{limits}");
        assert_eq!(read_parquet(&work.path("in/b.parquet")).num_rows(), 150_000);
    }
    // The output may also replace one of several inputs, and through a link.
    work.put("in/a.csv", "id\n3\n");
    work.put("in/b.csv", "id\n1\n2\n");
    std::os::unix::fs::symlink("b.csv", work.path("in/link.csv")).expect("linked");
    work.run("sort in/a.csv in/b.csv --by id -o in/link.csv").succeeds();
    assert_eq!(work.read("in/b.csv"), b"id\n1\n2\n3\n");
    work.run("merge in/b.csv in/a.csv --by id -o in/a.csv").succeeds();
    assert_eq!(work.read("in/a.csv"), b"id\n1\n2\n3\n3\n");
    work.run("compact in/a.csv --key id -o in/a.csv").succeeds();
    assert_eq!(work.read("in/a.csv"), b"id\n1\n2\n3\n");
    let mut names = work.names("in");
    names.retain(|name| name.ends_with(".tmp"));
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn the_output_of_a_failed_job_never_appears() {
    let work = Work::new();
    // The order breaks in the last row, after all others are written.
    let batch = log_rows(0, 400_000, 400_000, 1000);
    let order = arrow_ord::sort::sort_to_indices(batch.column(1), None, None).expect("sorted");
    let sorted = arrow_select::take::take_record_batch(&batch, &order).expect("taken");
    let parts = [&sorted, &sorted.slice(0, 1)];
    let broken = arrow_select::concat::concat_batches(&sorted.schema(), parts).expect("one schema");
    write_parquet(&work.path("in/a.parquet"), &broken);
    for threads in [1, 2] {
        for name in ["o.parquet", "o.arrow", "o.csv", "o.ndjson"] {
            let merge = format!("merge in/a.parquet --by lsn -o out/{name} --threads {threads}");
            let mut child =
                work.command(&format!("{merge} --row-group-size 1MiB")).spawn().expect("started");
            let mut seen = 0;
            while_running(&mut child, || {
                assert!(!work.path("out").join(name).exists());
                seen += work.names("out").len();
                std::thread::sleep(std::time::Duration::from_millis(2));
            });
            assert!(seen > 0, "it failed before it wrote");
            ran(child).says(3, &["in/a.parquet", "row 400000"]);
            work.holds_only(&[]);
        }
    }
}

#[test]
fn two_runs_to_one_output_both_succeed() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 200_000);
    let sort = |by: &str| format!("sort in/a.parquet --by {by} -o out/o.parquet --threads 1");
    let alone = ["lsn", "lsn:desc"].map(|by| {
        work.run(&sort(by)).succeeds();
        work.read("out/o.parquet")
    });
    for round in 0..3 {
        let runs = ["lsn", "lsn:desc"].map(|by| {
            let child = work.command(&sort(by)).spawn().expect("started");
            std::thread::sleep(std::time::Duration::from_millis(round * 50));
            child
        });
        if round == 0 {
            wait_until("a temporary output", || work.names("out").len() > 1);
        }
        for run in runs {
            ran(run).succeeds();
        }
        work.holds_only(&["o.parquet"]);
        let bytes = work.read("out/o.parquet");
        assert!(alone.contains(&bytes), "round {round}: the output is neither of the two");
    }
}
