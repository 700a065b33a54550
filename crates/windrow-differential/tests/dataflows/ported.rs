//! Operators that programs of differential-dataflow are ported to: totals, upserts and half joins
//! beside differential's own, at every time, in every configuration.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use crate::common::{Numbers, ROUNDS, TIMES_A_ROUND, UPDATES};
use crate::common::{in_all_ways, over_two, same, step_until};
use differential_dataflow::operators::arrange::upsert::arrange_from_upsert;
use differential_dataflow::operators::{CountTotal, ThresholdTotal};
use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
use differential_dataflow::{AsCollection, ExchangeData, VecCollection};
use timely::dataflow::operators::Input;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::progress::Antichain;
use windrow_differential::{
    ArrangeRows, ArrangeUpserts, Context, RowArrangement, RowCollection, RowTotals, half_join_rows,
};

type Pairs<'scope> = VecCollection<'scope, u64, (u64, u64), isize>;

#[test]
fn totals() {
    let program = |context: &Context,
                   [a, b]: [Pairs<'_>; 2],
                   seen: &Rc<Cell<usize>>,
                   probe: &mut ProbeHandle<u64>| {
        let all = a.concat(b.negate());
        let rows = all.clone().arrange_rows_by_self(context);
        same(all.clone().count_total(), rows.clone().count_total_rows(), seen, probe);
        same(all.clone().distinct_total(), rows.clone().distinct_total_rows(), seen, probe);
        // Each row twice if its count is even; a collection takes the same way.
        let even = |count: &isize| 1 + (count + 1) % 2;
        let stock = all.clone().threshold_total(move |_, count| even(count));
        let ours = rows.threshold_total_rows(move |_, count| even(count));
        same(stock.clone(), ours, seen, probe);
        same(stock, all.threshold_rows(context, move |_, count| even(count)), seen, probe);
    };
    over_two(|numbers| (numbers.below(9), numbers.below(4)), program);
}

/// A key, its new value, and a time.
type Upsert<V> = (u64, Option<V>, u64);

/// Upserts numbers or text with `value`.
fn upserts<V: windrow_differential::Row + ExchangeData + std::hash::Hash>(
    value: fn(u64) -> V,
) -> impl Fn(&mut timely::worker::Worker, &Context) -> usize {
    move |worker, context| {
        let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
        let mut input = InputHandle::<u64, _>::new();
        worker.dataflow::<u64, _, _>(|scope| {
            let upserts = scope.input_from(&mut input);
            type Builder<V> = ValBuilder<u64, V, u64, isize>;
            type Spine<V> = ValSpine<u64, V, u64, isize>;
            let stock = arrange_from_upsert::<Builder<V>, Spine<V>, _, _>(upserts.clone(), "Stock");
            let ours = upserts.arrange_rows_from_upsert(context);
            let stock = stock.as_collection(|key, value| (*key, value.clone()));
            let read = ours.clone().map_rows(|key, value| (key.get(), value.get()));
            same(stock.clone(), read, &seen, &mut probe);
            // The arrangement joins with others.
            let least = ours.reduce_rows(context, |_, values, out| out.push((values.len(), 1)));
            let ones = stock.map(|(key, _)| (key, 1));
            same(ones, least.map_rows(|key, count| (key.get(), count.get())), &seen, &mut probe);
        });
        let (index, peers) = (worker.index() as u64, worker.peers() as u64);
        let mut numbers = Numbers(7);
        for round in 0..ROUNDS {
            let base = round * TIMES_A_ROUND;
            // Some keys get several values at a time, also the same ones; some are of later rounds.
            for number in 0..2 * UPDATES {
                let time = base + numbers.below(2 * TIMES_A_ROUND);
                let new = (numbers.below(3) > 0).then(|| value(numbers.below(4)));
                let upsert: Upsert<V> = (numbers.below(30), new, time);
                if number % peers == index {
                    input.send(upsert);
                }
            }
            input.advance_to(base + TIMES_A_ROUND);
            step_until(worker, || !probe.less_than(&(base + TIMES_A_ROUND)));
        }
        input.close();
        step_until(worker, || probe.done());
        seen.get()
    }
}

#[test]
fn upserts_of_numbers() {
    in_all_ways(upserts(|number| number));
}

#[test]
fn upserts_of_text() {
    in_all_ways(upserts(|number| "ab\u{e9}".repeat(number as usize)));
}

/// A key, a value, and the time of an update, as half joins take it.
type Moved<'scope, V> = VecCollection<'scope, u64, (u64, V, u64), isize>;

fn moved<'scope, V: differential_dataflow::Data>(
    updates: VecCollection<'scope, u64, (u64, V), isize>,
) -> Moved<'scope, V> {
    let updates = updates.inner;
    updates.map(|((key, value), time, diff)| ((key, value, time), time, diff)).as_collection()
}

/// The join of three collections by a delta query: a chain of half joins for each collection. Of
/// changes at one time, those of the first collection come first.
fn delta_query(yields: fn(Instant, usize) -> bool) {
    let program = move |context: &Context,
                        [a, b]: [Pairs<'_>; 2],
                        seen: &Rc<Cell<usize>>,
                        probe: &mut ProbeHandle<u64>| {
        // a(x, y), b(y, z), c(z, w).
        let c = a.clone().map(|(x, y)| (y, x + y));
        let reversed = |(x, y): (u64, u64)| (y, x);
        let a_by_y = a.clone().map(reversed).arrange_rows(context);
        let b_by_y = b.clone().arrange_rows(context);
        let b_by_z = b.clone().map(reversed).arrange_rows(context);
        let c_by_z = c.clone().arrange_rows(context);
        let frontier = |time: &u64, times: &mut Antichain<u64>| {
            times.insert(time.saturating_sub(1));
        };
        let earlier = |at: &u64, initial: &u64| at < initial;
        let until = |at: &u64, initial: &u64| at <= initial;
        macro_rules! half {
            ($updates:expr, $with:expr, $comparison:expr, $output:expr) => {
                half_join_rows($updates, $with, frontier, $comparison, yields, $output)
            };
        }
        let of_a = half!(moved(a.clone().map(reversed)), b_by_y.clone(), earlier, |y, x, z| {
            (z.get(), (*x, y.get()))
        });
        let of_a = of_a.map(|((z, xy), time)| (z, xy, time));
        let of_a = half!(of_a, c_by_z.clone(), earlier, |z, (x, y), w| (*x, *y, z.get(), w.get()));
        let of_b =
            half!(moved(b.clone()), a_by_y.clone(), until, |y, z, x| { (*z, (x.get(), y.get())) });
        let of_b = of_b.map(|((z, xy), time)| (z, xy, time));
        let of_b = half!(of_b, c_by_z, earlier, |z, (x, y), w| (*x, *y, z.get(), w.get()));
        let of_c = half!(moved(c.clone()), b_by_z, until, |z, w, y| (y.get(), (z.get(), *w)));
        let of_c = of_c.map(|((y, zw), time)| (y, zw, time));
        let of_c = half!(of_c, a_by_y, until, |y, (z, w), x| (x.get(), y.get(), *z, *w));
        let ours = of_a.concat(of_b).concat(of_c).inner;
        let ours = ours.map(|((data, time), _, diff)| (data, time, diff)).as_collection();
        let stock = a.map(reversed).join_map(b, |y, x, z| (*z, (*x, *y)));
        let stock = stock.join_map(c, |z, (x, y), w| (*x, *y, *z, *w));
        same(stock, ours, seen, probe);
    };
    over_two(|numbers| (numbers.below(7), numbers.below(7)), program);
}

#[test]
fn half_joins() {
    delta_query(|_, _| false);
}

#[test]
fn half_joins_that_yield() {
    delta_query(|_, pairs| pairs > 2);
}
