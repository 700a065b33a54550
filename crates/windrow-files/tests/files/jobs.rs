//! Tests of jobs in a program: concurrent, fed by readers, cancelled, and consumed as record
//! batches.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use windrow_files::{
    Cancel, CompactSpec, Error, ErrorKind, Inputs, Job, Limit, Limits, MergeSpec, Moment,
    PartitionSpec, Partitions, Phase, Progress, ReadOptions, SortSpec, Source, Target,
    WriteOptions, desc, expand,
};

/// Rows `0..rows`, shuffled.
fn rows(rows: i64) -> RecordBatch {
    let ids = (0..rows).map(|i| (i * 7919) % rows);
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.clone()));
    let name: ArrayRef = Arc::new(StringArray::from_iter_values(ids.map(|i| format!("name {i}"))));
    RecordBatch::try_from_iter([("id", id), ("name", name)]).unwrap()
}

fn source(batches: Vec<Result<RecordBatch, ArrowError>>) -> Source {
    let schema = rows(1).schema();
    Source::reader("rows", RecordBatchIterator::new(batches, schema))
}

fn open(source: Source) -> Inputs {
    Inputs::open(&[source], &ReadOptions::default()).unwrap()
}

fn of_threads(threads: usize) -> Limits {
    let mut limits = Limits::default();
    limits.threads = NonZeroUsize::new(threads);
    limits
}

fn ids(batches: impl RecordBatchReader) -> Vec<i64> {
    let mut ids = Vec::new();
    for batch in batches {
        ids.extend_from_slice(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
    }
    ids
}

#[test]
fn rows_of_a_reader_come_back_in_order() {
    let whole = rows(50_000);
    let parts = (0..5).map(|n| Ok(whole.slice(n * 10_000, 10_000))).collect();
    let job = Job::sort(open(source(parts)), &SortSpec::by(desc("id"))).unwrap();
    assert_eq!(job.schema().unwrap(), whole.schema());
    let mut batches = job.batches(&Limits::default()).unwrap();
    let first = batches.next().unwrap().unwrap();
    assert_eq!(first.num_rows(), 8192);
    assert_eq!(first.column(0).as_primitive::<Int64Type>().value(0), 49_999);
    let rest = batches.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!(first.num_rows() + rest, 50_000);
    let stats = batches.stats();
    assert_eq!((stats.rows_in, stats.rows_out), (50_000, 50_000));
}

#[test]
fn rows_are_the_same_whoever_decodes_them() {
    let whole = rows(100_000);
    for threads in [1, 2, 3, 16] {
        let limits = of_threads(threads);
        let sort =
            || Job::sort(open(source(vec![Ok(whole.clone())])), &SortSpec::by("id")).unwrap();
        assert_eq!(ids(sort().batches(&limits).unwrap()), (0..100_000).collect::<Vec<_>>());
        // Dropped while record batches are waiting.
        for taken in 0..3 {
            let mut batches = sort().batches(&limits).unwrap();
            batches
                .by_ref()
                .take(taken)
                .for_each(|batch| assert_eq!(batch.unwrap().num_rows(), 8192));
            drop(batches);
        }
        // Cancelled midway: earlier rows arrive, then the error, then nothing.
        let cancel = Cancel::new();
        let mut batches = sort().cancelled_by(&cancel).batches(&limits).unwrap();
        let first = batches.next().unwrap().unwrap();
        assert_eq!(first.column(0).as_primitive::<Int64Type>().value(8191), 8191);
        cancel.cancel();
        let rest: Vec<_> = batches.by_ref().collect();
        let (last, before) = rest.split_last().unwrap();
        assert!(before.iter().all(Result::is_ok) && before.len() <= 2 * threads);
        assert!(last.as_ref().unwrap_err().to_string().contains("interrupted"), "{last:?}");
        assert!(batches.next().is_none());
    }
}

#[test]
fn an_error_comes_behind_the_rows_before_it() {
    // Sorted, except for a row near the end.
    let ids_of_all = (0..50_000_i64).map(|id| if id == 45_000 { 7 } else { id });
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(ids_of_all));
    let name: ArrayRef = Arc::new(StringArray::from_iter_values((0..50_000).map(|_| "")));
    let whole = RecordBatch::try_from_iter([("id", id), ("name", name)]).unwrap();
    for threads in [1, 4] {
        let limits = of_threads(threads);
        let parts = (0..50).map(|n| Ok(whole.slice(n * 1000, 1000))).collect();
        let job = Job::merge(open(source(parts)), &MergeSpec::by("id")).unwrap();
        let mut seen = 0;
        let mut failed = false;
        // The error is found when the merge is opened, or when it reaches the row.
        if let Ok(batches) = job.batches(&limits) {
            for batch in batches {
                assert!(!failed, "there are no more rows behind an error");
                match batch {
                    Ok(batch) => {
                        let ids = batch.column(0).as_primitive::<Int64Type>();
                        assert!(
                            ids.values()
                                .iter()
                                .eq((seen..).take(ids.len()).collect::<Vec<_>>().iter())
                        );
                        seen += ids.len() as i64;
                    }
                    Err(_) => failed = true,
                }
            }
            assert!(failed && seen <= 45_000, "{seen}");
        }
    }
}

#[test]
fn an_output_can_be_the_input_of_the_next_job() {
    let first = Job::sort(open(source(vec![Ok(rows(10_000))])), &SortSpec::by(desc("id"))).unwrap();
    let sorted = first.batches(&Limits::default()).unwrap();
    let inputs = open(Source::reader("sorted", sorted));
    let latest = Job::compact(inputs, &CompactSpec::by_key("id").order_by("name")).unwrap();
    assert_eq!(ids(latest.batches(&Limits::default()).unwrap()), (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_reader_is_read_once_and_its_errors_arrive() {
    let once = source(vec![Ok(rows(10))]);
    drop(open(once.clone()));
    let again = Inputs::open(&[once], &ReadOptions::default());
    assert!(again.is_err_and(|error| error.kind() == ErrorKind::Data));

    let fails = vec![Ok(rows(10)), Err(ArrowError::ComputeError("the socket closed".into()))];
    let job = Job::sort(open(source(fails)), &SortSpec::by("id")).unwrap();
    let error = job.batches(&Limits::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("rows: ") && error.to_string().contains("socket closed"));

    let own = vec![Ok(rows(10)), Err(ArrowError::from(Error::interrupted()))];
    let job = Job::sort(open(source(own)), &SortSpec::by("id")).unwrap();
    let error = job.batches(&Limits::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}

#[test]
fn two_jobs_at_once_know_nothing_of_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let cancelled = Cancel::new();
    cancelled.cancel();
    let write = |name: &str, limit: u64, cancel: &Cancel| {
        let job = Job::sort(open(source(vec![Ok(rows(200_000))])), &SortSpec::by("id")).unwrap();
        let target = Target::of(directory.path().join(name));
        let limits = Limits::default().memory(Limit::Bytes(limit)).threads(2);
        job.cancelled_by(cancel).write(&target, &WriteOptions::default(), &limits)
    };
    let read = |name: &str| {
        let path = directory.path().join(name);
        let inputs = Inputs::open(&expand([path]).unwrap(), &ReadOptions::default()).unwrap();
        let job = Job::sort(inputs, &SortSpec::by("id")).unwrap();
        ids(job.batches(&Limits::default()).unwrap())
    };
    thread::scope(|scope| {
        let one = scope.spawn(|| write("a.parquet", 1 << 30, &Cancel::new()));
        let two = scope.spawn(|| write("b.parquet", 2 << 30, &Cancel::new()));
        let none = scope.spawn(|| write("c.parquet", 1 << 30, &cancelled));
        assert_eq!(one.join().unwrap().unwrap().rows_out, 200_000);
        assert_eq!(two.join().unwrap().unwrap().rows_out, 200_000);
        let error = none.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    });
    assert_eq!(read("a.parquet"), (0..200_000).collect::<Vec<_>>());
    let bytes = |name: &str| fs::read(directory.path().join(name)).unwrap();
    assert!(bytes("a.parquet") == bytes("b.parquet"));
    assert_eq!(names(directory.path()), ["a.parquet", "b.parquet"]);
}

/// Cancels the job at the start of writing.
struct Stop {
    cancel: Cancel,
    seen: AtomicU64,
}

impl Progress for Stop {
    fn advances(&self, moment: &Moment<'_>) {
        self.seen.fetch_add(1, Ordering::Relaxed);
        if moment.phase == Phase::Write {
            self.cancel.cancel();
        }
    }
}

#[test]
fn a_job_that_is_cancelled_while_it_writes_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    let stop = Arc::new(Stop { cancel: cancel.clone(), seen: AtomicU64::new(0) });
    for partitioned in [false, true] {
        let inputs = open(source(vec![Ok(rows(100_000))]));
        let job = match partitioned {
            false => Job::sort(inputs, &SortSpec::by("id")),
            true => {
                let partitions = Partitions::Hash(4.try_into().unwrap());
                Job::partition(inputs, &PartitionSpec::by("id", partitions))
            }
        };
        let job = job.unwrap().cancelled_by(&cancel).watched_by(Arc::clone(&stop) as _);
        let target = Target::of(directory.path().join("out.parquet"));
        let error = job.write(&target, &WriteOptions::default(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(stop.seen.load(Ordering::Relaxed) > 0);
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn errors_have_fields() {
    let job = || Job::sort(open(source(vec![Ok(rows(10))])), &SortSpec::by("id")).unwrap();
    let target = Target::of("/dev/null");
    let write = WriteOptions::default().format(windrow_files::Format::Parquet);
    let limits = Limits::default().memory(Limit::Bytes(1 << 20));
    let error = job().write(&target, &write, &limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MemoryFloor);
    assert_eq!(error.place().limit, Some(1 << 20));
    let floor = error.place().floor.unwrap();
    assert!(floor > 1 << 20);
    let limits = Limits::default().memory(Limit::Bytes(4 * floor));
    let explained = job().explain(&target, &write, &limits).unwrap();
    assert!(explained.floor() <= 4 * floor && explained.to_string().contains("memory limit"));

    let missing = Job::sort(open(source(vec![Ok(rows(10))])), &SortSpec::by("ID")).err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::Usage);
    assert_eq!(missing.place().column.as_deref(), Some("ID"));
    let none = Inputs::open(&expand(["/nonexistent.csv"]).unwrap(), &ReadOptions::default());
    let error = none.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.place().file.as_deref(), Some("/nonexistent.csv"));
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
