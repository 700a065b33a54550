//! Change logs in files and in a bucket, and jobs for either location.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windrow_cloud_tests::{ACCESS_KEY, Proxy, SECRET_KEY, Server};
use windrow_files::{
    Columns, CompactSpec, DedupeSpec, HeadSpec, Inputs, Job, Limit, Limits, MergeSpec, OrderBy,
    PartitionSpec, Partitions, ReadOptions, Result, SortSpec, Stats, Stores, Target, WriteOptions,
    expand_with,
};

/// The bucket of all tests.
pub(crate) const BUCKET: &str = "logs";

/// A server with an empty bucket behind a proxy, and a separate directory of local files.
pub(crate) struct World {
    buckets: TempDir,
    files: TempDir,
    pub(crate) proxy: Proxy,
}

impl World {
    pub(crate) fn new() -> Self {
        let (buckets, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(buckets.path().join(BUCKET)).unwrap();
        let server = Server::start(buckets.path(), 0);
        Self { buckets, files, proxy: Proxy::start(server.address()) }
    }

    /// Returns read options with access to the bucket.
    pub(crate) fn read(&self) -> ReadOptions {
        let endpoint = format!("http://{}", self.proxy.address());
        let stores = Stores::with_options([
            ("endpoint", endpoint.as_str()),
            ("allow_http", "true"),
            ("region", "us-east-1"),
            ("access_key_id", ACCESS_KEY),
            ("secret_access_key", SECRET_KEY),
            ("max_retries", "3"),
            ("retry_timeout", "20s"),
        ]);
        ReadOptions::default().stores(&stores.unwrap())
    }

    /// Returns the path of an object's bytes.
    pub(crate) fn object(&self, key: &str) -> PathBuf {
        self.buckets.path().join(BUCKET).join(key)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Uploads each file below `name` as an object.
    pub(crate) fn put_all(&self, name: &str) {
        copy(&self.file(name), &self.object(name));
    }

    /// Returns leftover parts of incomplete uploads.
    pub(crate) fn parts(&self) -> Vec<String> {
        let names = fs::read_dir(self.buckets.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains(".part-")).collect()
    }
}

pub(crate) fn address(key: &str) -> String {
    format!("s3://{BUCKET}/{key}")
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Returns all files below `directory` by name, with their bytes, except the `_SUCCESS` marker.
pub(crate) fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.file_name().is_some_and(|name| name != "_SUCCESS") {
                let name = path.strip_prefix(directory).unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Generates a change log as CSV: `rows` changes of a third as many keys.
pub(crate) fn csv(rows: u64, seed: u64) -> String {
    let mut text = String::from("id,lsn,op,day,amount,note\n");
    let mut random = Random(seed | 1);
    for lsn in 0..rows {
        let op = ["c", "u", "u", "d"][random.below(4) as usize];
        let id = random.below(rows / 3 + 1);
        let (day, amount) = (1 + random.below(4), random.below(1_000_000));
        let note = "n".repeat(random.below(30) as usize);
        writeln!(
            text,
            "{id},{},{op},2026-01-0{day},{}.{:02},{note}{lsn}",
            lsn * 7 + seed,
            amount / 100,
            amount % 100
        )
        .unwrap();
    }
    text
}

/// A deterministic pseudo-random generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// The kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Sort,
    Compact,
    Merge,
    Dedupe,
    Head,
    Hash,
    Hive,
}

impl Verb {
    pub(crate) const ALL: [Self; 7] =
        [Self::Sort, Self::Compact, Self::Merge, Self::Dedupe, Self::Head, Self::Hash, Self::Hive];

    pub(crate) fn makes_a_directory(self) -> bool {
        matches!(self, Self::Hash | Self::Hive)
    }

    fn job(self, inputs: Inputs) -> Result<Job> {
        let by = |columns: &str| columns.parse::<Columns>().unwrap();
        match self {
            Self::Sort => Job::sort(inputs, &SortSpec::by(by("id,lsn:desc"))),
            Self::Merge => Job::merge(inputs, &MergeSpec::by(by("id,lsn"))),
            Self::Dedupe => {
                let mut spec = DedupeSpec::whole_rows();
                spec.key = Some(by("id").0);
                Job::dedupe(inputs, &spec)
            }
            Self::Head => Job::head(inputs, &HeadSpec::rows(1000)),
            Self::Compact => {
                let mut spec = CompactSpec::default();
                spec.key = by("id").0;
                spec = spec.latest_by("lsn".parse::<OrderBy>().unwrap());
                spec.op_column = Some("op".to_owned());
                Job::compact(inputs, &spec)
            }
            Self::Hash => {
                let into = Partitions::Hash(std::num::NonZeroU32::new(5).unwrap());
                Job::partition(inputs, &PartitionSpec::by(by("id"), into))
            }
            Self::Hive => Job::partition(inputs, &PartitionSpec::by(by("day"), Partitions::Hive)),
        }
    }
}

/// Small row groups and pages, for many of each.
pub(crate) fn write_options() -> WriteOptions {
    WriteOptions::default().row_group_bytes(256 << 10).page_bytes(16 << 10)
}

pub(crate) fn limits() -> Limits {
    Limits::default().memory(Limit::Unlimited).threads(2)
}

/// Runs a job.
pub(crate) fn run(
    verb: Verb,
    inputs: &[String],
    output: &str,
    read: &ReadOptions,
) -> Result<Stats> {
    let inputs = Inputs::open(&expand_with(inputs, read)?, read)?;
    verb.job(inputs)?.write(&Target::of(output), &write_options(), &limits())
}

/// Writes files of a change log to `directory`, each sorted by `id,lsn`, in the format of
/// `extension`.
pub(crate) fn logs(world: &World, directory: &str, extension: &str, rows: u64) {
    fs::create_dir_all(world.file(directory)).unwrap();
    for (number, seed) in [11, 23, 47].into_iter().enumerate() {
        let text = world.file("text.csv");
        fs::write(&text, csv(rows, seed)).unwrap();
        let read = ReadOptions::default();
        let inputs = Inputs::open(&expand_with([&text], &read).unwrap(), &read).unwrap();
        let spec = SortSpec::by("id,lsn".parse::<Columns>().unwrap());
        let file = world.file(&format!("{directory}/{number}.{extension}"));
        let job = Job::sort(inputs, &spec).unwrap();
        job.write(&Target::of(file), &write_options(), &limits()).unwrap();
    }
}
