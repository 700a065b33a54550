//! Loops with nested times, compared with differential's own algorithms at every time, in every
//! configuration.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::{Numbers, in_all_ways, same, step_until};
use differential_dataflow::VecCollection;
use differential_dataflow::algorithms::graphs::{bfs::bfs, scc::strongly_connected};
use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use windrow_differential::{Context, algorithms};

type Edges<'scope> = VecCollection<'scope, u64, (u32, u32), isize>;

/// Runs `program` over a graph that changes: many edges at once, then a few a round.
fn over_graphs(
    program: impl for<'scope> Fn(
        &Context,
        Edges<'scope>,
        VecCollection<'scope, u64, u32, isize>,
        &Rc<Cell<usize>>,
        &mut ProbeHandle<u64>,
    ) + Send
    + Sync
    + 'static,
) {
    in_all_ways(move |worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let (mut graph, mut roots) = worker.dataflow::<u64, _, _>(|scope| {
            let (graph, edges) = scope.new_collection();
            let (roots, nodes) = scope.new_collection();
            program(context, edges, nodes, &seen, &mut probe);
            (graph, roots)
        });
        let (mut numbers, mut edges) = (Numbers(7), Vec::new());
        for round in 0..6u64 {
            for _ in 0..if round == 0 { 40 } else { 5 } {
                let edge = (numbers.below(20) as u32, numbers.below(20) as u32);
                edges.push(edge);
                let gone = (numbers.below(3) == 0).then(|| {
                    let at = numbers.below(edges.len() as u64) as usize;
                    edges.swap_remove(at)
                });
                // Only one worker has input, so rows must be exchanged.
                if worker.index() == 0 {
                    graph.update(edge, 1);
                    gone.into_iter().for_each(|gone| graph.update(gone, -1));
                }
            }
            if worker.index() == 0 && round.is_multiple_of(2) {
                roots.update(round as u32, 1);
            }
            graph.advance_to(round + 1);
            graph.flush();
            roots.advance_to(round + 1);
            roots.flush();
            step_until(worker, || !probe.less_than(&(round + 1)));
        }
        seen.get()
    });
}

#[test]
fn distances() {
    over_graphs(|context, edges, roots, seen, probe| {
        let ours = algorithms::bfs(edges.clone(), roots.clone(), context);
        same(bfs(edges, roots), ours, seen, probe);
    });
}

#[test]
fn strongly_connected_components() {
    over_graphs(|context, edges, _roots, seen, probe| {
        let ours = algorithms::strongly_connected(edges.clone(), context);
        same(strongly_connected(edges), ours, seen, probe);
    });
}
