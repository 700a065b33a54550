//! A damaged page ends the dataflow; no results are computed without the page.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::Numbers;
use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use windrow::{Budget, ForceSpill, Pool, PoolOptions};
use windrow_differential::{ArrangeRows, Context, RowArrangement};

/// Returns this process's open files in `directory`, including unlinked ones.
fn files(directory: &Path) -> Vec<File> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        if std::fs::read_link(&path).is_ok_and(|target| target.starts_with(directory)) {
            files.push(OpenOptions::new().read(true).write(true).open(path).unwrap());
        }
    }
    files
}

/// Arranges numbers on disk, optionally damages the files, and joins with a second input, whose
/// batches may wait for reads. Returns the number of results, or the panic message.
fn joined(damaged: bool, ahead: bool) -> Result<usize, String> {
    let directory = tempfile::tempdir().unwrap();
    let options =
        PoolOptions::new().directories([directory.path()]).chunk_bytes(4 << 10).policy(ForceSpill);
    let pool = Pool::new(Budget::bytes(8 << 20), options).unwrap();
    let context = Context::new(pool.clone());
    let seen = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&seen);
    let directory = directory.path().to_owned();
    let run = move || {
        timely::execute_directly(move |worker| {
            let probe = ProbeHandle::new();
            let (mut many, mut few) = worker.dataflow::<u64, _, _>(|scope| {
                let (many, rows) = scope.new_collection::<(u64, u64), isize>();
                let (few, others) = scope.new_collection::<(u64, u64), isize>();
                let rows = rows.arrange_rows(&context);
                let mut others = others.arrange_rows(&context);
                if ahead {
                    others = others.reading_ahead(&rows);
                }
                rows.join_rows(others, |key, _, _| Some(key.get()))
                    .inspect(move |_| *counted.lock().unwrap() += 1)
                    .probe_with(&probe);
                (many, few)
            });
            let mut numbers = Numbers(1);
            for time in 1..5 {
                for _ in 0..5_000 {
                    many.update((numbers.below(1 << 20), numbers.next()), 1);
                }
                many.advance_to(time);
                many.flush();
                few.advance_to(time);
                few.flush();
                while probe.less_than(&time) {
                    worker.step();
                }
            }
            pool.wait_for_spills();
            pool.set_limit(2 << 20).unwrap();
            let files = files(&directory);
            assert!(!files.is_empty(), "nothing was spilled");
            for file in files.iter().filter(|_| damaged) {
                let blocks = file.metadata().unwrap().len() / 512;
                (0..blocks).for_each(|block| file.write_all_at(&[0xa5; 8], block * 512).unwrap());
            }
            let mut numbers = Numbers(1);
            for _ in 0..5_000 {
                few.update((numbers.below(1 << 20), 0), 1);
                numbers.next();
            }
        });
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => Ok(*seen.lock().unwrap()),
        Err(panic) => Err(panic.downcast_ref::<String>().cloned().unwrap_or_default()),
    }
}

#[test]
fn a_damaged_page_ends_the_dataflow() {
    for ahead in [false, true] {
        assert!(joined(false, ahead).unwrap() > 4_900);
        let message = joined(true, ahead).unwrap_err();
        assert!(message.starts_with("windrow: "), "{message}");
        assert!(message.contains("checksum") || message.contains("damaged"), "{message}");
    }
}
