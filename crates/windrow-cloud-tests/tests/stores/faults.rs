//! Faults on the way to a store and back are retried, or reported as an error with the cause. No
//! incorrect or partial object becomes visible, and no parts of uploads are left over.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Random, Verb, World, address, contents, logs, run};
use windrow_cloud_tests::{Fault, Request};
use windrow_files::{
    Cancel, Error, ErrorKind, HeadSpec, Inputs, Job, ReadOptions, Target, expand_with,
};

/// A world with a change log, and the expected results of jobs.
struct Known {
    world: World,
    inputs: [String; 1],
}

impl Known {
    fn new(extension: &str, rows: u64) -> Self {
        let world = World::new();
        logs(&world, "in", extension, rows);
        world.put_all("in");
        Self { world, inputs: [address(&format!("in/*.{extension}"))] }
    }

    /// Runs `verb` locally, and writes the expected result to `name`.
    fn expected(&self, verb: Verb, name: &str) {
        let local = self.inputs[0].replace("s3://logs", self.world.file("").to_str().unwrap());
        let file = self.world.file(name);
        run(verb, &[local], file.to_str().unwrap(), &ReadOptions::default()).unwrap();
    }

    fn fails(&self, plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Error {
        self.world.proxy.go_wrong(plan);
        let error = run(Verb::Sort, &self.inputs, &address("out.csv"), &self.world.read());
        self.world.proxy.reset();
        assert!(!self.world.object("out.csv").exists());
        assert_eq!(self.world.parts(), [""; 0]);
        error.expect_err("it cannot have worked")
    }
}

/// Rows of an upload in three parts.
const ROWS_OF_PARTS: u64 = 130_000;

#[test]
fn two_hundred_random_faults() {
    let small = Known::new("parquet", 2000);
    let large = Known::new("csv", ROWS_OF_PARTS);
    small.expected(Verb::Sort, "sorted.parquet");
    small.expected(Verb::Hive, "parts.parquet");
    large.expected(Verb::Sort, "sorted.csv");
    let (mut done, mut failed, mut faults) = (0, 0, 0);
    let mut round = 0_u64;
    while faults < 200 {
        round += 1;
        let (known, verb, name) = match round % 8 {
            0 => (&large, Verb::Sort, "sorted.csv"),
            1..4 => (&small, Verb::Hive, "parts.parquet"),
            _ => (&small, Verb::Sort, "sorted.parquet"),
        };
        let output = format!("{round}-{name}");
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        // One request in `rarity` fails: some jobs see a single fault, others so many that they
        // fail.
        let rarity = [3, 8, 25][(round % 3) as usize];
        known.world.proxy.reset();
        known.world.proxy.go_wrong(move |request| {
            let mut random = Random((round << 20) + request.ordinal as u64 + 0x9E37_79B9);
            random.below(2);
            // Cleanup requests pass: otherwise parts would be left over, as after a killed process.
            if request.method == "DELETE" || random.below(rarity) > 0 {
                return Fault::None;
            }
            counted.fetch_add(1, Ordering::Relaxed);
            match random.below(7) {
                0 | 1 => Fault::Status(500),
                2 => Fault::Status(503),
                3 => Fault::Refused,
                4 => Fault::Cut,
                5 => Fault::Lost,
                _ => Fault::Slow(30),
            }
        });
        let outcome = run(verb, &known.inputs, &address(&output), &known.world.read());
        faults += made.load(Ordering::Relaxed);
        let (object, file) = (known.world.object(&output), known.world.file(name));
        let is_right = || match verb.makes_a_directory() {
            true => contents(&object) == contents(&file),
            false => fs::read(&object).unwrap() == fs::read(&file).unwrap(),
        };
        match outcome {
            Ok(_) => {
                assert!(is_right(), "round {round}");
                done += 1;
            }
            Err(error) => {
                let there = match verb.makes_a_directory() {
                    true => object.exists() && !contents(&object).is_empty(),
                    false => object.exists(),
                };
                // If only the response to the completion was lost, the output exists and must be
                // complete.
                assert!(!there || is_right(), "round {round}: {error}");
                assert!(!error.to_string().contains("damaged"), "round {round}: {error}");
                failed += 1;
            }
        }
        assert_eq!(known.world.parts(), [""; 0], "round {round}");
    }
    assert!(done > 10 && failed > 2, "{done} done, {failed} failed");
}

#[test]
fn a_fault_now_and_then_is_sent_again() {
    let known = Known::new("csv", 3000);
    known.expected(Verb::Sort, "sorted.csv");
    for fault in
        [Fault::Status(500), Fault::Status(503), Fault::Refused, Fault::Cut, Fault::Slow(300)]
    {
        known.world.proxy.reset();
        known.world.proxy.go_wrong(
            move |request| {
                if request.ordinal % 4 == 2 { fault } else { Fault::None }
            },
        );
        let output = format!("{fault:?}.csv");
        let stats = run(Verb::Sort, &known.inputs, &address(&output), &known.world.read()).unwrap();
        let (object, file) = (known.world.object(&output), known.world.file("sorted.csv"));
        assert!(fs::read(object).unwrap() == fs::read(file).unwrap(), "{fault:?}");
        let network = stats.network.unwrap();
        assert_eq!(network.retries > 0, fault != Fault::Slow(300), "{fault:?}: {network:?}");
        assert_eq!(network.requests as usize, known.world.proxy.seen().len(), "{fault:?}");
    }
}

#[test]
fn errors_say_what_they_are() {
    let known = Known::new("csv", 3000);
    let is_read = |request: &Request| request.range.is_some();
    let error = known.fails(|_| Fault::Status(500));
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    let error = known.fails(move |request| match is_read(request) && request.ordinal > 4 {
        true => Fault::Status(500),
        false => Fault::None,
    });
    assert!(error.to_string().contains("cannot be read"), "{error}");
    let error = known.fails(move |request| match is_read(request) && request.ordinal > 4 {
        true => Fault::Status(403),
        false => Fault::None,
    });
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert!(error.to_string().contains("ExpiredToken"), "{error}");
    let error = known.fails(move |request| match is_read(request) && request.ordinal > 4 {
        true => Fault::Status(404),
        false => Fault::None,
    });
    assert!(error.to_string().contains("was removed while it was read"), "{error}");
    // A forbidden write is reported before any input is read.
    let error = known.fails(|request| match request.method.as_str() {
        "PUT" | "POST" => Fault::Status(403),
        _ => Fault::None,
    });
    assert_eq!(error.kind(), ErrorKind::Space, "{error}");
    assert!(error.to_string().contains("out.csv: permission denied"), "{error}");
}

#[test]
fn parts_are_aborted_where_one_cannot_be_sent() {
    let known = Known::new("csv", ROWS_OF_PARTS);
    let error = known.fails(|request| match request.path.contains("partNumber=2") {
        true => Fault::Status(500),
        false => Fault::None,
    });
    assert_eq!(error.kind(), ErrorKind::Space, "{error}");
    let error = known.fails(|request| {
        let completes = request.method == "POST" && request.path.contains("uploadId");
        if completes { Fault::Status(403) } else { Fault::None }
    });
    assert_eq!(error.kind(), ErrorKind::Space, "{error}");
}

#[test]
fn objects_of_a_directory_are_all_there_or_none() {
    let known = Known::new("csv", 3000);
    known.expected(Verb::Hash, "parts");
    let completed = Arc::new(AtomicUsize::new(0));
    known.world.proxy.go_wrong(move |request| {
        let completes = request.method == "POST" && request.path.contains("uploadId");
        match completes && completed.fetch_add(1, Ordering::Relaxed) >= 3 {
            true => Fault::Status(403),
            false => Fault::None,
        }
    });
    let output = address("parts");
    run(Verb::Hash, &known.inputs, &output, &known.world.read()).unwrap_err();
    let object = known.world.object("parts");
    assert!(!object.exists() || contents(&object).is_empty());
    assert!(!object.join("_SUCCESS").exists());
    assert_eq!(known.world.parts(), [""; 0]);
    known.world.proxy.reset();
    run(Verb::Hash, &known.inputs, &output, &known.world.read()).unwrap();
    assert!(contents(&object) == contents(&known.world.file("parts")));
}

#[test]
fn an_object_that_is_replaced_is_an_error_and_never_a_mix() {
    for extension in ["parquet", "csv", "arrow", "csv.gz"] {
        let known = Known::new(extension, 20_000);
        known.expected(Verb::Sort, "before.csv");
        let mut outcomes = HashSet::new();
        // Starts after the initial listing: jobs read the version found by the listing.
        for at in 4..14 {
            // A modified version of the same length.
            let key = format!("in/1.{extension}");
            let (object, old) = (known.world.object(&key), known.world.file(&key));
            let old = fs::read(old).unwrap();
            let mut new = old.clone();
            let middle = new.len() / 2;
            new[middle] ^= 1;
            known.world.proxy.reset();
            let replaced = object.clone();
            known.world.proxy.go_wrong(move |request| {
                if request.ordinal == at {
                    // Replaces atomically: a response in progress still has the old bytes.
                    let aside = replaced.with_extension("aside");
                    fs::write(&aside, &new).unwrap();
                    fs::rename(&aside, &replaced).unwrap();
                }
                Fault::None
            });
            let output = format!("out-{at}.csv");
            let outcome = run(Verb::Sort, &known.inputs, &address(&output), &known.world.read());
            let written = known.world.object(&output);
            match outcome {
                Ok(_) => {
                    let before = fs::read(known.world.file("before.csv")).unwrap();
                    assert!(fs::read(written).unwrap() == before, "{extension} {at}");
                    outcomes.insert("done");
                }
                Err(error) => {
                    assert!(!written.exists());
                    let text = error.to_string();
                    assert!(text.contains("was replaced while"), "{extension} {at}: {text}");
                    outcomes.insert("replaced");
                }
            }
            fs::write(&object, &old).unwrap();
        }
        assert!(outcomes.contains("replaced"), "{extension}: {outcomes:?}");
    }
}

#[test]
fn a_job_that_is_cancelled_leaves_nothing_and_does_not_wait() {
    let known = Known::new("csv", ROWS_OF_PARTS);
    let read = known.world.read();
    // Cancels during the transfer of a range, and of a part.
    for stuck in ["bytes=", "partNumber=2"] {
        known.world.proxy.reset();
        let cancel = Cancel::new();
        let asked = cancel.clone();
        known.world.proxy.go_wrong(move |request| {
            let range = request.range.as_deref().unwrap_or_default();
            let is_stuck =
                request.path.contains(stuck) || range.starts_with(stuck) && request.ordinal > 4;
            if is_stuck {
                asked.cancel();
                return Fault::Slow(30_000);
            }
            Fault::None
        });
        let start = Instant::now();
        let read = read.clone().cancelled_by(&cancel);
        let inputs = Inputs::open(&expand_with(&known.inputs, &read).unwrap(), &read).unwrap();
        let job = Job::head(inputs, &HeadSpec::rows(u64::MAX / 2)).unwrap().cancelled_by(&cancel);
        let target = Target::of(address("out.csv"));
        let error = job
            .write(&target, &crate::common::write_options(), &crate::common::limits())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
        assert!(start.elapsed() < Duration::from_secs(25), "{stuck}: {:?}", start.elapsed());
        assert!(!known.world.object("out.csv").exists());
        assert_eq!(known.world.parts(), [""; 0], "{stuck}");
    }
}

#[test]
fn a_process_that_ends_at_once_aborts_its_uploads_before() {
    let known = Known::new("csv", ROWS_OF_PARTS);
    let read = known.world.read();
    let cancel = Cancel::new();
    let asked = cancel.clone();
    known.world.proxy.go_wrong(move |request| {
        // While the job waits, outputs are discarded without waiting for the job.
        if request.path.contains("partNumber=2") {
            asked.discard_outputs();
            return Fault::Status(404);
        }
        Fault::None
    });
    let read = read.cancelled_by(&cancel);
    let inputs = Inputs::open(&expand_with(&known.inputs, &read).unwrap(), &read).unwrap();
    let job = Job::head(inputs, &HeadSpec::rows(u64::MAX / 2)).unwrap().cancelled_by(&cancel);
    let target = Target::of(address("out.csv"));
    job.write(&target, &crate::common::write_options(), &crate::common::limits()).unwrap_err();
    assert!(!known.world.object("out.csv").exists());
    assert_eq!(known.world.parts(), [""; 0]);
}
