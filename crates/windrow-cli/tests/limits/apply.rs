//! Changes of a table keep the limit, down to the floor, whatever the sizes of the table and of the
//! changes.

use crate::common::{Work, peak_of, watched, write_log};

const KEY: &str = "--key id --op-column op --order-by lsn";

/// Returns a directory with a table of some 47,000 rows in `out/lake`, and a log in `in`. The table
/// is sorted by `by`.
fn table(by: &str) -> Work {
    let work = Work::released();
    write_log(&work.path("in/old.parquet"), 400_000);
    write_log(&work.path("in/log.parquet"), 300_000);
    let compact = format!("compact in/old.parquet {KEY} --keep-bookkeeping -o in/table.parquet -q");
    work.run(&compact).succeeds();
    let sort = format!("sort in/table.parquet --by {by} -o out/lake --max-file-size 128KiB -q");
    work.run(&sort).succeeds();
    assert!(work.names("out/lake").len() > 2, "{by}");
    work
}

#[test]
fn changes_keep_the_limit() {
    for by in ["id", "payload,id"] {
        for threads in [1, 2] {
            let work = table(by);
            let line = format!("apply out/lake in/log.parquet {KEY} --threads {threads}");
            let told = work.run(&format!("{line} --memory-limit 1MiB"));
            told.says(4, &["floor"]);
            let floor =
                told.err.split("of this job, ").nth(1).and_then(|rest| rest.split(':').next());
            let floor = floor.expect("a floor").replace(' ', "");
            let mebibytes: u64 = floor.trim_end_matches("MiB").parse().expect("MiB");
            for limit in [mebibytes, mebibytes + 40] {
                let dry = format!("{line} --temp-dir temp --dry-run -q --memory-limit {limit}MiB");
                let (seen, ran) = watched(&work, &dry);
                // A sort of a file, or of the changes, may need more.
                assert!(
                    ran.code == Some(0) || ran.code == Some(4) && limit == mebibytes,
                    "{ran:?}"
                );
                assert!(seen <= limit << 20, "{by}, {threads} threads, {limit} MiB: {seen}");
            }
            let limit = mebibytes + 40;
            let (seen, stats) = peak_of(&work, &format!("{line} --memory-limit {limit}MiB"));
            println!("{by}, {threads} threads, {limit} MiB: {seen} seen, {stats}");
            assert!(seen <= limit << 20, "{by}, {threads} threads, {limit} MiB: {seen}");
            assert!(stats["updated"].as_u64() > Some(0));
            work.run("check out/lake --by id --unique -q").succeeds();
        }
    }
}
