//! The program `degrees` of differential-dataflow with two lines changed: how many nodes of a
//! random graph have how many edges, kept up to date while edges come and go.
//!
//! ```text
//! cargo run --release -p windrow-differential --example degrees -- 1000000 5000000 64 -w 2
//!                                                   nodes, edges, MiB, arguments of timely
//!
//! -    let degrees = edges.map(|(from, _to)| from).count_total();
//! +    let degrees = edges.map(|(from, _to)| from).count_rows(&context);
//! -    let shares = degrees.map(|(_node, degree)| degree).count_total();
//! +    let shares = degrees.map(|(_node, degree)| degree).count_rows(&context);
//! ```
//! The changed lines arrange edges and degrees in one budget, on disk where they exceed it.

use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use windrow::{Budget, Pool};
use windrow_differential::{Context, RowCollection};

/// Rounds of changes after the load, and edges that come and go in each.
const ROUNDS: u64 = 3;
const CHANGES: u64 = 1_000;

/// Returns a node that depends on `number` alone.
fn node(number: u64, nodes: u64) -> u32 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32 % nodes as u32
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> u64 {
        let given = arguments.next().and_then(|text| text.parse().ok());
        given.unwrap_or_else(|| panic!("degrees NODES EDGES MIB [arguments of timely]: {name}"))
    };
    let (nodes, edges) = (number("nodes").max(1), number("edges").max(CHANGES));
    let budget = Budget::bytes((number("MiB") as usize) << 20);
    let pool = Pool::in_dir(std::env::temp_dir(), budget).unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(pool);
    let done = timely::execute_from_args(arguments, move |worker| {
        let probe = ProbeHandle::new();
        let mut input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, edges) = scope.new_collection::<(u32, u32), isize>();
            let degrees = edges.map(|(from, _to)| from).count_rows(&context);
            let shares = degrees.map(|(_node, degree)| degree).count_rows(&context);
            shares
                .inspect(|((degree, nodes), time, diff)| {
                    println!("at {time}: {diff:+} ({nodes} nodes of degree {degree})");
                })
                .probe_with(&probe);
            input
        });
        let (index, peers) = (worker.index() as u64, worker.peers() as u64);
        let edge = |number: u64| (node(2 * number, nodes), node(2 * number + 1, nodes));
        let of_worker = |number: &u64| number % peers == index;
        for time in 0..=ROUNDS {
            let new = edges + (time.max(1) - 1) * CHANGES..edges + time * CHANGES;
            let new = if time == 0 { 0..edges } else { new };
            for number in new.filter(of_worker) {
                input.insert(edge(number));
                if time > 0 {
                    input.remove(edge(number - edges));
                }
            }
            input.advance_to(time + 1);
            input.flush();
            while probe.less_than(&(time + 1)) {
                worker.step();
            }
        }
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}
