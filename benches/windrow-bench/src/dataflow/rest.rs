//! Memory of an arrangement at rest: the growth of a process after its updates are arranged and
//! merged.
//!
//! Each side is a separate process, whose allocator returns freed memory.

use std::process::Command;

use differential_026::input::Input;
use differential_026::operators::arrange::arrangement::arrange_core;
use differential_026::trace::TraceReader;
use differential_026::trace::implementations::ord_neu::{
    OrdKeyBatcher, OrdKeySpine, OrdValBatcher, OrdValSpine,
};
use timely_032::dataflow::ProbeHandle;
use timely_032::dataflow::channels::pact::Pipeline;
use timely_032::dataflow::operators::Probe;
use timely_032::progress::Antichain;
use windrow::Pool;
use windrow_differential::{ArrangeRows, Context};

use super::Options;
use crate::Result;
use crate::cells::Cells;
use crate::process::{answer, memory};

/// Makes glibc return freed memory at once, and map large blocks.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_TRIM_THRESHOLD_", "0"),
    ("MALLOC_TOP_PAD_", "0"),
    ("MALLOC_MMAP_THRESHOLD_", "65536"),
];

/// Keys, and the rival's arrangement.
const CASES: [(&str, &str); 2] = [("text", "OrdKey"), ("u64", "OrdVal")];

/// Compares bytes per update.
pub(super) fn measure(options: &Options, cells: &mut Cells) -> Result<()> {
    for (keys, rival) in CASES {
        let bytes = |side: &str| -> Result<f64> {
            let mut child = Command::new(std::env::current_exe()?);
            child.args(["dataflow", &format!("--rest={keys} {side}")]).envs(ALLOCATOR);
            child.arg(format!("--updates={}", options.updates));
            answer(child.arg(format!("--round={}", options.round)))
        };
        let (ours, theirs) = (bytes("ours")?, bytes(rival)?);
        cells.push_in("bytes/update", &format!("{keys} at rest"), ours, (rival, theirs), None);
    }
    Ok(())
}

/// Measures one side in a child process, and prints its bytes per update.
pub(super) fn child(options: &Options, case: &str) -> Result<()> {
    let text = |number: usize| format!("{number:?}");
    let number = |number: usize| number as u64;
    let bytes = match case {
        "text ours" => of_ours(options, text),
        "u64 ours" => of_ours(options, number),
        "text OrdKey" => of_ord_key(options, text),
        "u64 OrdVal" => of_ord_val(options, number),
        other => return Err(format!("{other} is not measured").into()),
    };
    let bytes = bytes.ok_or("the system does not say how much is resident")?;
    println!("{}", bytes / options.updates as f64);
    Ok(())
}

/// Returns the anonymous resident bytes, if the system reports them.
fn resident() -> Option<f64> {
    memory("self", "RssAnon").ok().map(|bytes| bytes as f64)
}

macro_rules! grown {
    ($options:ident, $make:ident, $key:ty, |$collection:ident| $arranged:expr, $release:expr) => {{
        let (updates, round) = ($options.updates, $options.round);
        timely_032::execute_directly(move |worker| {
            let probe = ProbeHandle::new();
            let (mut input, mut trace) = worker.dataflow::<u64, _, _>(|scope| {
                let (input, $collection) = scope.new_collection::<($key, ()), isize>();
                let arranged = $arranged;
                arranged.stream.probe_with(&probe);
                (input, arranged.trace)
            });
            let before = resident()?;
            let mut time = 0;
            for first in (0..updates).step_by(round) {
                for number in first..updates.min(first + round) {
                    // Every key once, in no order.
                    input.insert(($make(number.wrapping_mul(7_919) % updates), ()));
                }
                time += 1;
                input.advance_to(time);
                input.flush();
                let frontier = Antichain::from_elem(time);
                trace.set_logical_compaction(frontier.borrow());
                trace.set_physical_compaction(frontier.borrow());
                while probe.less_than(&time) {
                    worker.step();
                }
            }
            // Merges continue without input.
            (0..1_000).for_each(|_| {
                worker.step();
            });
            $release;
            Some(resident()? - before)
        })
    }};
}

fn of_ours<K: windrow_differential::Row + differential_026::Data>(
    options: &Options,
    make: impl Fn(usize) -> K + Send + Sync + 'static,
) -> Option<f64> {
    let pool = Pool::unlimited();
    let context = Context::new(pool.clone());
    grown!(options, make, K, |collection| collection.arrange_rows(&context), pool.release())
}

fn of_ord_key(options: &Options, make: fn(usize) -> String) -> Option<f64> {
    type Spine = OrdKeySpine<String, u64, isize>;
    let new = OrdKeyBatcher::<String, u64, isize>::new;
    grown!(
        options,
        make,
        String,
        |all| arrange_core::<_, _, _, Spine>(all.inner, Pipeline, "Arrange", new),
        ()
    )
}

fn of_ord_val(options: &Options, make: fn(usize) -> u64) -> Option<f64> {
    type Spine = OrdValSpine<u64, (), u64, isize>;
    let new = OrdValBatcher::<u64, (), u64, isize>::new;
    grown!(
        options,
        make,
        u64,
        |all| arrange_core::<_, _, _, Spine>(all.inner, Pipeline, "Arrange", new),
        ()
    )
}
