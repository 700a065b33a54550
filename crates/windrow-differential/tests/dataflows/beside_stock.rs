//! Compares programs on differential's own traces and on Windrow's: equal results at every time, in
//! every configuration.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::common::{Numbers, feed, in_all_ways, over_two, passing_in_all_ways, same, step_until};
use differential_dataflow::VecCollection;
use differential_dataflow::input::Input;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Exchange;
use windrow::{Codec, ForceSpill, Tiered};
use windrow_differential::{ArrangeRows, Context, RowArrangement, RowCollection, RowSorter};

const KEYS: u64 = 25;

type Pairs<'scope> = VecCollection<'scope, u64, (u64, u64), isize>;

/// A program over two collections of pairs of numbers.
fn over_pairs(
    program: impl for<'scope> Fn(&Context, [Pairs<'scope>; 2], &Rc<Cell<usize>>, &mut ProbeHandle<u64>)
    + Send
    + Sync
    + 'static,
) {
    over_two(|numbers| (numbers.below(KEYS), numbers.below(5)), program);
}

#[test]
fn joins() {
    over_pairs(|context, [a, b], seen, probe| {
        let rows = (a.clone().arrange_rows(context), b.clone().arrange_rows(context));
        let stock = a.join_map(b, |key, a, b| (*key, *a, *b));
        let cursors = rows
            .0
            .clone()
            .join_core(rows.1.clone(), |key, a, b| Some((key.get(), a.get(), b.get())));
        same(stock.clone(), cursors, seen, probe);
        let pages = rows.0.join_rows(rows.1, |key, a, b| Some((key.get(), a.get(), b.get())));
        same(stock, pages, seen, probe);
    });
}

#[test]
fn reductions() {
    over_pairs(|context, [a, _], seen, probe| {
        let stock = a.clone().reduce(|_key, values, out| {
            out.push((*values[0].0, 1isize));
            out.push((values.len() as u64 + 100, values[0].1));
        });
        let ours = a.arrange_rows(context).reduce_rows(context, |_key, values, out| {
            out.push((values[0].0.get(), 1isize));
            out.push((values.len() as u64 + 100, values[0].1));
        });
        same(stock, ours.map_rows(|key, value| (key.get(), value.get())), seen, probe);
    });
}

#[test]
fn counts_thresholds_and_what_is_distinct() {
    over_pairs(|context, [a, b], seen, probe| {
        let all = a.concat(b);
        same(all.clone().consolidate(), all.clone().consolidate_rows(context), seen, probe);
        same(all.clone().distinct(), all.clone().distinct_rows(context), seen, probe);
        same(all.clone().count(), all.clone().count_rows(context), seen, probe);
        let stock = all.clone().threshold(|_, count| if *count > 1 { *count } else { 0 });
        let ours = all.threshold_rows(context, |_, count| if *count > 1 { *count } else { 0 });
        same(stock, ours, seen, probe);
    });
}

#[test]
fn degrees_of_a_graph() {
    over_pairs(|context, [edges, _], seen, probe| {
        // How many nodes have how many edges.
        let stock = edges.clone().map(|(node, _)| node).count().map(|(_, degree)| degree).count();
        let degrees = edges.map(|(node, _)| node).count_rows(context);
        let ours = degrees.map(|(_, degree)| degree).count_rows(context);
        same(stock, ours, seen, probe);
    });
}

#[test]
fn text() {
    in_all_ways(|worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (a, words) = scope.new_collection::<(String, u64), isize>();
            let (b, others) = scope.new_collection::<(String, u64), isize>();
            let rows = (words.clone().arrange_rows(context), others.clone().arrange_rows(context));
            let stock = words.clone().join_map(others, |word, a, b| (word.clone(), *a, *b));
            let ours =
                rows.0.clone().join_rows(rows.1, |word, a, b| Some((word.get(), a.get(), b.get())));
            same(stock, ours, &seen, &mut probe);
            let longest = words.reduce(|_, values, out| out.push((*values[values.len() - 1].0, 1)));
            let ours = rows.0.reduce_rows(context, |_, values, out| {
                out.push((values[values.len() - 1].0.get(), 1));
            });
            let ours = ours.map_rows(|word, value| (word.get(), value.get()));
            same(longest, ours, &seen, &mut probe);
            [a, b]
        });
        feed(worker, &mut inputs, &probe, |numbers| {
            let word = "ab\u{e9}".repeat(numbers.below(4) as usize) + &numbers.below(4).to_string();
            (word, numbers.below(3))
        });
        seen.get()
    });
}

#[test]
fn our_batcher_in_their_trace() {
    type Sorter = RowSorter<u64, u64, u64, isize, ValBuilder<u64, u64, u64, isize>>;
    passing_in_all_ways(|worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (input, pairs) = scope.new_collection();
            let context = context.clone();
            let by_key = Exchange::new(|update: &((u64, u64), u64, isize)| update.0.0);
            let sorter = move |_, _| Sorter::new(&context);
            let inner = pairs.clone().inner;
            let rows =
                arrange_core::<_, _, _, ValSpine<_, _, _, _>>(inner, by_key, "Sorted", sorter);
            same(pairs, rows.as_vecs(), &seen, &mut probe);
            [input]
        });
        feed(worker, &mut inputs, &probe, |numbers| (numbers.below(KEYS), numbers.below(5)));
        seen.get()
    });
}

#[test]
fn diffs_of_two_lanes() {
    in_all_ways(|worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (input, pairs) = scope.new_collection::<(u64, u64), isize>();
            // A count and a sum, kept together.
            let sums = pairs.explode(|(key, value)| Some(((key, ()), (1isize, value as isize))));
            let ours = sums.clone().arrange_rows(context).reduce_rows(context, |_, sums, out| {
                let (count, sum) = sums[0].1;
                out.push(((count, sum), 1isize));
            });
            let stock = sums.reduce(|_, sums, out| out.push((sums[0].1, 1isize)));
            same(stock, ours.map_rows(|key, sums| (key.get(), sums.get())), &seen, &mut probe);
            [input]
        });
        feed(worker, &mut inputs, &probe, |numbers| (numbers.below(KEYS), numbers.below(5)));
        seen.get()
    });
}

#[test]
fn a_trace_is_imported_late() {
    in_all_ways(|worker, context| {
        let (seen, probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let (mut input, mut rows, mut stock) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, pairs) = scope.new_collection::<(u64, u64), isize>();
            let rows = pairs.clone().arrange_rows(context);
            rows.clone().map_rows(|_, _| ()).probe_with(&probe);
            (input, rows.trace, pairs.arrange_by_key().trace)
        });
        let mut late = None;
        for round in 0..6u64 {
            let mut numbers = Numbers(round);
            for _ in 0..40 {
                let pair = (numbers.below(9), numbers.below(4));
                if numbers.below(worker.peers() as u64) == worker.index() as u64 {
                    input.update(pair, if numbers.below(3) == 0 { -1 } else { 1 });
                }
            }
            input.advance_to(round + 1);
            input.flush();
            step_until(worker, || !probe.less_than(&(round + 1)));
            if round == 3 {
                let mut imported = ProbeHandle::new();
                worker.dataflow::<u64, _, _>(|scope| {
                    let ours = rows.import(scope).map_rows(|key, value| (key.get(), value.get()));
                    let stock = stock.import(scope).as_collection(|key, value| (*key, *value));
                    same(stock, ours, &seen, &mut imported);
                });
                late = Some(imported);
            }
            if let Some(late) = &late {
                step_until(worker, || !late.less_than(&(round + 1)));
            }
        }
        seen.get()
    });
}

#[test]
fn settings_change_while_it_runs() {
    passing_in_all_ways(|worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (a, pairs) = scope.new_collection::<(u64, u64), isize>();
            let (b, others) = scope.new_collection();
            let rows = pairs.clone().arrange_rows(context);
            let rows = rows.join_rows(others.clone().arrange_rows(context), |key, a, b| {
                Some((key.get(), (a.get(), b.get())))
            });
            let stock = pairs.join_map(others, |key, a, b| (*key, (*a, *b)));
            same(stock, rows.consolidate_rows(context), &seen, &mut probe);
            [a, b]
        });
        feed(worker, &mut inputs, &probe, |numbers| {
            let pool = context.pool();
            match numbers.below(30) {
                0 => pool.set_codec(Codec::Lz4),
                1 => pool.set_codec(Codec::None),
                2 => pool.set_policy(Arc::new(ForceSpill)),
                3 => pool.set_policy(Arc::new(Tiered)),
                4 => pool.set_limit(1 << 20).unwrap(),
                5 => pool.set_limit(64 << 20).unwrap(),
                _ => {}
            }
            (numbers.below(KEYS), numbers.below(5))
        });
        seen.get()
    });
}
