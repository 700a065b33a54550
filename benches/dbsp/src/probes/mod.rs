//! Lookups of sorted keys, and sums of the diffs of all their values, in spines and over batches.
//!
//! The keys are even numbers, each its own value, distributed over sixteen batches that are
//! inserted in sequence; every looked-up key exists in one batch. Each spine decides how far to
//! merge; measurements start when DBSP's threads are idle. In addition, cursors over the same
//! number of unmerged batches are measured on both sides.
//!
//! DBSP is measured in two variants: `seek_key` moves on to the next key; `seek_key_exact`, used by
//! DBSP's joins, does not. Windrow first encodes the keys as rows, inside of the measured time.

mod ours;
mod theirs;

use crate::cells::seconds;
use crate::{Compared, Options, Result, runtime};

/// Number of batches inserted into spines.
const BATCHES: u64 = 16;

/// Numbers of batches under a cursor without a spine.
const UNDER_CURSORS: [u64; 3] = [1, 4, 16];

/// A lookup method: returns the sum of diffs of the given keys.
type Probe<'a> = Box<dyn Fn(&[u64]) -> Result<i64> + 'a>;

/// Returns the keys of one of `batches`.
fn keys_of(batch: u64, batches: u64, keys: u64) -> impl Iterator<Item = u64> {
    (0..keys).filter(move |key| (key * 7919) % batches == batch).map(|key| key * 2)
}

/// Measures all selected cases.
pub(crate) fn run(options: &Options) -> Result<Vec<Compared>> {
    let options = options.clone();
    runtime::run(None, true, move || {
        let mut compared = spines(&options)?;
        for batches in UNDER_CURSORS {
            compared.extend(cursors(batches, &options)?);
        }
        Ok(compared)
    })
}

fn spines(options: &Options) -> Result<Vec<Compared>> {
    if !CASES.iter().any(|(share, _)| options.wants(&name(share, "spines"))) {
        return Ok(Vec::new());
    }
    let ours = ours::Timed::new(BATCHES, options.keys)?;
    let timed = theirs::timed(BATCHES, options.keys);
    let untimed = theirs::untimed(BATCHES, options.keys);
    let counts = [ours.batches(), timed.get_batches().len(), untimed.get_batches().len()];
    println!(
        "batches in spines: ours {}, DBSP's with times {}, without {}",
        counts[0], counts[1], counts[2]
    );
    let rivals: [(&str, Probe<'_>); 4] = [
        ("Spine, times, seek_key", Box::new(|keys| Ok(theirs::seek_timed(&timed, keys)))),
        ("Spine, times, seek_key_exact", Box::new(|keys| Ok(theirs::find_timed(&timed, keys)))),
        ("Spine, seek_key", Box::new(|keys| Ok(theirs::seek(&untimed, keys)))),
        ("Spine, seek_key_exact", Box::new(|keys| Ok(theirs::find(&untimed, keys)))),
    ];
    measured("spines", &|keys| ours.probe(keys), &rivals, options)
}

fn cursors(batches: u64, options: &Options) -> Result<Vec<Compared>> {
    let case = format!("{batches} batches");
    if !CASES.iter().any(|(share, _)| options.wants(&name(share, &case))) {
        return Ok(Vec::new());
    }
    let ours = ours::Untimed::new(batches, options.keys)?;
    let theirs = theirs::snapshot(batches, options.keys);
    let rivals: [(&str, Probe<'_>); 2] = [
        ("CursorList, seek_key", Box::new(|keys| Ok(theirs::seek(&theirs, keys)))),
        ("CursorList, seek_key_exact", Box::new(|keys| Ok(theirs::find(&theirs, keys)))),
    ];
    measured(&case, &|keys| ours.probe(keys), &rivals, options)
}

/// Shares of looked-up keys: the first of every n.
const CASES: [(&str, usize); 2] = [("1 %", 100), ("all", 1)];

fn name(share: &str, case: &str) -> String {
    format!("probes of {share}, {case}")
}

fn measured(
    case: &str,
    ours: &dyn Fn(&[u64]) -> Result<i64>,
    rivals: &[(&'static str, Probe<'_>)],
    options: &Options,
) -> Result<Vec<Compared>> {
    let mut compared = Vec::new();
    for (share, step) in CASES {
        let case = name(share, case);
        if !options.wants(&case) {
            continue;
        }
        let keys: Vec<u64> = (0..options.keys).step_by(step).map(|key| key * 2).collect();
        let timed = |probe: &dyn Fn(&[u64]) -> Result<i64>| {
            let (time, sum) = seconds(|| probe(&keys))?;
            if sum != keys.len() as i64 {
                return Err(format!("{case}: {sum} changes of {} keys", keys.len()).into());
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(time * 1e9 / keys.len() as f64)
        };
        let (mut least, mut theirs) = (f64::INFINITY, vec![f64::INFINITY; rivals.len()]);
        for _ in 0..options.rounds {
            least = least.min(timed(ours)?);
            for (theirs, (_, probe)) in theirs.iter_mut().zip(rivals) {
                *theirs = theirs.min(timed(probe)?);
            }
        }
        for (&theirs_ns, &(theirs, _)) in theirs.iter().zip(rivals) {
            let case = case.clone();
            compared.push(Compared { case, ours: least, theirs, theirs_ns, unit: "ns/key" });
        }
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::Options;

    #[test]
    fn every_way_finds_every_key() {
        let (only, batches) = (String::new(), Vec::new());
        let found = run(&Options { only, batches, records: 0, keys: 40_000, rounds: 1 });
        assert!(found.is_ok_and(|compared| compared.len() == 2 * (4 + 3 * 2)));
    }
}
