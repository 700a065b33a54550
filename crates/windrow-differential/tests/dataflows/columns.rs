//! Compares record batches with Rust values in differential's own traces: equal results at every
//! time, in every configuration.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::common::records::{
    Bought, Edge, Measured, Order, Person, Record, Total, columns_of, rows_of,
};
use crate::common::{
    self, Numbers, ROUNDS, TIMES_A_ROUND, feed, in_all_ways, over_two, same, step_until,
};
use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::Iterate;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::worker::Worker;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::UInt32Type;
use windrow::arrow_array::{RecordBatch, UInt32Array};
use windrow_differential::{Changes, Context, count, left, max, min, right, sum};

type Rows<'scope, D> = VecCollection<'scope, u64, D, isize>;
type Seen = Rc<Cell<usize>>;

fn an_order(numbers: &mut Numbers) -> Order {
    let user = (numbers.below(9) > 0).then(|| numbers.below(20) as i64 - 5);
    let amount = i128::from(numbers.below(4) as i64 * 1_999 - 2_500);
    let note = match numbers.below(4) {
        0 => None,
        1 => Some(String::new()),
        _ => Some("ü".repeat(numbers.below(3) as usize + 1)),
    };
    let tags = (0..numbers.below(3)).map(|_| numbers.below(3) as i32 - 1).collect();
    (user, amount, numbers.below(3) as i64 - 1, note, tags)
}

fn a_person(numbers: &mut Numbers) -> Person {
    let id = (numbers.below(9) > 0).then(|| numbers.below(20) as i64 - 5);
    let house = (numbers.below(3) > 0).then(|| numbers.below(3) as i32);
    (id, "name".repeat(numbers.below(4) as usize), ("Bonn".to_owned(), house))
}

/// Runs a program over orders and people.
fn over_orders(
    program: impl for<'scope> Fn(
        &Context,
        Rows<'scope, Order>,
        Rows<'scope, Person>,
        &Seen,
        &mut ProbeHandle<u64>,
    ) + Send
    + Sync
    + 'static,
) {
    in_all_ways(move |worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let (orders, people) = worker.dataflow::<u64, _, _>(|scope| {
            let (orders_in, orders) = scope.new_collection();
            let (people_in, people) = scope.new_collection();
            program(context, orders, people, &seen, &mut probe);
            (orders_in, people_in)
        });
        feed_both(worker, orders, people, &probe);
        seen.get()
    });
}

/// Feeds both inputs; a round of both ends before the next begins.
fn feed_both(
    worker: &mut Worker,
    orders: InputSession<u64, Order, isize>,
    people: InputSession<u64, Person, isize>,
    probe: &ProbeHandle<u64>,
) {
    // Each input has its own list of live rows.
    let (mut orders, mut people) = (orders, people);
    let (index, peers) = (worker.index() as u64, worker.peers() as u64);
    let mut numbers = Numbers(7);
    let (mut bought, mut known) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let base = round * TIMES_A_ROUND;
        for number in 0..60 {
            let time = base + numbers.below(TIMES_A_ROUND);
            let is_ours = number % peers == index;
            let (order, diff) = change(&mut bought, &mut numbers, an_order);
            let (person, sign) = change(&mut known, &mut numbers, a_person);
            if is_ours {
                orders.update_at(order, time, diff);
                people.update_at(person, time, sign);
            }
        }
        let end = base + TIMES_A_ROUND;
        orders.advance_to(end);
        orders.flush();
        people.advance_to(end);
        people.flush();
        step_until(worker, || !probe.less_than(&end));
    }
}

/// Returns a new row with 1, or removes a live row and returns it with -1.
fn change<D: Clone>(
    there: &mut Vec<D>,
    numbers: &mut Numbers,
    new: impl Fn(&mut Numbers) -> D,
) -> (D, isize) {
    if numbers.below(2) == 0 && !there.is_empty() {
        return (there.swap_remove(numbers.below(there.len() as u64) as usize), -1);
    }
    there.push(new(numbers));
    (there[there.len() - 1].clone(), 1)
}

#[test]
fn joins() {
    over_orders(|context, orders, people, seen, probe| {
        let by_user = columns_of(orders.clone()).arrange_by(context, ["user"]).unwrap();
        let by_id = columns_of(people.clone()).arrange_by(context, ["id"]).unwrap();
        let names = ["name", "amount", "tags", "address"];
        let ours = by_user.clone().join_rows(by_id.clone(), names).unwrap();
        let of =
            |order: Order, person: Person| -> Bought { (person.1, order.1, order.4, person.2) };
        let stock = orders
            .map(|order| (order.0, order))
            .join_map(people.map(|person| (person.0, person)), move |_, order, person| {
                of(order.clone(), person.clone())
            });
        same(stock.clone(), rows_of(ours), seen, probe);
        // The join with sides swapped; each column names its side.
        let picks = [left("name"), right("amount"), right("tags"), left("address")];
        let ours = by_id.join_rows(by_user, picks).unwrap();
        same(stock, rows_of(ours), seen, probe);
    });
}

#[test]
fn keys_of_several_columns_and_directions() {
    over_orders(|context, orders, _, seen, probe| {
        let key = [windrow::desc("note").nulls_first(), windrow::asc("amount")];
        let ours = columns_of(orders.clone()).arrange_by(context, key.clone()).unwrap();
        let again = columns_of(orders.clone()).arrange_by(context, key).unwrap();
        let columns = [left("user"), left("amount"), left("at"), "note".into(), right("tags")];
        let ours = ours.join_rows(again, columns).unwrap();
        let keyed = orders.map(|order| ((order.3.clone(), order.1), order));
        let stock = keyed.clone().join_map(keyed, |(note, amount), a, b| -> Order {
            (a.0, *amount, a.2, note.clone(), b.4.clone())
        });
        same(stock, rows_of(ours), seen, probe);
    });
}

#[test]
fn reductions() {
    over_orders(|context, orders, _, seen, probe| {
        let totals = columns_of(orders.clone())
            .arrange_by(context, ["user"])
            .unwrap()
            .reduce_columns([
                count(),
                sum("amount"),
                min("at").named("first"),
                max("note"),
                min("tags"),
            ])
            .unwrap();
        let stock = orders
            .map(|order| (order.0, order))
            .reduce(|_, orders, out| {
                let count: isize = orders.iter().map(|(_, n)| *n).sum();
                let sum: i128 = orders.iter().map(|(order, n)| order.1 * *n as i128).sum();
                let first = orders.iter().map(|(order, _)| order.2).min().unwrap();
                let note = orders.iter().filter_map(|(order, _)| order.3.clone()).max();
                let tags = orders.iter().map(|(order, _)| order.4.clone()).min().unwrap();
                out.push(((count as i64, sum, first, note, tags), 1));
            })
            .map(|(user, (count, sum, first, note, tags))| -> Total {
                (user, count, sum, first, note, tags)
            });
        same(stock, rows_of(totals.changes()), seen, probe);
    });
}

#[test]
fn floats_and_nulls_alone() {
    in_all_ways(|worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (input, measured) = scope.new_collection::<Measured, isize>();
            let by_city = columns_of(measured.clone()).arrange_by(context, "city").unwrap();
            // Multiplicities may be negative.
            let stock = |of: fn(&[(i64, i64)]) -> i64| {
                measured.clone().reduce(move |_, values, out| {
                    let values =
                        values.iter().filter_map(|(value, n)| Some(((**value)?, *n as i64)));
                    let values: Vec<_> = values.collect();
                    out.push(((!values.is_empty()).then(|| of(&values)), 1));
                })
            };
            let ours = |aggregate| by_city.clone().reduce_columns([aggregate]).unwrap().changes();
            let sums = stock(|all| all.iter().map(|(value, n)| value * n).sum());
            same(sums, rows_of::<Measured, _>(ours(sum("degrees"))), &seen, &mut probe);
            let least = stock(|all| all.iter().map(|(value, _)| *value).min().unwrap());
            same(least, rows_of::<Measured, _>(ours(min("degrees"))), &seen, &mut probe);
            let greatest = stock(|all| all.iter().map(|(value, _)| *value).max().unwrap());
            same(greatest, rows_of::<Measured, _>(ours(max("degrees"))), &seen, &mut probe);
            [input]
        });
        feed(worker, &mut inputs, &probe, |numbers| {
            let degrees = (numbers.below(2) == 0).then(|| numbers.below(7) as i64 - 3);
            ("city".repeat(numbers.below(12) as usize), degrees)
        });
        seen.get()
    });
}

/// Runs a program over two graphs.
fn over_graphs(
    program: impl for<'scope> Fn(&Context, [Rows<'scope, Edge>; 2], &Seen, &mut ProbeHandle<u64>)
    + Send
    + Sync
    + 'static,
) {
    let node = |numbers: &mut Numbers| numbers.below(12) as u32;
    over_two(move |numbers| (node(numbers), node(numbers)), program);
}

#[test]
fn sums_and_differences_of_collections() {
    over_graphs(|context, [edges, others], seen, probe| {
        let (a, b) = (columns_of(edges.clone()), columns_of(others.clone()));
        let ours = a.clone().concat(b.clone().negate()).unwrap().consolidate(context).unwrap();
        let stock = edges.clone().concat(others.clone().negate()).consolidate();
        same(stock, rows_of(ours), seen, probe);
        let ours = a.concat(b).unwrap().distinct(context).unwrap();
        same(edges.concat(others).distinct(), rows_of(ours), seen, probe);
    });
}

/// Replaces the columns by those of edges.
fn as_edges(batch: &RecordBatch, to: UInt32Array) -> RecordBatch {
    let from = Arc::clone(batch.column(0));
    RecordBatch::try_new(Edge::schema(), vec![from, Arc::new(to)]).unwrap()
}

#[test]
fn distances_in_a_loop() {
    over_graphs(|context, [edges, roots], seen, probe| {
        let roots = roots.map(|(root, _)| (root, 0)).distinct();
        let by_from = columns_of(edges.clone());
        let starts = columns_of(roots.clone());
        let ours = starts.clone().iterate(|scope, reached| {
            let edges = by_from.enter(scope).arrange_by(context, "from")?;
            let reached = reached.arrange_by(context, "from")?;
            let further = reached.join_rows(edges, [right("to").named("from"), left("to")])?;
            let further = further.map_batches(&Edge::schema(), |batch| {
                let steps = batch.column(1).as_primitive::<UInt32Type>();
                Ok(as_edges(&batch, steps.unary(|steps| steps + 1)))
            });
            let least = further.concat(starts.enter(scope))?.arrange_by(context, "from")?;
            Ok(least.reduce_columns([min("to").named("to")])?.changes())
        });
        let stock = roots.clone().iterate(|scope, reached| {
            reached
                .join_map(edges.enter(scope), |_, steps, to| (*to, steps + 1))
                .concat(roots.enter(scope))
                .reduce(|_, steps, out| out.push((*steps[0].0, 1)))
        });
        same(stock, rows_of(ours.unwrap()), seen, probe);
    });
}

#[test]
fn what_is_taken_away_in_a_loop() {
    // Reachability along edges outside of the second graph. The iteration starts from an empty
    // collection: removed edges could otherwise circulate in a cycle forever.
    over_graphs(|context, [edges, others], seen, probe| {
        let distinct = |edges| columns_of(edges).distinct(context).unwrap();
        let (a, b) = (distinct(edges.clone()), distinct(others.clone()));
        let nothing = a.clone().concat(a.clone().negate()).unwrap();
        let ours = nothing.iterate(|scope, reached| {
            let (a, b) = (a.enter(scope), b.enter(scope));
            let both = a.clone().arrange_by(context, ["from", "to"])?;
            let both = both.join_rows(b.arrange_by(context, ["from", "to"])?, ["from", "to"])?;
            let kept = a.concat(both.negate())?.arrange_by(context, ["from"])?;
            let to = reached.project(["to", "from"])?.arrange_by(context, ["to"])?;
            let further = to.clone().join_rows(kept.clone(), [left("from"), right("to")])?;
            further.concat(kept.changes())?.distinct(context)
        });
        let (a, b) = (edges.distinct(), others.distinct());
        let stock = a.clone().concat(a.clone().negate()).iterate(|scope, reached| {
            let kept = a.enter(scope);
            let both = kept
                .clone()
                .map(|edge| (edge, ()))
                .join_map(b.enter(scope).map(|edge| (edge, ())), |edge, (), ()| *edge);
            let kept = kept.concat(both.negate());
            reached
                .map(|(from, to)| (to, from))
                .join_map(kept.clone(), |_, from, to| (*from, *to))
                .concat(kept)
                .distinct()
        });
        same(stock, rows_of(ours.unwrap()), seen, probe);
    });
}

#[test]
fn traces_in_other_dataflows_and_changes_by_frontier() {
    in_all_ways(|worker, context| {
        let (seen, probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let shown = Rc::new(std::cell::RefCell::new(Vec::new()));
        let (mut edges_in, mut stock, mut ours) = worker.dataflow::<u64, _, _>(|scope| {
            let (edges_in, edges) = scope.new_collection::<Edge, isize>();
            let ours = columns_of(edges.clone()).arrange_by(context, "from").unwrap();
            let stock = edges.arrange_by_key();
            stock.stream.clone().probe_with(&probe);
            let shown = Rc::clone(&shown);
            ours.clone().for_each_frontier(move |_, changes| {
                shown.borrow_mut().extend(changes);
                Ok(())
            });
            (edges_in, stock.trace, ours.trace())
        });
        let mut numbers = Numbers(3);
        let mut put = Vec::new();
        let mut late = ProbeHandle::new();
        for round in 0..ROUNDS {
            for _ in 0..40 {
                let edge = (numbers.below(9) as u32, numbers.below(9) as u32);
                let diff = if numbers.below(3) == 0 { -1 } else { 1 };
                edges_in.update(edge, diff);
                put.push((edge, round, diff));
            }
            edges_in.advance_to(round + 1);
            edges_in.flush();
            if round == ROUNDS / 2 {
                worker.dataflow::<u64, _, _>(|scope| {
                    let ours = rows_of::<Edge, _>(ours.import(scope).changes());
                    let stock = stock.import(scope).as_collection(|from, to| (*from, *to));
                    same(stock, ours, &seen, &mut late);
                });
            }
            step_until(worker, || !probe.less_than(&(round + 1)));
        }
        step_until(worker, || !late.less_than(&ROUNDS));
        // Each row occurs once per time. With several workers, each shows only its own keys.
        let all: Vec<_> = shown.take().iter().flat_map(updates).collect();
        let tidy = common::tidy(all.clone());
        assert_eq!(all.len(), tidy.len());
        if worker.peers() == 1 {
            assert_eq!(tidy, common::tidy(put));
        }
        seen.get()
    });
}

fn updates(changes: &Changes<u64, isize>) -> Vec<(Edge, u64, isize)> {
    let rows = Edge::rows(changes.batch()).into_iter();
    let updates = rows.zip(changes.times()).zip(changes.diffs());
    updates.map(|((row, time), diff)| (row, *time, *diff)).collect()
}
