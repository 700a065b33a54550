//! Arranged keys, joined with looked-up keys.

use differential_026::batcher::merge::chunker::ContainerChunker;
use differential_026::columnar::trace::{ColChunk, Spine as ColSpine};
use differential_026::input::{Input, InputSession};
use differential_026::operators::arrange::arrangement::arrange_core;
use differential_026::trace::chunk::ChunkBatcher;
use differential_026::trace::chunk::vec::{ChunkBatcher as VecBatcher, ChunkSpine as VecSpine};
use differential_026::trace::implementations::ord_neu::{OrdValBatcher, OrdValSpine};
use timely_032::dataflow::ProbeHandle;
use timely_032::dataflow::channels::pact::Pipeline;
use timely_032::worker::Worker;
use windrow::{Budget, Pool, PoolOptions};
use windrow_differential::{ArrangeRows, Context, RowArrangement};

use super::{Options, percentile};
use crate::Result;
use crate::cells::{Cells, Stopwatch};

/// The implementation of arrangements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Windrow's, joined key by key.
    Ours,
    /// Windrow's, joined by cursors that pin visited chunks.
    Cursors,
    OrdVal,
    VecChunk,
    ColChunk,
}

const RIVALS: [Side; 4] = [Side::Cursors, Side::OrdVal, Side::VecChunk, Side::ColChunk];

/// Updates of the rounds measured for latency, and the number of such rounds.
const SMALL_ROUNDS: [usize; 4] = [1, 10, 100, 1_000];
const TIMES: usize = 300;

struct Workload<K: differential_026::Data> {
    data: InputSession<u64, (K, ()), isize>,
    keys: InputSession<u64, (K, ()), isize>,
    probe: ProbeHandle<u64>,
    time: u64,
}

impl<K: differential_026::Data> Workload<K> {
    /// Ends the round, and steps until its results are complete.
    fn end(&mut self, worker: &mut Worker) {
        self.time += 1;
        for input in [&mut self.data, &mut self.keys] {
            input.advance_to(self.time);
            input.flush();
        }
        while self.probe.less_than(&self.time) {
            worker.step();
        }
    }
}

/// Measured seconds in total, and of single rounds.
struct Figures {
    load: f64,
    query: f64,
    latencies: Vec<(usize, Vec<f64>)>,
    peak: usize,
}

macro_rules! of_keys {
    ($name:ident, $key:ty, $make:expr) => {
        mod $name {
            use super::*;

            type Columns = ColChunk<($key, (), u64, isize)>;
            type ColumnBatcher = ChunkBatcher<ContainerChunker<Columns>, Columns>;

            fn workload(worker: &mut Worker, side: Side, context: &Context) -> Workload<$key> {
                let probe = ProbeHandle::new();
                let (data, keys) = worker.dataflow::<u64, _, _>(|scope| {
                    let (data_in, data) = scope.new_collection::<($key, ()), isize>();
                    let (keys_in, keys) = scope.new_collection::<($key, ()), isize>();
                    macro_rules! joined {
                        ($batcher:ty, $spine:ty, $new:expr) => {{
                            let arranged = [data, keys].map(|collection| {
                                arrange_core::<_, _, $batcher, $spine>(
                                    collection.inner,
                                    Pipeline,
                                    "Arrange",
                                    $new,
                                )
                            });
                            let [data, keys] = arranged;
                            keys.join_core(data, |_, _, _| None::<()>).probe_with(&probe);
                        }};
                    }
                    match side {
                        Side::Ours => {
                            let data = data.arrange_rows(context);
                            let keys = keys.arrange_rows(context);
                            keys.join_rows(data, |_, _, _| None::<()>).probe_with(&probe);
                        }
                        Side::Cursors => {
                            let data = data.arrange_rows(context);
                            let keys = keys.arrange_rows(context);
                            keys.join_core(data, |_, _, _| None::<()>).probe_with(&probe);
                        }
                        Side::OrdVal => joined!(
                            OrdValBatcher<$key, (), u64, isize>,
                            OrdValSpine<$key, (), u64, isize>,
                            OrdValBatcher::new
                        ),
                        Side::VecChunk => joined!(
                            VecBatcher<$key, (), u64, isize>,
                            VecSpine<$key, (), u64, isize>,
                            VecBatcher::<$key, (), u64, isize>::new
                        ),
                        Side::ColChunk => joined!(
                            ColumnBatcher,
                            ColSpine<$key, (), u64, isize>,
                            ColumnBatcher::new
                        ),
                    }
                    (data_in, keys_in)
                });
                Workload { data, keys, probe, time: 0 }
            }

            pub(super) fn run(options: &Options, side: Side, pool: &Pool, small: bool) -> Figures {
                let (context, updates, round) = (Context::new(pool.clone()), options.updates, options.round);
                timely_032::execute_directly(move |worker| {
                    let mut work = workload(worker, side, &context);
                    let mut times = [0.0; 2];
                    for (phase, seconds) in times.iter_mut().enumerate() {
                        let watch = Stopwatch::start();
                        for first in (0..updates).step_by(round) {
                            for number in first..updates.min(first + round) {
                                // Every key once, in no order.
                                let number = number.wrapping_mul(7_919) % updates;
                                let input = [&mut work.data, &mut work.keys].into_iter().nth(phase);
                                let key = ($make)(number);
                                input.into_iter().for_each(|input| input.insert((key.clone(), ())));
                            }
                            work.end(worker);
                        }
                        *seconds = watch.seconds();
                    }
                    let mut latencies = Vec::new();
                    for each in SMALL_ROUNDS.iter().filter(|_| small) {
                        let rounds = (0..TIMES).map(|number| {
                            for update in 0..*each {
                                let key = ($make)((number * 1_000 + update) * 31 % updates);
                                work.keys.insert((key, ()));
                            }
                            let watch = Stopwatch::start();
                            work.end(worker);
                            watch.seconds()
                        });
                        latencies.push((*each, rounds.collect()));
                    }
                    let [load, query] = times;
                    Figures { load, query, latencies, peak: context.pool().budget().peak() }
                })
            }
        }
    };
}
of_keys!(text, String, |number: usize| format!("{number:?}"));
of_keys!(numbers, u64, |number: usize| number as u64);

type Run = fn(&Options, Side, &Pool, bool) -> Figures;

/// Measures all sides with both kinds of keys.
pub(super) fn measure(options: &Options, cells: &mut Cells) -> Result<()> {
    for (name, run) in [("text", text::run as Run), ("u64", numbers::run as Run)] {
        let mut best: Vec<Option<Figures>> = (0..=RIVALS.len()).map(|_| None).collect();
        for _ in 0..options.rounds {
            for (side, best) in [Side::Ours].into_iter().chain(RIVALS).zip(&mut best) {
                let figures = run(options, side, &Pool::unlimited(), true);
                *best = Some(match best.take() {
                    Some(before) => least(before, figures),
                    None => figures,
                });
            }
        }
        let mut best: Vec<Figures> = best.into_iter().flatten().collect();
        let mut ours = best.remove(0);
        for (side, mut rival) in RIVALS.into_iter().zip(best) {
            let rival_name = format!("{side:?}");
            let each = |seconds: f64| seconds * 1e9 / options.updates as f64;
            cells.push(&format!("{name} load"), each(ours.load), &rival_name, each(rival.load));
            cells.push(&format!("{name} query"), each(ours.query), &rival_name, each(rival.query));
            for ((count, ours), (_, rival)) in ours.latencies.iter_mut().zip(&mut rival.latencies) {
                for hundredths in [50, 99] {
                    let case = format!("{name} round of {count}, p{hundredths}");
                    let (ours, rival) =
                        (percentile(ours, hundredths), percentile(rival, hundredths));
                    cells.push_in(&case, ours, &rival_name, rival, "us/round");
                }
            }
        }
        spilled(options, name, run, cells)?;
    }
    Ok(())
}

/// Compares a quarter of the memory with unlimited memory.
fn spilled(options: &Options, name: &str, run: Run, cells: &mut Cells) -> Result<()> {
    let limited = |limit| Pool::new(Budget::bytes(limit), PoolOptions::new());
    let peak = run(options, Side::Ours, &limited(4 << 30)?, false).peak;
    let (mut whole, mut quarter) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..options.rounds {
        let time = |figures: Figures| figures.load + figures.query;
        whole = whole.min(time(run(options, Side::Ours, &Pool::unlimited(), false)));
        quarter = quarter.min(time(run(options, Side::Ours, &limited(peak / 4)?, false)));
    }
    let each = |seconds: f64| seconds * 1e9 / options.updates as f64;
    let case = format!("{name} load and query, a quarter");
    cells.push(&case, each(quarter), "ours, all in memory", each(whole));
    Ok(())
}

/// Returns the lesser times of two runs.
fn least(a: Figures, b: Figures) -> Figures {
    let latencies = match a.query < b.query {
        true => a.latencies,
        false => b.latencies,
    };
    Figures { load: a.load.min(b.load), query: a.query.min(b.query), latencies, peak: a.peak }
}
