//! One harness for all benches: contenders take turns, their outputs are compared, and their
//! figures become a table for people and a JSON file for programs.
//!
//! ```text
//! round:  fresh inputs -> each contender, in rotation: warm calls, then calls that count
//! figure: the least of all calls; of rounds of a dataflow, the median and the 99th percentile
//! cell:   a figure of the first contender, Windrow, beside the same figure of a rival
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use serde::Serialize;

use crate::Result;

/// The selection of cases and rounds, which all benches have.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Select {
    /// Only cases whose name contains all of these texts
    #[arg(long, global = true, num_args = 1..)]
    pub(crate) only: Vec<String>,
    /// Rounds of each cell
    #[arg(long, global = true)]
    pub(crate) rounds: Option<usize>,
}

/// One comparison.
#[derive(Clone, Serialize)]
pub(crate) struct Cell {
    bench: &'static str,
    case: String,
    ours: f64,
    rival_name: String,
    rival: f64,
    unit: &'static str,
    /// Speedup relative to the rival.
    ratio: f64,
    /// Number of items of a call, 0 if unknown, and nominal bytes of an item.
    items: f64,
    bytes: f64,
}

/// The part of a case, the unit, and samples, in which less is better. Without a unit, the samples
/// are seconds for all items of the inputs.
pub(crate) type Figure = (String, &'static str, Vec<f64>);

/// The outcome of a call: figures, and a digest of the output, which all contenders must share.
/// A contender that fails in a way that a bench measures has neither.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) figures: Vec<Figure>,
    pub(crate) digest: Option<u64>,
}

impl From<f64> for Outcome {
    fn from(seconds: f64) -> Self {
        Self { figures: vec![(String::new(), "", vec![seconds])], digest: None }
    }
}

impl From<(f64, u64)> for Outcome {
    fn from((seconds, digest): (f64, u64)) -> Self {
        Self { digest: Some(digest), ..seconds.into() }
    }
}

/// A name, and the work on the inputs of a round with the number of the call.
pub(crate) struct Contender<'a, I>(String, Box<Work<'a, I>>);
type Work<'a, I> = dyn FnMut(&I, usize) -> Result<Outcome> + 'a;

/// A contender that measures its own seconds.
pub(crate) fn contender<'a, I, O: Into<Outcome>>(
    name: impl ToString,
    mut work: impl FnMut(&I, usize) -> Result<O> + 'a,
) -> Contender<'a, I> {
    Contender(name.to_string(), Box::new(move |inputs, call| Ok(work(inputs, call)?.into())))
}

/// A contender whose whole call is measured, with the drop of its output.
pub(crate) fn timed<'a, I, T>(
    name: impl ToString,
    mut work: impl FnMut(&I, usize) -> Result<T> + 'a,
) -> Contender<'a, I> {
    contender(name, move |inputs, call| {
        let (time, done) = elapsed(|| work(inputs, call).map(|output| drop(black_box(output))));
        done.map(|()| time)
    })
}

/// The number of rounds unless chosen, and the calls of a contender in a round: the first ones warm
/// caches and memory, and do not count.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub(crate) rounds: usize,
    pub(crate) warm: usize,
    pub(crate) calls: usize,
}

/// A part of a bench, by name.
pub(crate) type Part<O> = (&'static str, fn(&O, &mut Cells) -> Result<()>);

/// The cells of one bench.
#[derive(Clone)]
pub(crate) struct Cells {
    bench: &'static str,
    /// The unit of figures of time: `ns` or `us` by itself, or of an item.
    pub(crate) unit: &'static str,
    /// Nominal bytes of an item; 0 if there is none.
    pub(crate) bytes: f64,
    items: f64,
    select: Select,
    pub(crate) cells: Vec<Cell>,
}

impl Cells {
    pub(crate) fn new(bench: &'static str, unit: &'static str, select: Select) -> Self {
        Self { bench, unit, bytes: 0.0, items: 0.0, select, cells: Vec::new() }
    }

    /// Returns true if a case is selected.
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.select.only.iter().all(|text| case.contains(text))
    }

    /// Returns true if cases are selected, not all measured.
    pub(crate) fn is_selective(&self) -> bool {
        !self.select.only.is_empty()
    }

    /// Runs the parts of a bench with selected names.
    pub(crate) fn parts<O>(&mut self, options: &O, parts: &[Part<O>]) -> Result<()> {
        for (name, part) in parts {
            if self.wants(name) {
                part(options, self)?;
            }
        }
        Ok(())
    }

    /// Adds a comparison with each rival.
    pub(crate) fn push<N: ToString>(
        &mut self,
        unit: &'static str,
        case: &str,
        ours: f64,
        rivals: impl IntoIterator<Item = (N, f64)>,
    ) {
        for (name, rival) in rivals {
            let (bench, case, rival_name) = (self.bench, case.to_owned(), name.to_string());
            let (ratio, items, bytes) = (rival / ours, self.items, self.bytes);
            let cell = Cell { bench, case, ours, rival_name, rival, unit, ratio, items, bytes };
            self.cells.push(cell);
        }
    }

    /// Measures a case: `fresh` returns the inputs of a round and the number of their items.
    ///
    /// # Errors
    /// Those of `fresh` and of contenders, and outputs that differ.
    pub(crate) fn race<I>(
        &mut self,
        case: &str,
        turns: Turns,
        mut fresh: impl FnMut(usize) -> Result<(I, f64)>,
        contenders: &mut [Contender<'_, I>],
    ) -> Result<()> {
        let scale = if self.unit.starts_with("us") { 1e6 } else { 1e9 };
        let mut all = vec![BTreeMap::<_, Vec<f64>>::new(); contenders.len()];
        for round in 0..self.select.rounds.unwrap_or(turns.rounds) {
            let (inputs, items) = fresh(round)?;
            self.items = items;
            let mut digests = vec![None; turns.warm + turns.calls];
            for turn in round..round + contenders.len() {
                let at = turn % contenders.len();
                let Contender(name, work) = &mut contenders[at];
                for (call, expected) in digests.iter_mut().enumerate() {
                    let Outcome { figures, digest } = work(&inputs, call)?;
                    if digest.is_some_and(|got| got != *expected.get_or_insert(got)) {
                        let rest = format!("{name} has {digest:?}, others {expected:?}");
                        return Err(format!("{case}: {rest}").into());
                    }
                    for (part, unit, samples) in figures.into_iter().filter(|_| call >= turns.warm)
                    {
                        let (unit, scale) =
                            if unit.is_empty() { (self.unit, scale / items) } else { (unit, 1.0) };
                        let samples = samples.into_iter().map(|sample| sample * scale);
                        all[at].entry((part, unit)).or_default().extend(samples);
                    }
                }
            }
        }
        let Some((ours, rivals)) = all.split_first_mut() else { return Ok(()) };
        for (key, samples) in ours {
            // Rounds of a dataflow are compared by their median and the slowest of a hundred.
            let shares: &[_] = if key.1.ends_with("/round") {
                &[(", p50", 50), (", p99", 99), (", max", 100)]
            } else {
                &[("", 0)]
            };
            for (share, hundredths) in shares {
                let at = |samples: &mut Vec<f64>| {
                    samples.sort_by(f64::total_cmp);
                    samples[(samples.len() * hundredths / 100).min(samples.len() - 1)]
                };
                let names = contenders[1..].iter().map(|rival| &rival.0);
                let rivals = names.zip(&mut *rivals);
                let rivals = rivals.filter_map(|(name, all)| Some((name, at(all.get_mut(key)?))));
                self.push(key.1, &format!("{case}{}{share}", key.0), at(samples), rivals);
            }
        }
        self.items = 0.0;
        Ok(())
    }

    /// Formats a row for each case: Windrow's figure, for times of an item also the time of a call
    /// in microseconds and GiB of nominal bytes a second, and how many times as fast it is as each
    /// rival.
    fn markdown(&self) -> String {
        let (mut out, mut heads) = (String::new(), Vec::new());
        for row in self.cells.chunk_by(|a, b| (&a.case, a.unit) == (&b.case, b.unit)) {
            let Cell { case, ours, unit, items, bytes, .. } = &row[0];
            let rivals = row.iter().map(|cell| &*cell.rival_name);
            let head: Vec<_> = ["case", *unit, "us", "GiB/s"].into_iter().chain(rivals).collect();
            if head != heads {
                out += &format!("\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
                heads = head;
            }
            let (call, rate) = (ours * items / 1e3, bytes / ours * 1e9 / f64::from(1 << 30));
            let known = [call, rate].map(|of| {
                if unit.starts_with("ns/") && of > 0.0 { format!("{of:.2}") } else { String::new() }
            });
            let ratios = row.iter().map(|cell| format!("{:.2}", cell.ratio));
            let row = [case.clone(), format!("{ours:.2}")].into_iter().chain(known).chain(ratios);
            out += &format!("| {} |\n", row.collect::<Vec<_>>().join(" | "));
        }
        out
    }

    /// Prints the table and geometric means of ratios, for each rival and first word of cases, and
    /// writes `target/windrow-bench/NAME.json`, and `NAME.md`, a row for each case. Figures of
    /// Windrow in nanoseconds per item are also shown as millions per second.
    pub(crate) fn finish(&self) -> Result<()> {
        let line = |case: &str, ours: &str, rate: &str, rival: &str, theirs: &str, rest: &str| {
            println!("{case:<34} {ours:>10} {rate:>8}  {rival:<28} {theirs:>10}  {rest}");
        };
        let mut ratios = BTreeMap::<_, Vec<f64>>::new();
        line(self.bench, "ours", "M/s", "rival", "", " ratio");
        for Cell { case, ours, rival_name, rival, unit, ratio, .. } in &self.cells {
            let rate = unit.strip_prefix("ns/").map(|_| format!("{:.1}", 1e3 / ours));
            let rate = rate.unwrap_or_default();
            let (ours, rival) = (format!("{ours:.2}"), format!("{rival:.2}"));
            line(case, &ours, &rate, rival_name, &rival, &format!("{ratio:>5.2}x  {unit}"));
            let group = case.split(' ').next();
            ratios.entry((group, rival_name, unit)).or_default().push(*ratio);
        }
        for ((group, rival, unit), ratios) in ratios.iter().filter(|(_, all)| all.len() > 1) {
            let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let cells = format!("{}, mean of {} cells", group.unwrap_or_default(), ratios.len());
            let rest = format!("{:>5.2}x  {unit}, least {least:.2}x", mean.exp());
            line(&cells, "", "", rival, "", &rest);
        }
        fs::create_dir_all("target/windrow-bench")?;
        let file = |end| format!("target/windrow-bench/{}.{end}", self.bench);
        fs::write(file("md"), self.markdown())?;
        Ok(fs::write(file("json"), serde_json::to_string_pretty(&self.cells)? + "\n")?)
    }
}

/// A stopwatch in seconds that subtracts the cost of reading the clock: two dozen nanoseconds, as
/// much as appending one batch to another.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        // Calibrates before the measured interval.
        reading();
        Self(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        (self.0.elapsed().as_secs_f64() - reading()).max(0.0)
    }
}

/// Measures the seconds of one clock reading.
fn reading() -> f64 {
    const TIMES: u32 = 10_000;
    static READING: OnceLock<f64> = OnceLock::new();
    *READING.get_or_init(|| {
        let rounds = (0..10).map(|_| {
            let start = Instant::now();
            (1..TIMES).for_each(|_| _ = black_box(Instant::now()));
            start.elapsed().as_secs_f64() / f64::from(TIMES)
        });
        rounds.fold(f64::INFINITY, f64::min)
    })
}

/// Measures the seconds of `work`, and returns its result.
pub(crate) fn elapsed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let watch = Stopwatch::start();
    let out = work();
    (watch.seconds(), out)
}

/// Measures the seconds of `work` that can fail.
pub(crate) fn seconds<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let (seconds, out) = elapsed(work);
    Ok((seconds, out?))
}

/// Makes the system's allocator keep freed memory: blocks of up to 32 MiB go back to the system
/// until a block of such a size has been freed. Otherwise rivals with allocated output would pay
/// for fresh pages only in the first cases of a run.
pub(crate) fn keep_freed_memory() {
    drop(black_box(vec![1u8; 31 << 20]));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURNS: Turns = Turns { rounds: 3, warm: 1, calls: 2 };

    fn cells() -> Cells {
        Cells::new("test", "ns/row", Select::default())
    }

    #[test]
    fn the_least_of_the_calls_that_count_is_compared_in_the_unit_of_an_item() {
        let seconds = |least: f64| {
            move |round: &usize, call: usize| {
                // The warm call would be the least.
                Ok(if call == 0 { 0.0 } else { least * (*round + call) as f64 * 1e-9 })
            }
        };
        let mut contenders = [contender("ours", seconds(10.0)), contender("rival", seconds(30.0))];
        let mut cells = cells();
        let raced = cells.race("case", TURNS, |round| Ok((round, 5.0)), &mut contenders);
        assert!(raced.is_ok());
        let Cell { case, ours, rival_name, rival, unit, ratio, .. } = &cells.cells[0];
        assert_eq!((&case[..], &rival_name[..], *unit), ("case", "rival", "ns/row"));
        let is_about = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
        assert!(is_about(*ours, 2.0) && is_about(*rival, 6.0) && is_about(*ratio, 3.0));
    }

    #[test]
    fn rounds_of_a_dataflow_are_compared_by_shares_of_all_samples() {
        let rounds = |first: usize| {
            move |_: &(), _: usize| {
                let samples = (first..first + 100).map(|sample| sample as f64).rev().collect();
                let figures =
                    vec![(" load".to_owned(), "", vec![1.0]), (String::new(), "us/round", samples)];
                Ok(Outcome { figures, digest: None })
            }
        };
        let mut contenders = [contender("ours", rounds(0)), contender("rival", rounds(1000))];
        let mut cells = cells();
        let raced = cells.race("case", TURNS, |_| Ok(((), 1.0)), &mut contenders);
        assert!(raced.is_ok());
        let found: Vec<_> = cells.cells.iter().map(|c| (&c.case[..], c.ours, c.rival)).collect();
        let expected = [
            ("case, p50", 50.0, 1050.0),
            ("case, p99", 99.0, 1099.0),
            ("case, max", 99.0, 1099.0),
            ("case load", 1e9, 1e9),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn outputs_that_differ_are_an_error() {
        let with = |digest: u64| move |_: &(), call: usize| Ok((1.0, digest * call as u64));
        let mut contenders = [contender("ours", with(1)), contender("rival", with(2))];
        let raced = cells().race("case", TURNS, |_| Ok(((), 1.0)), &mut contenders);
        assert!(raced.is_err_and(|error| error.to_string().contains("rival has Some(2)")));
    }

    #[test]
    fn a_case_is_selected_by_all_of_the_texts() {
        let only = vec!["u64".to_owned(), "sort".to_owned()];
        let cells = Cells::new("test", "us", Select { only, rounds: None });
        assert!(cells.wants("sort 8K u64") && !cells.wants("encode u64"));
    }
}
