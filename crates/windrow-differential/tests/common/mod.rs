//! Runs programs in all configurations (workers, memory, chunks), and compares two collections at
//! every time.
#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod records;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::difference::Abelian;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::{ExchangeData, Hashable, VecCollection};
use timely::dataflow::ProbeHandle;
use timely::progress::Timestamp;
use timely::worker::Worker;
use timely::{Config, WorkerConfig};
use windrow::{Budget, ForceSpill, Pool, PoolOptions};
use windrow_differential::Context;

/// A program that takes longer counts as hung.
const DEADLINE: Duration = Duration::from_secs(180);
/// Bytes of chunks with space for three rows of two numbers, or one or two rows of text.
const THREE_ROWS: usize = 96;
/// Bytes of small chunks: even a test's little data fills many.
const SMALL: usize = 4 << 10;

/// Rounds of updates, with several times each, so that batches cover several times.
pub(crate) const ROUNDS: u64 = 8;
pub(crate) const TIMES_A_ROUND: u64 = 3;
pub(crate) const UPDATES: u64 = 60;

/// The memory configuration of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Resident,
    /// Spilled to disk, as far as possible.
    Spilled,
    /// Within a quarter of the unlimited peak.
    Quarter,
}

/// A configuration to run a program in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) workers: usize,
    pub(crate) held: Held,
    pub(crate) chunk_bytes: Option<usize>,
}

/// Returns all configurations.
pub(crate) fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for workers in [1, 2, 4] {
        for held in [Held::Resident, Held::Spilled] {
            for chunk_bytes in [Some(THREE_ROWS), None] {
                ways.push(Way { workers, held, chunk_bytes });
            }
        }
        for chunk_bytes in [THREE_ROWS, SMALL] {
            ways.push(Way { workers, held: Held::Quarter, chunk_bytes: Some(chunk_bytes) });
        }
    }
    ways
}

fn options(chunk_bytes: Option<usize>) -> PoolOptions {
    match chunk_bytes {
        Some(bytes) => PoolOptions::new().chunk_bytes(bytes),
        None => PoolOptions::new(),
    }
}

impl Way {
    fn pool(self, limit: Option<usize>) -> Pool {
        let options = options(self.chunk_bytes);
        let pool = match (self.held, limit) {
            (_, Some(limit)) => Pool::new(Budget::bytes(limit), options),
            (Held::Spilled, None) => Pool::new(Budget::bytes(64 << 20), options.policy(ForceSpill)),
            (_, None) => Pool::new(Budget::unlimited(), options),
        };
        pool.unwrap()
    }

    /// Runs `program` in this configuration. The sum of its results over the workers must not be
    /// zero, and no memory may be in use afterwards. If the program `keeps` data, a spilled
    /// configuration must spill.
    pub(crate) fn run<P>(self, program: &Arc<P>, keeps: bool)
    where
        P: Fn(&mut Worker, &Context) -> usize + Send + Sync + 'static,
    {
        println!("{self:?}");
        let limit = (self.held == Held::Quarter).then(|| {
            let pool = self.pool(Some(256 << 20));
            execute(self.workers, &Context::new(pool.clone()), program);
            pool.budget().peak() / 4
        });
        let pool = self.pool(limit);
        execute(self.workers, &Context::new(pool.clone()), program);
        // A spill thread may still hold a page.
        pool.wait_for_spills();
        pool.release();
        assert_eq!(pool.budget().used(), 0, "{self:?}: memory is held after all is gone");
        // With few rows, only whole chunks spill.
        if keeps && self.held == Held::Spilled && self.chunk_bytes.is_some() {
            assert!(pool.stats().spilled_bytes > 0, "{self:?}: nothing was spilled");
        }
    }
}

/// Runs `program` in all configurations.
pub(crate) fn in_all_ways<P>(program: P)
where
    P: Fn(&mut Worker, &Context) -> usize + Send + Sync + 'static,
{
    let program = Arc::new(program);
    ways().into_iter().for_each(|way| way.run(&program, true));
}

/// As [`in_all_ways`], for a program without data at rest, which need not spill.
pub(crate) fn passing_in_all_ways<P>(program: P)
where
    P: Fn(&mut Worker, &Context) -> usize + Send + Sync + 'static,
{
    let program = Arc::new(program);
    ways().into_iter().for_each(|way| way.run(&program, false));
}

fn execute<P>(workers: usize, context: &Context, program: &Arc<P>)
where
    P: Fn(&mut Worker, &Context) -> usize + Send + Sync + 'static,
{
    let seen = Arc::new(AtomicUsize::new(0));
    let (context, program, seen_by_all) = (context.clone(), Arc::clone(program), Arc::clone(&seen));
    let config = match workers {
        1 => Config::thread(),
        workers => Config::process(workers),
    };
    let _ = WorkerConfig::default();
    let guards = timely::execute(config, move |worker| {
        let seen = program(worker, &context);
        seen_by_all.fetch_add(seen, Ordering::Relaxed);
    });
    guards.unwrap().join().into_iter().for_each(|result| result.unwrap());
    assert!(seen.load(Ordering::Relaxed) > 0, "a program that shows nothing proves nothing");
}

/// Runs a program over two collections of generated updates, in all configurations.
pub(crate) fn over_two<D: ExchangeData>(
    update: impl Fn(&mut Numbers) -> D + Send + Sync + 'static,
    program: impl for<'scope> Fn(
        &Context,
        [VecCollection<'scope, u64, D, isize>; 2],
        &Rc<Cell<usize>>,
        &mut ProbeHandle<u64>,
    ) + Send
    + Sync
    + 'static,
) {
    in_all_ways(move |worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (a, some) = scope.new_collection();
            let (b, others) = scope.new_collection();
            program(context, [some, others], &seen, &mut probe);
            [a, b]
        });
        feed(worker, &mut inputs, &probe, &update);
        seen.get()
    });
}

/// Feeds each worker its share of random updates, and runs the dataflow to the end of each round.
pub(crate) fn feed<D: differential_dataflow::Data>(
    worker: &mut Worker,
    inputs: &mut [InputSession<u64, D, isize>],
    probe: &ProbeHandle<u64>,
    update: impl Fn(&mut Numbers) -> D,
) {
    let (index, peers) = (worker.index() as u64, worker.peers() as u64);
    let mut numbers = Numbers(42);
    let mut there: Vec<Vec<D>> = inputs.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        let base = round * TIMES_A_ROUND;
        for number in 0..UPDATES {
            let time = base + numbers.below(TIMES_A_ROUND);
            for (input, there) in inputs.iter_mut().zip(&mut there) {
                // Half of the updates remove an existing row, so that much cancels.
                let (data, diff) = match numbers.below(2) {
                    0 if !there.is_empty() => {
                        (there.swap_remove(numbers.below(there.len() as u64) as usize), -1)
                    }
                    _ => {
                        let data = update(&mut numbers);
                        there.push(data.clone());
                        (data, 1)
                    }
                };
                if number % peers == index {
                    input.update_at(data, time, diff);
                }
            }
        }
        for input in &mut *inputs {
            input.advance_to(base + TIMES_A_ROUND);
            input.flush();
        }
        step_until(worker, || !probe.less_than(&(base + TIMES_A_ROUND)));
    }
}

/// Compares two collections at every time, and counts the updates of the first.
pub(crate) fn same<'scope, D, T, R>(
    stock: VecCollection<'scope, T, D, R>,
    ours: VecCollection<'scope, T, D, R>,
    seen: &Rc<Cell<usize>>,
    probe: &mut ProbeHandle<T>,
) where
    D: ExchangeData + Hashable,
    T: Timestamp + Lattice,
    R: ExchangeData + Abelian + Hashable,
{
    let seen = Rc::clone(seen);
    stock
        .consolidate()
        .inspect(move |_| seen.set(seen.get() + 1))
        .concat(ours.negate())
        .consolidate()
        .inspect(|difference| panic!("differs: {difference:?}"))
        .probe_with(probe);
}

/// Steps until `done` returns true.
pub(crate) fn step_until(worker: &mut Worker, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        worker.step();
        assert!(start.elapsed() < DEADLINE, "the program hangs");
    }
}

/// A deterministic pseudo-random generator.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

/// Consolidates updates.
pub(crate) fn tidy<D: Ord, T: Ord + Clone, R: differential_dataflow::difference::Semigroup>(
    mut updates: Vec<(D, T, R)>,
) -> Vec<(D, T, R)> {
    consolidate_updates(&mut updates);
    updates
}

/// Returns a figure of the process in bytes, on systems with `/proc`.
pub(crate) fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}
