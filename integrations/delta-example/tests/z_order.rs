//! Z-orders the same table twice: in delta-rs's own session, and in a session with Windrow's rule
//! and less memory than the table. Checks that Windrow's operator ran, and that both results have
//! the same rows in the same order.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use deltalake_core::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltalake_core::arrow::compute::concat_batches;
use deltalake_core::arrow::util::pretty::pretty_format_batches;
use deltalake_core::datafusion::common::Result as DataFusionResult;
use deltalake_core::datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use deltalake_core::delta_datafusion::DeltaSessionContext;
use deltalake_core::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use deltalake_core::{DeltaTable, ensure_table_uri};
use windrow_delta_example::{session, z_order};

/// Rows and files of the table. Each pair of `x` and `y` occurs once, so the Z-order is unique.
const ROWS: i64 = 40_000;
const FILES: i64 = 8;
const WIDTH: i64 = 200;
/// Memory of the sort; the rows with their keys exceed it.
const POOL: usize = 6 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_with_the_rule_z_orders_as_delta_rs_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let [stock, ours] = ["stock", "ours"].map(|name| directory.path().join(name));
    let before = lines(&rows(&written(&stock).await));
    let table = written(&ours).await;

    let alone = DeltaSessionContext::new().state();
    let (stock, _) = z_order(opened(&stock).await, columns(), alone).await.expect("Z-order");
    let pool = Arc::new(Registering::default());
    let session = session(Arc::clone(&pool) as Arc<dyn MemoryPool>).expect("a session");
    let (ours, metrics) = z_order(table, columns(), session).await.expect("Z-order");

    assert_eq!(metrics.num_files_removed, FILES as u64);
    let names = pool.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(names.contains("WindrowSortExec[0]"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("ExternalSorter")), "{names:?}");

    let (stock, ours) = (rows(&stock), rows(&ours));
    assert!(stock == ours, "other rows, or in another order");
    let mut sorted = lines(&ours);
    assert_ne!(sorted, before, "nothing was put in order");
    let mut before = before;
    sorted.sort_unstable();
    before.sort_unstable();
    assert_eq!(sorted, before);
}

#[tokio::test]
async fn a_column_that_is_not_there_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = written(directory.path()).await;
    let session = session(Arc::new(FairSpillPool::new(POOL))).expect("a session");
    let error = z_order(table, vec!["z".to_owned()], session).await.expect_err("no such column");
    assert!(error.to_string().contains('z'), "{error}");
}

fn columns() -> Vec<String> {
    ["x", "y"].map(str::to_owned).to_vec()
}

async fn opened(directory: &Path) -> DeltaTable {
    let url = ensure_table_uri(directory.to_str().expect("text")).expect("a URL");
    DeltaTable::try_from_url(url).await.expect("a table")
}

/// Writes a table with shuffled rows, one commit per file.
async fn written(directory: &Path) -> DeltaTable {
    std::fs::create_dir_all(directory).expect("a directory");
    let mut table = opened(directory).await;
    for file in 0..FILES {
        // 7919 is prime, so all places occur exactly once.
        let of_file = (0..ROWS).filter(|row| row % FILES == file);
        let places: Vec<i64> = of_file.map(|row| row * 7919 % ROWS).collect();
        let text = places.iter().map(|place| format!("what was at {place}: {}", "-".repeat(90)));
        let batch = RecordBatch::try_from_iter([
            ("x", Arc::new(places.iter().map(|at| at % WIDTH).collect::<Int64Array>()) as ArrayRef),
            ("y", Arc::new(places.iter().map(|at| at / WIDTH).collect::<Int64Array>()) as ArrayRef),
            ("text", Arc::new(StringArray::from_iter_values(text)) as ArrayRef),
        ]);
        table = table.write([batch.expect("columns of one length")]).await.expect("a commit");
    }
    table
}

/// Reads the rows of the files of `table` in order; file names are numbered.
fn rows(table: &DeltaTable) -> RecordBatch {
    let mut files: Vec<String> = table.get_file_uris().expect("files").collect();
    files.sort_unstable();
    let mut batches = Vec::new();
    for file in files {
        let path = file.strip_prefix("file://").unwrap_or(&file);
        let file = std::fs::File::open(path).expect("a file");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|of| of.build());
        batches.extend(reader.expect("Parquet").map(|batch| batch.expect("rows")));
    }
    concat_batches(&batches[0].schema(), &batches).expect("of one schema")
}

fn lines(rows: &RecordBatch) -> Vec<String> {
    let text = pretty_format_batches(std::slice::from_ref(rows)).expect("rows").to_string();
    text.lines().map(str::to_owned).collect()
}

/// A limited pool that records the names of its consumers.
#[derive(Debug)]
struct Registering {
    pool: FairSpillPool,
    names: Mutex<BTreeSet<String>>,
}

impl Default for Registering {
    fn default() -> Self {
        Self { pool: FairSpillPool::new(POOL), names: Mutex::default() }
    }
}

impl fmt::Display for Registering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.pool, f)
    }
}

impl MemoryPool for Registering {
    fn name(&self) -> &str {
        "registering"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(consumer.name().to_owned());
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionResult<()> {
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}
