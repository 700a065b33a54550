//! Arranged keys, joined with looked-up keys.

use differential_026::batcher::merge::chunker::ContainerChunker;
use differential_026::columnar::trace::{ColChunk, Spine as ColSpine};
use differential_026::input::Input;
use differential_026::operators::arrange::arrangement::arrange_core;
use differential_026::trace::chunk::ChunkBatcher;
use differential_026::trace::chunk::vec::{ChunkBatcher as VecBatcher, ChunkSpine as VecSpine};
use differential_026::trace::implementations::ord_neu::{
    OrdKeyBatcher, OrdKeySpine, OrdValBatcher, OrdValSpine, VecOrdValBuilder,
};
use timely_032::dataflow::ProbeHandle;
use timely_032::dataflow::channels::pact::Pipeline;
use timely_032::worker::Worker;
use windrow::{Budget, Pool, PoolOptions};
use windrow_differential::{ArrangeRows, Context, RowArrangement, RowSorter};

use super::rest::resident;
use super::{Inputs, Options, TURNS};
use crate::Result;
use crate::harness::{Cells, Figure, Outcome, Stopwatch, contender};

/// The implementation of arrangements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Windrow's, joined key by key.
    Ours,
    /// Windrow's, joined by cursors that pin visited chunks.
    Cursors,
    /// Windrow's batcher, and the rival's builder and trace.
    Sorter,
    /// Only measured at rest.
    OrdKey,
    OrdVal,
    VecChunk,
    ColChunk,
}

const SIDES: [Side; 6] =
    [Side::Ours, Side::Cursors, Side::Sorter, Side::OrdVal, Side::VecChunk, Side::ColChunk];

/// Updates of the rounds measured for latency, and the number of such rounds.
const SMALL_ROUNDS: [usize; 4] = [1, 10, 100, 1_000];
const TIMES: usize = 300;

/// What a run measures.
pub(super) struct Figures {
    /// Seconds of all updates and of all look-ups.
    times: [f64; 2],
    /// Microseconds of single rounds of so many look-ups.
    latencies: Vec<(usize, Vec<f64>)>,
    peak: usize,
    /// Bytes that the process took while it loaded.
    pub(super) grown: Option<f64>,
}

/// The measured phases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phases {
    Load,
    Query,
    SmallRounds,
}

macro_rules! of_keys {
    ($name:ident, $key:ty, $make:expr) => {
        pub(super) mod $name {
            use super::*;

            type Columns = ColChunk<($key, (), u64, isize)>;
            type ColumnBatcher = ChunkBatcher<ContainerChunker<Columns>, Columns>;

            fn inputs(
                worker: &mut Worker,
                side: Side,
                context: &Context,
            ) -> Inputs<($key, ())> {
                let probe = ProbeHandle::new();
                let inputs = worker.dataflow::<u64, _, _>(|scope| {
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
                        Side::Sorter => joined!(
                            RowSorter<_, _, _, _, VecOrdValBuilder<$key, (), u64, isize>>,
                            OrdValSpine<$key, (), u64, isize>,
                            |_, _| RowSorter::new(context)
                        ),
                        Side::OrdKey => joined!(
                            OrdKeyBatcher<$key, u64, isize>,
                            OrdKeySpine<$key, u64, isize>,
                            OrdKeyBatcher::new
                        ),
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
                    [data_in, keys_in]
                });
                Inputs { inputs, probe, time: 0 }
            }

            pub(in super::super) fn run(
                options: &Options,
                side: Side,
                pool: &Pool,
                phases: Phases,
            ) -> Figures {
                let (context, updates, round) = (Context::new(pool.clone()), options.updates, options.round);
                timely_032::execute_directly(move |worker| {
                    let mut work = inputs(worker, side, &context);
                    let (mut times, before, mut grown) = ([0.0; 2], resident(), None);
                    for (phase, seconds) in times.iter_mut().enumerate() {
                        let watch = Stopwatch::start();
                        for first in (0..updates).step_by(round) {
                            for number in first..updates.min(first + round) {
                                // Every key once, in no order.
                                let number = number.wrapping_mul(7_919) % updates;
                                work.inputs[phase].insert((($make)(number), ()));
                            }
                            work.end(worker);
                        }
                        *seconds = watch.seconds();
                        if phases == Phases::Load {
                            // Merges continue without input.
                            (0..1_000).for_each(|_| _ = worker.step());
                            context.pool().release();
                            grown = resident().zip(before).map(|(now, before)| now - before);
                            break;
                        }
                    }
                    let mut latencies = Vec::new();
                    for each in SMALL_ROUNDS.iter().filter(|_| phases == Phases::SmallRounds) {
                        let rounds = (0..TIMES).map(|number| {
                            for update in 0..*each {
                                let key = ($make)((number * 1_000 + update) * 31 % updates);
                                work.inputs[1].insert((key, ()));
                            }
                            let watch = Stopwatch::start();
                            work.end(worker);
                            watch.seconds() * 1e6
                        });
                        latencies.push((*each, rounds.collect()));
                    }
                    let peak = context.pool().budget().peak();
                    Figures { times, latencies, peak, grown }
                })
            }
        }
    };
}
of_keys!(text, String, |number: usize| format!("{number:?}"));
of_keys!(numbers, u64, |number: usize| number as u64);

pub(super) type Run = fn(&Options, Side, &Pool, Phases) -> Figures;

/// Measures all sides with both kinds of keys, and a quarter of the memory beside unlimited memory.
pub(super) fn measure(options: &Options, cells: &mut Cells) -> Result<()> {
    let unlimited = Pool::unlimited;
    let limited = |limit| Pool::new(Budget::bytes(limit), PoolOptions::new());
    let fresh = |_| Ok(((), options.updates as f64));
    for (name, run) in [("text", text::run as Run), ("u64", numbers::run as Run)] {
        let side = |side: Side| {
            let name = if side == Side::Ours { "ours".into() } else { format!("{side:?}") };
            contender(name, move |_, _| {
                let Figures { times: [load, query], latencies, .. } =
                    run(options, side, &unlimited(), Phases::SmallRounds);
                let rounds = |(count, times)| (format!(" round of {count}"), "us/round", times);
                let mut figures: Vec<Figure> = latencies.into_iter().map(rounds).collect();
                figures.push((" load".to_owned(), "", vec![load]));
                figures.push((" query".to_owned(), "", vec![query]));
                Ok(Outcome { figures, digest: None })
            })
        };
        cells.race(name, TURNS, fresh, &mut SIDES.map(side))?;
        let peak = run(options, Side::Ours, &limited(4 << 30)?, Phases::Query).peak;
        let within = |name: &str, limit: Option<usize>| {
            contender(name, move |_, _| {
                let pool = limit.map_or(Ok(unlimited()), limited)?;
                Ok(run(options, Side::Ours, &pool, Phases::Query).times.iter().sum::<f64>())
            })
        };
        let mut both = [within("ours", Some(peak / 4)), within("ours, all in memory", None)];
        cells.race(&format!("{name} load and query, a quarter"), TURNS, fresh, &mut both)?;
    }
    Ok(())
}
