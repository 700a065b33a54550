//! Logging events balance: trace batches and batcher memory return to zero at the end.

use std::sync::{Arc, Mutex};

use differential_dataflow::input::Input;
use differential_dataflow::logging::{DifferentialEvent, DifferentialEventBuilder};
use timely::dataflow::operators::Probe;
use windrow::Pool;
use windrow_differential::{ArrangeRows, Context};

const ROUNDS: u64 = 100;
/// Number of times by which updates are ahead of their round.
const AHEAD: u64 = 5;

#[derive(Debug, Default)]
struct Seen {
    batches: i64,
    merges: usize,
    /// Totals of batchers: records, bytes, capacity in bytes, allocations.
    held: [isize; 4],
    most_held: [isize; 4],
}

impl Seen {
    fn note(&mut self, event: &DifferentialEvent) {
        match event {
            DifferentialEvent::Batch(_) => self.batches += 1,
            DifferentialEvent::Merge(merge) if merge.complete.is_some() => {
                self.batches -= 1;
                self.merges += 1;
            }
            DifferentialEvent::Drop(_) => self.batches -= 1,
            DifferentialEvent::Batcher(of) => {
                let changes =
                    [of.records_diff, of.size_diff, of.capacity_diff, of.allocations_diff];
                for ((held, most), change) in
                    self.held.iter_mut().zip(&mut self.most_held).zip(changes)
                {
                    *held += change;
                    *most = (*most).max(*held);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn events_balance() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let by_worker = Arc::clone(&seen);
    let context = Context::new(Pool::unlimited());
    timely::execute_directly(move |worker| {
        let mut register = worker.log_register().unwrap();
        register.insert::<DifferentialEventBuilder, _>("differential/arrange", move |_, events| {
            for (_, event) in events.iter().flat_map(|events| events.iter()) {
                by_worker.lock().unwrap().note(event);
            }
        });
        drop(register);
        let (mut input, probe, _trace) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, numbers) = scope.new_collection::<(u64, u64), isize>();
            let arranged = numbers.arrange_rows(&context);
            let (probe, _) = arranged.stream.probe();
            (input, probe, arranged.trace)
        });
        for round in 0..ROUNDS {
            for number in 0..10 {
                input.update_at((number, round), round + number % AHEAD, 1);
            }
            input.advance_to(round + 1);
            input.flush();
            while probe.less_than(&(round + 1)) {
                worker.step();
            }
        }
    });
    let seen = seen.lock().unwrap();
    assert!(seen.merges > 0, "{seen:?}");
    assert!(seen.most_held.iter().all(|&most| most > 0), "{seen:?}");
    assert_eq!((seen.batches, seen.held), (0, [0; 4]), "{seen:?}");
}
