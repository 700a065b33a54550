//! Batches that wait for reads of a store: equal results, and other operators run meanwhile.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::common::{over_two, same, step_until};
use differential_dataflow::input::{Input, InputSession};
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;
use windrow::{Budget, Codec, Decision, ForceSpill, Offer, Pool, PoolOptions};
use windrow::{SpillEvent, SpillPolicy};
use windrow_differential::{ArrangeRows, Context, RowArrangement};

#[test]
fn joins_and_reductions_are_those_of_stock() {
    over_two(
        |numbers| (numbers.below(25), numbers.below(5)),
        |context, [a, b], seen, probe| {
            let rows = (a.clone().arrange_rows(context), b.clone().arrange_rows(context));
            let ahead =
                (rows.0.clone().reading_ahead(&rows.1), rows.1.clone().reading_ahead(&rows.0));
            let ours = ahead.0.join_rows(ahead.1, |key, a, b| Some((key.get(), a.get(), b.get())));
            same(a.clone().join_map(b, |key, a, b| (*key, *a, *b)), ours, seen, probe);
            let stock = a.reduce(|_key, values, out| out.push((*values[0].0, values[0].1)));
            let ahead = rows.0.clone().reading_ahead(&rows.0);
            let ours = ahead.reduce_rows(context, |_key, values, out| {
                out.push((values[0].0.get(), values[0].1));
            });
            same(stock, ours.map_rows(|key, value| (key.get(), value.get())), seen, probe);
        },
    );
}

/// Bytes of a chunk.
const CHUNK: usize = 16 << 10;

/// What a spill thread does with a page that it has read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reads {
    End,
    Panic,
    Wait,
}

/// Spills all but small chunks, and keeps spill threads at their reads. Counts reads that began to
/// wait or panicked.
#[derive(Clone, Debug)]
struct Gate(Arc<(Mutex<(Reads, usize)>, Condvar)>);

impl Gate {
    fn set(&self, reads: Reads) {
        self.0.0.lock().unwrap().0 = reads;
        self.0.1.notify_all();
    }

    fn stopped(&self) -> usize {
        self.0.0.lock().unwrap().1
    }
}

impl SpillPolicy for Gate {
    fn decide(&self, offer: &Offer) -> Decision {
        // Merges read the few keys on the worker, which must not wait for a stopped thread.
        match offer.may_stay && offer.bytes < CHUNK / 2 {
            true => Decision::Keep,
            false => ForceSpill.decide(offer),
        }
    }

    fn record(&self, event: SpillEvent) {
        let is_read = matches!(event, SpillEvent::PagedIn { .. });
        if is_read && std::thread::current().name() == Some("windrow-spill") {
            let mut state = self.0.0.lock().unwrap();
            state.1 += usize::from(state.0 != Reads::End);
            let state = self.0.1.wait_while(state, |state| state.0 == Reads::Wait).unwrap();
            let reads = state.0;
            drop(state);
            assert_ne!(reads, Reads::Panic, "on purpose");
        }
    }
}

type Pairs = InputSession<u64, (u64, u64), isize>;

/// A join of many keys in a store with few, whose batches wait for reads, and another operator.
struct Program {
    inputs: [Pairs; 3],
    joined: ProbeHandle<u64>,
    others: ProbeHandle<u64>,
    found: Rc<Cell<usize>>,
    dataflow: usize,
    pool: Pool,
    gate: Gate,
}

impl Program {
    /// Has stored 20,000 keys at time 0, and is at time 1.
    fn new(worker: &mut Worker, threads: usize) -> Self {
        let gate = Gate(Arc::new((Mutex::new((Reads::End, 0)), Condvar::new())));
        let options = PoolOptions::new().chunk_bytes(CHUNK).codec(Codec::None);
        let options = options.policy(gate.clone()).spill_threads(threads);
        let pool = Pool::new(Budget::bytes(64 << 20), options).unwrap();
        let context = Context::new(pool.clone());
        let (joined, others) = (ProbeHandle::new(), ProbeHandle::new());
        let (found, dataflow) = (Rc::new(Cell::new(0)), worker.next_dataflow_index());
        let inputs = worker.dataflow::<u64, _, _>(|scope| {
            let (many, a) = scope.new_collection::<(u64, u64), isize>();
            let (few, b) = scope.new_collection::<(u64, u64), isize>();
            let (more, c) = scope.new_collection::<(u64, u64), isize>();
            let (a, b) = (a.arrange_rows(&context), b.arrange_rows(&context));
            let (found, b) = (Rc::clone(&found), b.reading_ahead(&a));
            a.join_rows(b, |key, _, _| Some(key.get()))
                .inspect(move |_| found.set(found.get() + 1))
                .probe_with(&joined);
            c.arrange_rows(&context).map_rows(|key, _| key.get()).probe_with(&others);
            [many, few, more]
        });
        let mut program = Self { inputs, joined, others, found, dataflow, pool, gate };
        (0..20_000).for_each(|key| program.inputs[0].insert((key, key)));
        program.end(1);
        step_until(worker, || !program.joined.less_than(&1));
        program.pool.wait_for_spills();
        program
    }

    /// Ends the times before `time`.
    fn end(&mut self, time: u64) {
        for input in &mut self.inputs {
            input.advance_to(time);
            input.flush();
        }
    }

    /// Looks 100 keys up at time 1, with reads that do as `reads` says.
    fn look_up(&mut self, reads: Reads) {
        self.gate.set(reads);
        (0..100).for_each(|number| self.inputs[1].insert((number * 100, number)));
        self.end(2);
    }
}

#[test]
fn others_run_while_pages_come_in() {
    timely::execute_directly(move |worker| {
        let mut program = Program::new(worker, 1);
        program.look_up(Reads::Wait);
        step_until(worker, || program.gate.stopped() > 0);
        for time in 3..20 {
            program.inputs[2].insert((time, time));
            program.end(time);
            step_until(worker, || !program.others.less_than(&time));
        }
        assert!(program.joined.less_than(&2) && program.found.get() == 0, "the batch waits");
        program.gate.set(Reads::End);
        // The thread wakes the operator: the worker need not look.
        let start = Instant::now();
        while program.joined.less_than(&19) && start.elapsed() < Duration::from_secs(60) {
            worker.step_or_park(Some(Duration::from_secs(60)));
        }
        assert_eq!(program.found.get(), 100);
        assert!(start.elapsed() < Duration::from_secs(30), "nothing woke the worker");
    });
}

#[test]
fn without_a_thread_that_reads_nothing_waits() {
    timely::execute_directly(move |worker| {
        let mut program = Program::new(worker, 0);
        program.look_up(Reads::Wait);
        step_until(worker, || !program.joined.less_than(&2));
        assert_eq!((program.found.get(), program.gate.stopped()), (100, 0));
    });
}

#[test]
fn a_panic_of_a_spill_thread_ends_the_wait() {
    timely::execute_directly(move |worker| {
        let mut program = Program::new(worker, 1);
        program.look_up(Reads::Panic);
        step_until(worker, || !program.joined.less_than(&2));
        assert!(program.found.get() == 100 && program.gate.stopped() > 0);
        // The thread is still there.
        program.look_up(Reads::Wait);
        program.end(3);
        step_until(worker, || program.gate.stopped() > 1);
        program.gate.set(Reads::End);
        step_until(worker, || !program.joined.less_than(&3));
        assert_eq!(program.found.get(), 200);
    });
}

#[test]
fn a_dropped_dataflow_leaves_nothing_behind() {
    timely::execute_directly(move |worker| {
        let mut program = Program::new(worker, 1);
        program.look_up(Reads::Wait);
        step_until(worker, || program.gate.stopped() > 0);
        // A second batch, which the busy thread has not begun to read.
        (0..100).for_each(|number| program.inputs[1].insert((number * 7, number)));
        program.end(3);
        (0..10).for_each(|_| _ = worker.step());
        worker.drop_dataflow(program.dataflow);
        program.gate.set(Reads::End);
        let Program { inputs, pool, found, .. } = program;
        drop(inputs);
        pool.wait_for_spills();
        (0..10).for_each(|_| _ = worker.step());
        pool.release();
        assert_eq!((found.get(), pool.stats().in_flight, pool.budget().used()), (0, 0, 0));
    });
}
