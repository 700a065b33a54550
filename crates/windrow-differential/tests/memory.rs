//! Arranges, joins and reduces several times as many bytes as the limit. Leases must stay within
//! the limit; the resident memory must stay within leases and the dataflow's own memory. The
//! program runs itself as child processes, since peaks are per process.

mod common;

use std::cell::Cell;
use std::process::{Command, ExitCode};
use std::rc::Rc;

use common::status;
use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use windrow::{Budget, Pool};
use windrow_differential::{ArrangeRows, Context, RowArrangement, algorithms};

/// Bytes that arrangements may take.
const LIMIT: usize = 16 << 20;
/// Rows of 32 bytes: four times the limit, and the same again for the output of the reduction.
const ROWS: u64 = 2 << 20;
/// Number of nodes found by the search.
const REACHED: usize = 10_000;
/// Rows inserted between two steps of the dataflow.
const AT_ONCE: u64 = 20_000;
/// The join outputs one key in `SHOWN`.
const SHOWN: u64 = 1_000;
/// Bytes by which leases may exceed the limit: two chunks without which a job cannot proceed.
const BEYOND_LIMIT: usize = 256 << 10;
/// Bytes outside leases: the ends of chunks, and free memory that the allocator retains.
const BESIDE: usize = 4 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("--list") => {
            println!("memory: test");
            ExitCode::SUCCESS
        }
        Some("child") => child(&arguments[2], arguments[3].parse().unwrap()),
        _ => parent(),
    }
}

/// Runs a program with `rows` rows and prints its peaks.
fn child(program: &str, rows: u64) -> ExitCode {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(LIMIT)).unwrap();
    if program == "loop" {
        assert_eq!(reached(&pool, rows), REACHED);
    } else {
        let shown = rows.div_ceil(SHOWN) as usize;
        assert_eq!(run(&pool, rows), (shown, rows * (rows - 1) / 2));
    }
    let stats = pool.stats();
    if rows == ROWS {
        assert!(stats.spilled_bytes > 3 * LIMIT, "{stats:?}");
    }
    // A spill thread may hold the last reference to a page.
    pool.wait_for_spills();
    pool.release();
    assert_eq!(pool.budget().used(), 0, "memory is held after all is gone");
    println!("{} {}", stats.peak_leased, status("VmHWM:").unwrap_or(0));
    ExitCode::SUCCESS
}

/// Returns the peaks of a program with `rows` rows: leased bytes, and resident bytes as counted by
/// the kernel.
fn peaks(program: &str, rows: u64) -> [usize; 2] {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", program, &rows.to_string()])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(child.stdout).unwrap(), String::from_utf8(child.stderr));
    assert!(child.status.success(), "{out}{err:?}");
    let mut figures = out.split_whitespace().map(|figure| figure.parse().unwrap());
    [figures.next().unwrap(), figures.next().unwrap()]
}

fn parent() -> ExitCode {
    for program in ["reduce", "loop"] {
        // `AT_ONCE` rows suffice for the dataflow's own memory to reach its full size.
        let [few_leased, floor] = peaks(program, AT_ONCE);
        let [leased, resident] = peaks(program, ROWS);
        println!(
            "{program}: leased {leased} of {LIMIT}, resident {resident}; with few rows {few_leased}, {floor}"
        );
        assert!(leased <= LIMIT + BEYOND_LIMIT, "leases pass the limit: {leased}");
        let own = floor.saturating_sub(few_leased);
        let most = own + LIMIT + BEYOND_LIMIT + BESIDE;
        assert!(resident <= most, "{resident} resident, {own} without");
    }
    ExitCode::SUCCESS
}

/// Searches a graph of `edges` edges and returns the number of nodes found. The found nodes form a
/// tree, spread over the key range. The arrangement of the edges enters the loop.
fn reached(pool: &Pool, edges: u64) -> usize {
    let context = Context::new(pool.clone());
    timely::execute_directly(move |worker| {
        let found = Rc::new(Cell::new(0));
        let (seen, probe) = (Rc::clone(&found), ProbeHandle::new());
        let (mut graph, mut roots) = worker.dataflow::<u64, _, _>(|scope| {
            let (graph, edges) = scope.new_collection::<(u64, u64), isize>();
            let (roots, nodes) = scope.new_collection::<u64, isize>();
            algorithms::bfs(edges, nodes, &context)
                .inspect(move |(_, _, diff)| seen.set(seen.get() + *diff as usize))
                .probe_with(&probe);
            (graph, roots)
        });
        for number in 1..edges {
            let from = if number < REACHED as u64 { number / 2 } else { edges + number };
            graph.insert((key(from), key(number)));
            if number.is_multiple_of(AT_ONCE) {
                graph.flush();
                worker.step();
            }
        }
        roots.insert(key(0));
        graph.advance_to(1);
        graph.flush();
        roots.advance_to(1);
        roots.flush();
        while probe.less_than(&1) {
            worker.step();
        }
        found.get()
    })
}

fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Arranges `rows` numbers, reduces them, and joins them with the reduction. Returns the number of
/// rows output by the join, and the sum over the reduction.
fn run(pool: &Pool, rows: u64) -> (usize, u64) {
    let context = Context::new(pool.clone());
    timely::execute_directly(move |worker| {
        let (joined, sum) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (seen, total) = (Rc::clone(&joined), Rc::clone(&sum));
        let probe = ProbeHandle::new();
        let mut many = worker.dataflow::<u64, _, _>(|scope| {
            let (many, numbers) = scope.new_collection::<(u64, u64), isize>();
            let numbers = numbers.arrange_rows(&context);
            let sums = numbers.clone().reduce_rows(&context, |_, values, out| {
                let sum = values.iter().map(|(value, _)| value.get()).sum::<u64>();
                out.push((sum, 1isize));
            });
            numbers
                .join_rows(sums.clone(), |_, value, sum| {
                    assert_eq!(value, sum);
                    value.get().is_multiple_of(SHOWN).then_some(())
                })
                .inspect(move |(_, _, diff)| seen.set(seen.get() + *diff as usize))
                .probe_with(&probe);
            sums.map_rows(|_, sum| sum.get())
                .inspect(move |(sum, _, diff)| total.set(total.get() + sum * *diff as u64))
                .probe_with(&probe);
            many
        });
        let mut time = 0;
        for first in (0..rows).step_by(AT_ONCE as usize) {
            for number in first..rows.min(first + AT_ONCE) {
                // Each key once, in random order.
                many.insert((key(number), number));
            }
            // Two times, each with half of the rows.
            time = u64::from(first > rows / 2);
            many.advance_to(time);
            many.flush();
            worker.step();
        }
        many.advance_to(time + 1);
        many.flush();
        while probe.less_than(&(time + 1)) {
            worker.step();
        }
        (joined.get(), sum.get())
    })
}
