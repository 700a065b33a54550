//! A working directory, functions to run the binary, and rows for its inputs.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod cases;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// The messages, the output and the exit code of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Ran {
    /// Fails unless the run ended with `code` and its message contains each of `parts`.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    #[track_caller]
    pub(crate) fn succeeds(&self) {
        self.says(0, &[]);
    }
}

/// A directory with inputs in `in`, outputs in `out` and temporary files in `temp`.
pub(crate) struct Work {
    dir: TempDir,
    binary: String,
}

impl Work {
    /// Returns a directory for the binary built along with the tests, with assertions.
    pub(crate) fn new() -> Self {
        Self::with(env!("CARGO_BIN_EXE_windrow").to_owned())
    }

    /// Returns a directory for tests of memory, which use the released binary `WINDROW` if the
    /// variable is set.
    pub(crate) fn released() -> Self {
        std::env::var("WINDROW").map_or_else(|_| Self::new(), Self::with)
    }

    fn with(binary: String) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["in", "out", "temp"] {
            fs::create_dir(dir.path().join(name)).expect("created");
        }
        Self { dir, binary }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("read")
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("UTF-8")
    }

    /// Returns the names in a directory, sorted.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    /// Returns the command of the binary in this directory; `line` has the arguments, separated by
    /// blanks.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(line.split_whitespace()).current_dir(self.dir.path());
        command.env("TMPDIR", self.path("temp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Like `command`, with the signals of a foreground shell, whatever this process ignores:
    /// ignored signals are inherited, and tests may run under `nohup` or in the background.
    pub(crate) fn command_that_signals_reach(&self, line: &str) -> Command {
        let plain = self.command(line);
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,TERM,HUP").arg(plain.get_program());
        command.args(plain.get_args()).current_dir(self.dir.path());
        command.env("TMPDIR", self.path("temp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        ran(self.command(line).spawn().expect("started"))
    }

    /// Runs with `limit` as an option of the shell's `ulimit`.
    pub(crate) fn run_limited(&self, limit: &str, line: &str) -> Ran {
        let script = format!("ulimit {limit} && exec {} {line}", self.binary);
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(self.dir.path());
        command.env("TMPDIR", self.path("temp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ran(command.spawn().expect("started"))
    }

    /// Runs `line` in a shell, with the binary for {}.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        let line = line.replace("{}", &self.binary);
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(self.dir.path());
        command.env("TMPDIR", self.path("temp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ran(command.spawn().expect("started"))
    }

    /// Fails unless `out` holds exactly `expected`, and `temp` nothing.
    #[track_caller]
    pub(crate) fn holds_only(&self, expected: &[&str]) {
        assert_eq!(self.names("out"), expected);
        assert!(self.names("temp").is_empty(), "{:?}", self.names("temp"));
    }
}

/// Maximum duration of a run: machines are slow, and shared.
const DEADLINE: Duration = Duration::from_secs(300);

/// Calls `look` repeatedly while a run goes on. Kills a run that does not end, and fails.
#[track_caller]
pub(crate) fn while_running(child: &mut Child, mut look: impl FnMut()) {
    let start = Instant::now();
    while child.try_wait().expect("a state").is_none() {
        if start.elapsed() > DEADLINE {
            let _ = child.kill();
            panic!("a run did not end within {DEADLINE:?}");
        }
        look();
    }
}

/// Waits for the end of a run. Kills a run that does not end, and fails.
#[track_caller]
pub(crate) fn ran(mut child: Child) -> Ran {
    fn all_of(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)).transpose().expect("read");
            bytes
        })
    }
    // Ends the standard input, as `wait_with_output` does.
    drop(child.stdin.take());
    let (out, err) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    let mut pause = Duration::from_micros(100);
    while_running(&mut child, || {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    });
    let status = child.wait().expect("ended");
    let (out, err) = (out.join().expect("read"), err.join().expect("read"));
    let err = String::from_utf8(err).expect("messages are UTF-8");
    Ran { code: status.code(), out, err }
}

/// Runs `line`; returns the peak of its resident memory as seen from outside, in bytes, and its
/// figures.
#[track_caller]
pub(crate) fn peak_of(work: &Work, line: &str) -> (u64, serde_json::Value) {
    let line = format!("{line} --temp-dir temp --stats out/stats.json -q");
    let (seen, ran) = watched(work, &line);
    ran.succeeds();
    let stats = serde_json::from_slice(&work.read("out/stats.json")).expect("JSON");
    fs::remove_file(work.path("out/stats.json")).expect("removed");
    (seen, stats)
}

/// Runs `line`; returns the peak of its resident memory as seen from outside, and the outcome.
#[track_caller]
pub(crate) fn watched(work: &Work, line: &str) -> (u64, Ran) {
    let mut child = work.command(line).spawn().expect("started");
    let status = format!("/proc/{}/status", child.id());
    let mut seen = 0;
    while_running(&mut child, || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
        seen = seen.max(kilobytes.unwrap_or(0) * 1024);
        std::thread::sleep(Duration::from_millis(1));
    });
    (seen, ran(child))
}

/// Waits until `done`; fails after a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns rows `start..start + rows` of a change log of `keys` keys, with the columns
/// `id, lsn, op, payload, amount, ts`. The `lsn` is a permutation of `0..total`; one change in
/// sixteen is a delete.
pub(crate) fn log_rows(start: u64, rows: u64, total: u64, keys: u64) -> RecordBatch {
    let at = |row: u64| {
        let lsn = row * 0x9E37_79B1 % total;
        let hash = (lsn + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (lsn, hash ^ hash >> 29)
    };
    assert!(!total.is_multiple_of(0x9E37_79B1), "a prime: all others are coprime to it");
    let all = || (start..start + rows).map(at);
    let id = Int64Array::from_iter_values(all().map(|(_, hash)| (hash % keys) as i64));
    let lsn = Int64Array::from_iter_values(all().map(|(lsn, _)| lsn as i64));
    let op = StringArray::from_iter_values(all().map(|(lsn, hash)| match hash >> 40 & 15 {
        0 => "D",
        _ if lsn < keys => "I",
        _ => "U",
    }));
    let payload = StringArray::from_iter(all().map(|(_, hash)| {
        let words = (0..3).map(|word| format!("word{}", hash >> (word * 9) & 511));
        (hash % 50 > 0).then(|| words.collect::<Vec<_>>().join(" "))
    }));
    let amount = all().map(|(_, hash)| (hash % 33 > 0).then_some((hash % 100_000) as f64 / 100.0));
    let ts = all().map(|(lsn, _)| 1_767_225_600_000_000 + lsn as i64 * 977);
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(id)),
        ("lsn", Arc::new(lsn)),
        ("op", Arc::new(op)),
        ("payload", Arc::new(payload)),
        ("amount", Arc::new(Float64Array::from_iter(amount))),
        ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(ts))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Writes [`log_rows`] `0..rows` as Parquet, with a key for every eight rows.
pub(crate) fn write_log(path: &Path, rows: u64) {
    const BATCH: u64 = 50_000;
    let mut writer = None;
    for start in (0..rows).step_by(BATCH as usize) {
        let batch = log_rows(start, BATCH.min(rows - start), rows, rows / 8 + 1);
        let writer = writer.get_or_insert_with(|| {
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100_000));
            let file = File::create(path).expect("created");
            ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).expect("a writer")
        });
        writer.write(&batch).expect("written");
    }
    writer.expect("some rows").close().expect("closed");
}

/// Writes `batch` as Parquet.
pub(crate) fn write_parquet(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).expect("created");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
}

/// Writes `batch` as an Arrow file.
pub(crate) fn write_arrow(work: &Work, name: &str, batch: &RecordBatch) {
    let file = File::create(work.path(name)).expect("created");
    let mut writer = FileWriter::try_new(file, batch.schema_ref()).expect("a writer");
    writer.write(batch).expect("written");
    writer.finish().expect("finished");
}

/// Returns the rows of a Parquet file.
pub(crate) fn read_parquet(path: &Path) -> RecordBatch {
    let file = File::open(path).expect("there");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a footer");
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> =
        reader.build().expect("a reader").map(|batch| batch.expect("a batch")).collect();
    arrow_select::concat::concat_batches(&schema, &batches).expect("one schema")
}
