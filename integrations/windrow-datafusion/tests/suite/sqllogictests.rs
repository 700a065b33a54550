//! DataFusion's published sqllogictest files, with every possible operator replaced: the results
//! equal those of the stock operators, with unlimited memory and with a pool of 64 MiB.
//!
//! The files come from the crate `datafusion-sqllogictest`. Files that need further data are
//! skipped, and so is EXPLAIN, since plans differ by design. The queries and answers of TPC-H are
//! included; this test generates the tables.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use datafusion::datasource::MemTable;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::prelude::SessionContext;
use datafusion_sqllogictest::{
    CurrentlyExecutingSqlTracker, DFColumnType, DataFusion, TestContext, df_value_validator,
    setup_scratch_dir, value_normalizer,
};
use sqllogictest::{Record, Runner, parse_file, strict_column_validator};
use windrow_datafusion::{WindrowConfig, WindrowRule};

/// Bytes of the pool.
const POOL: usize = 64 << 20;
/// Files tested in parallel.
const THREADS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Setup {
    windrow: bool,
    limit: Option<usize>,
    merge: bool,
}

/// A file whose plans claim an order that their joins do not provide; its expected answers are out
/// of order.
const OUT_OF_ORDER: &str = "pwmj.slt";

#[test]
fn results_are_those_of_the_stock_operators() {
    let published = published();
    scratch();
    let files = files(&published);
    assert!(files.len() > 300, "{} files", files.len());
    for limit in [None, Some(POOL)] {
        let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let new = new_failures(&published, file, limit);
                        wrong.lock().expect("no panics").extend(new);
                    }
                });
            }
        });
        let wrong = wrong.into_inner().expect("no panics");
        assert!(
            wrong.is_empty(),
            "limit {limit:?}: {} differ\n{}",
            wrong.len(),
            wrong.join("\n\n")
        );
    }
}

#[test]
fn tpch_has_its_answers() {
    let published = published();
    scratch();
    let data = Path::new("test_files/tpch/data");
    std::fs::create_dir_all(data).expect("a directory");
    crate::tpch::write(data, 0.1).expect("tables");
    let runtime = runtime();
    runtime.block_on(async {
        for (limit, hash) in [(None, true), (None, false), (Some(POOL), false)] {
            let file = Path::new("tpch/tpch.slt");
            let context = TestContext::try_new_for_test_file(file).await.expect("a session");
            prepare(&context, Setup { windrow: true, limit, merge: true });
            let tables = published.join("tpch/create_tables.slt.part");
            assert_eq!(failures(&context, &tables).await, []);
            in_memory(context.session_ctx()).await;
            let set = format!("SET datafusion.optimizer.prefer_hash_join = {hash}");
            context.session_ctx().sql(&set).await.expect("a setting");
            for query in 1..=22 {
                let answer = published.join(format!("tpch/answers/q{query}.slt.part"));
                let wrong = failures(&context, &answer).await;
                assert!(wrong.is_empty(), "query {query}, limit {limit:?}: {wrong:?}");
            }
        }
    });
}

/// Loads the tables of TPC-H into memory.
async fn in_memory(context: &SessionContext) {
    for table in crate::tpch::TABLES {
        let frame = context.table(table).await.expect("a table");
        let schema = frame.schema().inner().clone();
        let rows = frame.collect_partitioned().await.expect("rows");
        context.deregister_table(table).expect("a table");
        let rows = MemTable::try_new(schema, rows).expect("a table");
        context.register_table(table, Arc::new(rows)).expect("a table");
    }
}

/// Changes to a scratch directory, the base of relative paths in the files.
fn scratch() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sqllogictests");
    std::fs::create_dir_all(&scratch).expect("a directory");
    std::env::set_current_dir(scratch).expect("a directory");
}

/// Returns the failures in `file` that occur only with the rule.
fn new_failures(published: &Path, file: &Path, limit: Option<usize>) -> Vec<String> {
    let merge = file != Path::new(OUT_OF_ORDER);
    let ours = failures_of(published, file, Setup { windrow: true, limit, merge });
    if ours.is_empty() {
        return Vec::new();
    }
    let stock = failures_of(published, file, Setup { windrow: false, limit, merge });
    let known = |place: usize| stock.iter().any(|(known, _)| *known == place);
    let new = ours.into_iter().filter(|(place, _)| !known(*place));
    new.map(|(_, error)| format!("{}: {error}", file.display())).collect()
}

/// Returns the failures in `file` in a fresh session.
fn failures_of(published: &Path, file: &Path, setup: Setup) -> Vec<(usize, String)> {
    runtime().block_on(async {
        let Some(context) = TestContext::try_new_for_test_file(file).await else {
            return Vec::new();
        };
        prepare(&context, setup);
        setup_scratch_dir(file).expect("a directory");
        failures(&context, &published.join(file)).await
    })
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads")
}

/// Returns the directory of the published files.
fn published() -> PathBuf {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let published = packages.iter().find(|package| package["name"] == "datafusion-sqllogictest");
    let manifest = published.expect("a dependency")["manifest_path"].as_str().expect("a path");
    Path::new(manifest).parent().expect("a directory").join("test_files")
}

/// Returns the self-contained files below `directory`, as relative paths.
fn files(directory: &Path) -> Vec<PathBuf> {
    let all = datafusion_sqllogictest::read_dir_recursive(directory).expect("files");
    let alone = all.into_iter().filter(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        path.extension().is_some_and(|of| of == "slt")
            && !["../", "include ", "test_files/data", "core/tests/data"]
                .iter()
                .any(|of| text.contains(of))
    });
    let mut files: Vec<_> =
        alone.map(|path| path.strip_prefix(directory).expect("below").to_owned()).collect();
    files.sort();
    files
}

/// Returns the records with wrong results in the file at `path`, by number.
async fn failures(context: &TestContext, path: &Path) -> Vec<(usize, String)> {
    let mut runner = Runner::new(|| async {
        let bar = indicatif::ProgressBar::hidden();
        let engine = DataFusion::new(context.session_ctx().clone(), path.to_owned(), bar);
        Ok(engine.with_currently_executing_sql_tracker(CurrentlyExecutingSqlTracker::new()))
    });
    runner.add_label("Datafusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(value_normalizer);
    runner.with_validator(df_value_validator);
    let records = parse_file::<DFColumnType>(path).expect("a file that was tested");
    let mut failures = Vec::new();
    for (place, record) in records.into_iter().enumerate() {
        match record {
            Record::Halt { .. } => break,
            record if explains(&record) => {}
            record => {
                if let Err(error) = runner.run_async(record).await {
                    failures.push((place, error.to_string()));
                }
            }
        }
    }
    runner.shutdown_async().await;
    failures
}

/// Installs the rule and the pool in a session with existing tables.
fn prepare(context: &TestContext, setup: Setup) {
    let state = context.session_ctx().state_ref();
    let mut state = state.write();
    let builder = SessionStateBuilder::new_from_existing(state.clone());
    let builder = match setup.limit {
        Some(_) => builder.with_runtime_env(crate::common::runtime(setup.limit)),
        None => builder,
    };
    // Replaces sorts with a limit of any size. The config is not registered as an extension, as
    // some files list all settings.
    let mut config = WindrowConfig::default();
    (config.topk_bytes, config.merge, config.exchange) = (0, setup.merge, true);
    let builder = match setup.windrow {
        true => builder.with_physical_optimizer_rule(Arc::new(WindrowRule::new(config))),
        false => builder,
    };
    let mut new = builder.build();
    functions_of(&state, &mut new);
    *state = new;
}

/// Restores the owner of names that several functions share.
fn functions_of(old: &SessionState, new: &mut SessionState) {
    for _ in 0..100 {
        let same = |name: &String, function| {
            new.scalar_functions().get(name).is_some_and(|new| Arc::ptr_eq(new, function))
        };
        let other = old.scalar_functions().iter().find(|(name, function)| !same(name, function));
        let Some((_, function)) = other else { return };
        new.register_udf(Arc::clone(function)).expect("a function");
    }
    panic!("functions take each other's names");
}

/// Returns true for statements that show a plan.
fn explains(record: &Record<DFColumnType>) -> bool {
    let (Record::Statement { sql, .. } | Record::Query { sql, .. }) = record else { return false };
    sql.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain"))
}
