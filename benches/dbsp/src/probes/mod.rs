//! Lookups of sorted keys, and sums of the diffs of all their values, in spines and over batches.
//!
//! The keys are even numbers, each its own value, distributed over sixteen batches that are
//! inserted in sequence; a looked-up key exists in one batch, or in none. Each spine decides how far to
//! merge; measurements start when DBSP's threads are idle. In addition, cursors over the same
//! number of unmerged batches are measured on both sides.
//!
//! *Scans* add up the diffs of all keys of such batches: value by value, and ours also key by key.
//!
//! DBSP is measured in two variants: `seek_key` moves on to the next key; `seek_key_exact`, used by
//! DBSP's joins, does not. Windrow first encodes the keys as rows, inside of the measured time.

mod ours;
mod theirs;

use crate::harness::{Cells, contender, seconds};
use crate::{Options, Result, TURNS, runtime};

/// Number of batches inserted into spines.
const BATCHES: u64 = 16;

/// A lookup method: returns the sum of diffs of the given keys.
type Probe<'a> = Box<dyn Fn(&[u64]) -> Result<i64> + 'a>;

/// Measures all selected cases.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<Cells> {
    let options = options.clone();
    cells.unit = "ns/key";
    runtime::run(None, true, move || {
        let is_wanted = |case: &str, cells: &Cells| {
            CASES.iter().any(|(share, ..)| cells.wants(&name(share, case)))
        };
        if is_wanted("spines", &cells) {
            spines(&options, &mut cells)?;
        }
        for batches in [1, 4, 16] {
            if is_wanted(&format!("{batches} batches"), &cells) {
                cursors(batches, &options, &mut cells)?;
            }
        }
        for batches in [1, 4, 16, 49] {
            scans(batches, &options, &mut cells)?;
        }
        Ok(cells)
    })
}

fn scans(batches: u64, options: &Options, cells: &mut Cells) -> Result<()> {
    let case = format!("scan, {batches} batches");
    if !cells.wants(&case) {
        return Ok(());
    }
    let ours = ours::untimed(batches, options.keys)?;
    let theirs = theirs::snapshot(batches, options.keys);
    let scan = |by_value| seconds(|| Ok(ours::scan(&ours, by_value)? as u64));
    let mut sides = [
        contender("ours", |(), _| scan(true)),
        contender("ours, by key", |(), _| scan(false)),
        contender("CursorList", |(), _| seconds(|| Ok(theirs::scan(&theirs) as u64))),
    ];
    cells.race(&case, TURNS, |_| Ok(((), options.keys as f64)), &mut sides)
}

fn spines(options: &Options, cells: &mut Cells) -> Result<()> {
    let (count, ours) = ours::timed(BATCHES, options.keys)?;
    let timed = theirs::timed(BATCHES, options.keys);
    let untimed = theirs::untimed(BATCHES, options.keys);
    let counts = (timed.get_batches().len(), untimed.get_batches().len());
    println!("batches in spines: ours {count}, DBSP's with and without times {counts:?}");
    let (timed, untimed) = (&timed, &untimed);
    let with_times = |exact| move |keys: &[u64]| Ok(theirs::probe_timed(timed, keys, exact));
    let without = |exact| move |keys: &[u64]| Ok(theirs::probe(untimed, keys, exact));
    let sides: [(&str, Probe<'_>); 5] = [
        ("ours", ours),
        ("Spine, times, seek_key", Box::new(with_times(false))),
        ("Spine, times, seek_key_exact", Box::new(with_times(true))),
        ("Spine, seek_key", Box::new(without(false))),
        ("Spine, seek_key_exact", Box::new(without(true))),
    ];
    measured("spines", &sides, options, cells)
}

fn cursors(batches: u64, options: &Options, cells: &mut Cells) -> Result<()> {
    let ours = ours::untimed(batches, options.keys)?;
    let theirs = theirs::snapshot(batches, options.keys);
    let sides: [(&str, Probe<'_>); 3] = [
        ("ours", ours::lookup(&ours)),
        ("CursorList, seek_key", Box::new(|keys| Ok(theirs::probe(&theirs, keys, false)))),
        ("CursorList, seek_key_exact", Box::new(|keys| Ok(theirs::probe(&theirs, keys, true)))),
    ];
    measured(&format!("{batches} batches"), &sides, options, cells)
}

/// Shares of looked-up keys: the first of every n, or the absent one after it.
const CASES: [(&str, usize, u64); 3] = [("1 %", 100, 0), ("all", 1, 0), ("absent keys", 1, 1)];

fn name(share: &str, case: &str) -> String {
    format!("probes of {share}, {case}")
}

fn measured(
    case: &str,
    sides: &[(&str, Probe<'_>)],
    options: &Options,
    cells: &mut Cells,
) -> Result<()> {
    for (share, step, after) in CASES {
        let case = name(share, case);
        if !cells.wants(&case) {
            continue;
        }
        let keys: Vec<u64> = (0..options.keys).step_by(step).map(|key| key * 2 + after).collect();
        let mut sides: Vec<_> = sides
            .iter()
            .map(|(name, probe)| contender(name, |(), _| seconds(|| Ok(probe(&keys)? as u64))))
            .collect();
        cells.race(&case, TURNS, |_| Ok(((), keys.len() as f64)), &mut sides)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Cells, run};
    use crate::{Options, harness::Select};

    #[test]
    fn every_way_finds_every_key() {
        let select = Select { only: Vec::new(), rounds: Some(1) };
        let (batches, records, keys) = (Vec::new(), 0, 40_000);
        let cells = Cells::new("dbsp", "ns/record", select.clone());
        let found = run(&Options { select, batches, records, keys }, cells);
        assert!(found.is_ok_and(|cells| cells.cells.len() == 2 * (4 + 3 * 2 + 4)));
    }
}
