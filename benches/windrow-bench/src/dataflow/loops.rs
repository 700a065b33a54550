//! Distances and strongly connected components in a changing graph.

use differential_026::algorithms::graphs::bfs::bfs;
use differential_026::algorithms::graphs::scc::strongly_connected;
use differential_026::input::Input;
use timely_032::dataflow::ProbeHandle;
use windrow::Pool;
use windrow_differential::{Context, algorithms};

use super::{Options, percentiles};
use crate::Result;
use crate::cells::{Cells, Stopwatch};
use windrow_testdata::rng::Rng;

/// Rounds with one added and one removed edge.
const CHANGES: usize = 300;

/// Computes distances or components. Returns the seconds of the initial graph, and of each later round.
fn run(is_bfs: bool, edges: usize, ours: bool) -> (f64, Vec<f64>) {
    timely_032::execute_directly(move |worker| {
        let context = Context::new(Pool::unlimited());
        let probe = ProbeHandle::new();
        let (mut graph, mut roots) = worker.dataflow::<u64, _, _>(|scope| {
            let (graph, edges) = scope.new_collection::<(u32, u32), isize>();
            let (roots, nodes) = scope.new_collection::<u32, isize>();
            match (is_bfs, ours) {
                (true, true) => {
                    drop(algorithms::bfs(edges, nodes, &context).probe_with(&probe));
                }
                (true, false) => drop(bfs(edges, nodes).probe_with(&probe)),
                (false, true) => {
                    drop(algorithms::strongly_connected(edges, &context).probe_with(&probe));
                }
                (false, false) => drop(strongly_connected(edges).probe_with(&probe)),
            }
            (graph, roots)
        });
        let nodes = (edges / 4).max(1) as u64;
        let mut rng = Rng::new(3);
        let mut edge = || ((rng.next_u64() % nodes) as u32, (rng.next_u64() % nodes) as u32);
        let mut there: Vec<(u32, u32)> = (0..edges).map(|_| edge()).collect();
        roots.insert(0);
        let mut round = |changes: Vec<((u32, u32), isize)>, time: u64| {
            let watch = Stopwatch::start();
            changes.into_iter().for_each(|(edge, diff)| graph.update(edge, diff));
            graph.advance_to(time);
            graph.flush();
            roots.advance_to(time);
            roots.flush();
            while probe.less_than(&time) {
                worker.step();
            }
            watch.seconds()
        };
        let first = round(there.iter().map(|edge| (*edge, 1)).collect(), 1);
        let rounds = (0..CHANGES).map(|number| {
            let (new, at) = (edge(), number * 37 % there.len());
            let gone = std::mem::replace(&mut there[at], new);
            round(vec![(new, 1), (gone, -1)], number as u64 + 2)
        });
        (first, rounds.collect())
    })
}

/// Measures both sides.
pub(super) fn measure(options: &Options, cells: &mut Cells) -> Result<()> {
    for (name, is_bfs) in [("bfs", true), ("scc", false)] {
        let mut best = [(f64::INFINITY, Vec::new()), (f64::INFINITY, Vec::new())];
        for _ in 0..options.rounds {
            for (best, ours) in best.iter_mut().zip([true, false]) {
                let (first, rounds) = run(is_bfs, options.edges, ours);
                if first < best.0 {
                    *best = (first, rounds);
                }
            }
        }
        let [(ours, our_rounds), (stock, rounds)] = best;
        let at_once = format!("{name}, all at once");
        cells.push_in("ms", &at_once, ours * 1e3, ("stock", stock * 1e3), None);
        percentiles(cells, &format!("{name}, a round"), &our_rounds, ("stock", &rounds));
    }
    Ok(())
}
