//! Several times as much as the limit is arranged, joined and reduced: it goes to disk, comes back, and all memory is given
//! back in the end. The peak is not held to: see the decision on what dataflows take beside the limit.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use windrow::{Budget, Pool};
use windrow_differential::{ArrangeRows, Context, RowArrangement};

/// Bytes that arrangements may take.
const LIMIT: usize = 16 << 20;
/// Rows of 32 bytes: four times the limit, and as many again that they are reduced to.
const ROWS: u64 = 2 << 20;
/// Rows that are put in before the dataflow works on them.
const AT_ONCE: u64 = 20_000;

/// Arranges `rows` numbers, joins them with a few and reduces them; how many are joined, and what they add up to.
fn run(pool: &Pool, rows: u64) -> (usize, u64) {
    let context = Context::new(pool.clone());
    timely::execute_directly(move |worker| {
        let (joined, sum) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let probe = ProbeHandle::new();
        let (mut many, mut few) = worker.dataflow::<u64, _, _>(|scope| {
            let (many, numbers) = scope.new_collection::<(u64, u64), isize>();
            let (few, wanted) = scope.new_collection::<(u64, ()), isize>();
            let numbers = numbers.arrange_rows(&context);
            let seen = Rc::clone(&joined);
            numbers
                .clone()
                .join_rows(wanted.arrange_rows(&context), |_, value, _| Some(value.get()))
                .inspect(move |_| seen.set(seen.get() + 1))
                .probe_with(&probe);
            let total = Rc::clone(&sum);
            numbers
                .reduce_rows(&context, |_, values, out| {
                    out.push((values.iter().map(|(value, _)| value.get()).sum::<u64>(), 1isize));
                })
                .as_collection(|_, sum| sum.get())
                .inspect(move |(sum, _, diff)| total.set(total.get() + sum * *diff as u64))
                .probe_with(&probe);
            (many, few)
        });
        let mut time = 0;
        for first in (0..rows).step_by(AT_ONCE as usize) {
            for number in first..rows.min(first + AT_ONCE) {
                // Each key once, in no order.
                many.insert((number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number));
            }
            // Two times: the first has most of the rows.
            time = u64::from(first > rows / 2);
            many.advance_to(time);
            many.flush();
            worker.step();
        }
        (0..1_000u64).for_each(|n| few.insert((n.wrapping_mul(0x9e37_79b9_7f4a_7c15), ())));
        many.advance_to(time + 1);
        many.flush();
        few.advance_to(time + 1);
        few.flush();
        while probe.less_than(&(time + 1)) {
            worker.step();
        }
        (joined.get(), sum.get())
    })
}

#[test]
fn what_does_not_fit_goes_to_disk_and_comes_back() {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(LIMIT)).unwrap();
    assert_eq!(run(&pool, ROWS), (1_000, ROWS * (ROWS - 1) / 2));
    let stats = pool.stats();
    assert!(stats.spilled_bytes > 3 * LIMIT, "{stats:?}");
    // A page that a spill thread has in hand dies there.
    pool.wait_for_spills();
    pool.release();
    assert_eq!(pool.budget().used(), 0, "memory is held after all is gone");
}
