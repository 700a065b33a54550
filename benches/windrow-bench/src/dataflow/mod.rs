//! `dataflow`: arrangements of differential-dataflow 0.26, Windrow's and stock, on one worker.
//!
//! ```text
//! spines   keys arranged and joined: rounds of updates (load), then rounds of look-ups (query)
//! rounds   a loaded trace, and rounds of a few updates each: the time until their output appears
//! programs join, distances, components of numbers, by the CPU time of a round
//! spill    load and query once more, in a quarter of the memory that they take
//! rest     bytes of an arrangement after all merges
//! ```
//! All sides take turns within a round of the bench, and the minimum time counts. Of the rounds of a
//! dataflow, the median, the 99th percentile and the maximum of all runs count.

mod programs;
mod rest;
mod spines;

use clap::Args;
use differential_026::Data;
use differential_026::input::InputSession;
use timely_032::dataflow::ProbeHandle;
use timely_032::worker::Worker;

use crate::Result;
use crate::harness::{Cells, Part, Turns, keep_freed_memory};

/// Runs of a side.
const TURNS: Turns = Turns { rounds: 3, warm: 0, calls: 1 };

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Updates to load, and keys to look up
    #[arg(long, default_value_t = 2_000_000)]
    updates: usize,
    /// Updates in a round of the load
    #[arg(long, default_value_t = 100_000)]
    round: usize,
    /// Edges of the graph
    #[arg(long, default_value_t = 200_000)]
    edges: usize,
    /// A process that arranges and tells its memory
    #[arg(long, hide = true)]
    rest: Option<String>,
}

/// Runs the bench, or its parts `spines`, `programs` and `rest`, and writes the results.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    if let Some(case) = &options.rest {
        return rest::child(options, case);
    }
    keep_freed_memory();
    let parts: [Part<Options>; 3] =
        [("spines", spines::measure), ("programs", programs::measure), ("rest", rest::measure)];
    cells.parts(options, &parts)?;
    cells.finish()
}

/// The two inputs of a dataflow.
struct Inputs<D: Data> {
    inputs: [InputSession<u64, D, isize>; 2],
    probe: ProbeHandle<u64>,
    time: u64,
}

impl<D: Data> Inputs<D> {
    /// Ends the round, and steps until its results are complete.
    fn end(&mut self, worker: &mut Worker) {
        self.time += 1;
        for input in &mut self.inputs {
            input.advance_to(self.time);
            input.flush();
        }
        while self.probe.less_than(&self.time) {
            worker.step();
        }
    }
}
