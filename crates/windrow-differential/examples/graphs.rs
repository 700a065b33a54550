//! Programs on a random graph; all arrangements share one budget.
//!
//! ```text
//! cargo run --release -p windrow-differential --example graphs -- bfs 100000 400000 64 -w 2
//!                                                 program, nodes, edges, MiB, arguments of timely
//! ```
//! bfs: nodes by distance from node 0. scc: edges within strongly connected components. degrees:
//! nodes by number of edges. pagerank: the most visited nodes. graspan: pairs of nodes between
//! which a value flows.

use differential_dataflow::VecCollection;
use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use windrow::{Budget, Pool};
use windrow_differential::{ArrangeRows, Context, RowArrangement, RowCollection, algorithms};

type Edges<'scope> = VecCollection<'scope, u64, (u32, u32)>;

/// Lines of output with their multiplicities.
type Shown<'scope> = VecCollection<'scope, u64, String>;

/// Rounds of surfers who follow edges.
const VISITS: u64 = 20;
/// Surfers that start at each node.
const SURFERS: isize = 600_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, program, nodes, edges, limit, ..] = &arguments[..] else {
        eprintln!("graphs: bfs|scc|degrees|pagerank|graspan NODES EDGES MIB [arguments of timely]");
        std::process::exit(2);
    };
    let number =
        |text: &String| text.parse::<u64>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let (program, nodes, edges) = (program.clone(), number(nodes).max(1), number(edges));
    let budget = Budget::bytes((number(limit) as usize) << 20);
    let pool = Pool::in_dir(std::env::temp_dir(), budget).unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(pool.clone());
    timely::execute_from_args(arguments.into_iter().skip(4), move |worker| {
        let probe = ProbeHandle::new();
        let mut graph = worker.dataflow::<u64, _, _>(|scope| {
            let (graph, edges) = scope.new_collection::<(u32, u32), isize>();
            let shown = match program.as_str() {
                "bfs" => distances(edges, &context),
                "scc" => components(edges, &context),
                "degrees" => degrees(edges, &context),
                "pagerank" => ranks(edges, &context),
                "graspan" => flows(edges, &context),
                other => panic!("no program is called {other}"),
            };
            shown
                .consolidate_rows(&context)
                .inspect(|(line, _, count)| println!("{count:>12}  {line}"))
                .probe_with(&probe);
            graph
        });
        let mut state = 1u64;
        let mut node = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % nodes) as u32
        };
        for edge in 0..edges {
            let ends = (node(), node());
            if edge % worker.peers() as u64 == worker.index() as u64 {
                graph.insert(ends);
            }
        }
        graph.advance_to(1);
        graph.flush();
        while probe.less_than(&1) {
            worker.step();
        }
    })
    .unwrap_or_else(|error| panic!("{error}"));
    println!("{:?}", pool.stats());
}

fn distances<'scope>(edges: Edges<'scope>, context: &Context) -> Shown<'scope> {
    let roots = edges.clone().filter(|(from, _)| *from == 0).map(|(from, _)| from);
    let roots = roots.distinct_rows(context);
    algorithms::bfs(edges, roots, context).map(|(_, steps)| format!("nodes in {steps} steps"))
}

fn components<'scope>(edges: Edges<'scope>, context: &Context) -> Shown<'scope> {
    algorithms::strongly_connected(edges, context).map(|_| "edges within components".to_owned())
}

fn degrees<'scope>(edges: Edges<'scope>, context: &Context) -> Shown<'scope> {
    let degrees = edges.map(|(from, _)| from).count_rows(context);
    degrees.map(|(_, degree)| format!("nodes of degree {degree}"))
}

/// Surfers follow an edge five times out of six, and start anew otherwise.
fn ranks<'scope>(edges: Edges<'scope>, context: &Context) -> Shown<'scope> {
    use differential_dataflow::AsCollection;
    use differential_dataflow::operators::iterate::Iterate;
    use timely::dataflow::operators::vec::Filter;

    let nodes = edges.clone().flat_map(|(from, to)| [from, to]).distinct_rows(context);
    let degrees = edges.clone().map(|(from, _)| from).count_rows(context).arrange_rows(context);
    let ways = degrees.join_rows(edges.arrange_rows(context), |from, degree, to| {
        Some((from.get(), (degree.get(), to.get())))
    });
    let start = nodes.clone().explode(|node| Some((node, SURFERS)));
    let ranks = start.iterate(|scope, visits| {
        let ways = ways.enter(scope).arrange_rows(context);
        let moved = visits.count_rows(context).arrange_rows(context);
        let moved = moved.join_rows(ways, |_, surfers, way| {
            let (degree, to) = way.get();
            Some((to, surfers.get() * 5 / 6 / degree))
        });
        let moved = moved.explode(|(to, surfers)| Some((to, surfers)));
        let anew = nodes.enter(scope).explode(|node| Some((node, SURFERS / 6)));
        let all = moved.concat(anew).inner.filter(|(_, time, _)| time.inner < VISITS);
        all.as_collection().consolidate_rows(context)
    });
    ranks
        .count_rows(context)
        .map(|(_, visits)| format!("nodes of {} permille", visits * 1_000 / SURFERS))
}

/// Computes the transitive closure: a value flows along edges, from node to node.
fn flows<'scope>(edges: Edges<'scope>, context: &Context) -> Shown<'scope> {
    use differential_dataflow::operators::iterate::Iterate;

    let flows = edges.clone().iterate(|scope, flows| {
        let edges = edges.enter(scope);
        let onwards = edges.clone().arrange_rows(context);
        let backwards = flows.map(|(from, to)| (to, from)).arrange_rows(context);
        backwards
            .join_rows(onwards, |_, from, to| Some((from.get(), to.get())))
            .concat(edges)
            .distinct_rows(context)
    });
    flows.map(|_| "pairs that a value flows between".to_owned())
}
