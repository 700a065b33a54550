//! An embedder's programs: a join, distances and components of numbers, changed in rounds, by the
//! CPU time of a round. The peers of a machine lengthen the time on its clock, and not by the same
//! factor for short and long rounds.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use differential_026::algorithms::graphs::bfs::bfs;
use differential_026::algorithms::graphs::scc::strongly_connected;
use differential_026::input::Input;
use differential_026::{Data, ExchangeData, VecCollection};
use rustix::time::{ClockId, clock_gettime};
use timely_032::dataflow::ProbeHandle;
use windrow::Pool;
use windrow_differential::{ArrangeRows, Context, Row, RowArrangement, algorithms};
use windrow_testdata::rng::Rng;

use super::{Inputs, Options, TURNS};
use crate::Result;
use crate::harness::{Cells, Outcome, contender};

/// A program over two collections of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Join,
    Distances,
    Components,
}

/// Programs, with the changes of a round and the number of rounds.
const CASES: [(Program, usize, usize); 7] = [
    (Program::Join, 2, 2_000),
    (Program::Join, 100, 1_000),
    (Program::Join, 1_000, 300),
    (Program::Join, 10_000, 60),
    (Program::Distances, 2, 300),
    (Program::Distances, 100, 100),
    (Program::Components, 2, 20),
];

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Adds up the hashes of a collection's updates.
fn add_up<'scope, D: Data + Hash>(
    updates: VecCollection<'scope, u64, D, isize>,
    sum: &Rc<Cell<u64>>,
    probe: &ProbeHandle<u64>,
) {
    let sum = Rc::clone(sum);
    let each = move |(data, time, diff): &(D, u64, isize)| {
        let mut hasher = DefaultHasher::new();
        (data, time).hash(&mut hasher);
        sum.set(sum.get().wrapping_add(hasher.finish().wrapping_mul(*diff as u64)));
    };
    updates.inspect(each).probe_with(probe);
}

/// Returns the CPU time of the load and of each round, and the sum of the output's hashes.
fn run<N: Row + ExchangeData + Hash + From<u32>>(
    options: &Options,
    (program, changes, rounds): (Program, usize, usize),
    ours: bool,
) -> Outcome {
    let edges = options.edges;
    timely_032::execute_directly(move |worker| {
        let (context, probe) = (Context::new(Pool::unlimited()), ProbeHandle::new());
        let sum = Rc::new(Cell::new(0));
        let inputs = worker.dataflow(|scope| {
            let (left, a) = scope.new_collection::<(N, N), isize>();
            let (right, b) = scope.new_collection::<(N, N), isize>();
            let roots = b.clone().map(|(root, _)| root);
            match (program, ours) {
                (Program::Join, true) => {
                    let b = b.arrange_rows(&context);
                    let joined =
                        a.arrange_rows(&context).join_rows(b, |_, x, y| Some((x.get(), y.get())));
                    add_up(joined, &sum, &probe);
                }
                (Program::Join, false) => {
                    let (a, b) = (a.arrange_by_key(), b.arrange_by_key());
                    add_up(a.join_core(b, |_, x, y| Some((x.clone(), y.clone()))), &sum, &probe);
                }
                (Program::Distances, true) => {
                    add_up(algorithms::bfs(a, roots, &context), &sum, &probe)
                }
                (Program::Distances, false) => add_up(bfs(a, roots), &sum, &probe),
                (Program::Components, true) => {
                    add_up(algorithms::strongly_connected(a, &context), &sum, &probe);
                }
                (Program::Components, false) => add_up(strongly_connected(a), &sum, &probe),
            }
            [left, right]
        });
        let mut work = Inputs { inputs, probe: probe.clone(), time: 0 };
        let nodes = if program == Program::Join { edges } else { edges / 4 }.max(1) as u64;
        let mut rng = Rng::new(3);
        let mut pair = || {
            let [from, to] = [(); 2].map(|()| N::from((rng.next_u64() % nodes) as u32));
            (from, to)
        };
        let mut there: Vec<(N, N)> = (0..edges).map(|_| pair()).collect();
        there.iter().for_each(|pair| work.inputs[0].insert(pair.clone()));
        if program == Program::Join {
            (0..edges).for_each(|_| work.inputs[1].insert(pair()));
        } else {
            work.inputs[1].insert((N::from(0), N::from(0)));
        }
        let mut end = |work: &mut Inputs<(N, N)>| {
            let before = cpu_seconds();
            work.end(worker);
            cpu_seconds() - before
        };
        let load = end(&mut work) * 1e3;
        let rounds = (0..rounds).map(|round| {
            for change in 0..changes / 2 {
                let (new, at) = (pair(), (round * changes + change) * 7_919 % there.len());
                work.inputs[0].insert(new.clone());
                work.inputs[0].remove(std::mem::replace(&mut there[at], new));
            }
            end(&mut work) * 1e6
        });
        let rounds = (format!(", rounds of {changes}"), "us/round", rounds.collect());
        let figures = vec![(", load".to_owned(), "CPU ms", vec![load]), rounds];
        Outcome { figures, digest: Some(sum.get()) }
    })
}

/// Measures both sides with two types of numbers.
pub(super) fn measure(options: &Options, cells: &mut Cells) -> Result<()> {
    type Side = fn(&Options, (Program, usize, usize), bool) -> Outcome;
    for (name, run) in [("u32", run::<u32> as Side), ("u64", run::<u64> as Side)] {
        for case in CASES {
            let side = |name, is_ours| contender(name, move |_, _| Ok(run(options, case, is_ours)));
            let mut sides = [side("ours", true), side("stock", false)];
            let case = format!("{:?} of {name}", case.0);
            cells.race(&case, TURNS, |_| Ok(((), 1.0)), &mut sides)?;
        }
    }
    Ok(())
}
