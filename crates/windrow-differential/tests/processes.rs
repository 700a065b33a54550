//! Two processes with two workers each: rows are exchanged over loopback, and the results equal the
//! results of differential's own traces at every time.
//!
//! This program plays both parts: without arguments it starts two copies of itself, with timely's
//! arguments it is one of the two.

mod common;

use std::cell::Cell;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use common::records::{columns_of, rows_of};
use common::{Numbers, same, step_until};
use differential_dataflow::input::Input;
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;
use windrow::{Budget, Pool};
use windrow_differential::{ArrangeRows, Context, RowArrangement, RowCollection, max};

const DEADLINE: Duration = Duration::from_secs(240);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "-n") {
        return a_process(arguments);
    }
    // With `--list` the harness only asks for the names of tests.
    if arguments.iter().any(|argument| argument == "--list") {
        println!("two_processes: test");
        return ExitCode::SUCCESS;
    }
    two_processes();
    println!("test two_processes ... ok");
    ExitCode::SUCCESS
}

/// Runs one of the processes; succeeds if all workers do.
fn a_process(arguments: Vec<String>) -> ExitCode {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(16 << 20)).unwrap();
    let context = Context::new(pool.clone());
    let guards = timely::execute_from_args(arguments.into_iter(), move |worker| {
        assert!(program(worker, &context) > 0 || worker.index() > 0, "nothing is shown");
    });
    let ended = guards.unwrap().join().into_iter().all(|worker| worker.is_ok());
    if ended && pool.budget().peak() > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Each worker inserts numbers and words that any worker may own.
fn program(worker: &mut Worker, context: &Context) -> usize {
    assert_eq!(worker.peers(), 4);
    let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
    let (mut numbers_in, mut words_in) = worker.dataflow::<u64, _, _>(|scope| {
        let (numbers_in, pairs) = scope.new_collection::<(u64, u64), isize>();
        let (words_in, words) = scope.new_collection::<(u64, String), isize>();
        let rows = (pairs.clone().arrange_rows(context), words.clone().arrange_rows(context));
        let stock = pairs.clone().join_map(words.clone(), |key, a, b| (*key, *a, b.clone()));
        let ours = rows.0.join_rows(rows.1, |key, a, b| Some((key.get(), a.get(), b.get())));
        same(stock, ours, &seen, &mut probe);
        let stock = words.clone().map(|(_, word)| word).count();
        let ours = words.clone().map(|(_, word)| word).count_rows(context);
        same(stock, ours, &seen, &mut probe);
        // The same with record batches: a join by number, and the greatest number of each word.
        let (a, b) = (columns_of(pairs.clone()), columns_of(words.clone()));
        let by_number = b.clone().arrange_by(context, "number").unwrap();
        let ours = a.arrange_by(context, "number").unwrap();
        let ours = ours.join_rows(by_number, ["other", "word"]).unwrap();
        let stock = pairs.join_map(words.clone(), |_, other, word| (*other, word.clone()));
        same(stock, rows_of::<(u64, String), _>(ours), &seen, &mut probe);
        let ours = b.arrange_by(context, "word").unwrap();
        let ours = ours.reduce_columns([max("number")]).unwrap().changes();
        let stock = words.map(|(number, word)| (word, number)).reduce(|_, numbers, out| {
            out.push((numbers.iter().map(|(number, _)| **number).max().unwrap(), 1));
        });
        let stock = stock.map(|(word, number)| (number, word));
        let ours = ours.project(["max(number)", "word"]).unwrap();
        same(stock, rows_of::<(u64, String), _>(ours), &seen, &mut probe);
        (numbers_in, words_in)
    });
    let mut numbers = Numbers(worker.index() as u64);
    for round in 0..5u64 {
        // The first round fills more than one piece for each worker.
        for _ in 0..if round == 0 { 20_000 } else { 200 } {
            let key = numbers.below(5_000);
            numbers_in.update((key, numbers.below(3)), if numbers.below(4) == 0 { -1 } else { 1 });
            words_in.update((key, "word".repeat(key as usize % 9)), 1);
        }
        numbers_in.advance_to(round + 1);
        numbers_in.flush();
        words_in.advance_to(round + 1);
        words_in.flush();
        step_until(worker, || !probe.less_than(&(round + 1)));
    }
    seen.get()
}

fn two_processes() {
    // Two free ports; both listeners stay open until both ports are known.
    let listeners = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let hosts = listeners.each_ref().map(|listener| listener.local_addr().unwrap().to_string());
    drop(listeners);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", hosts.join("\n")).unwrap();
    let start = |process: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["-w", "2", "-n", "2", "-p", &process.to_string(), "-h"])
            .arg(file.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut processes = [0, 1].map(start);
    let started = Instant::now();
    let mut ended = [None; 2];
    while ended.iter().any(Option::is_none) {
        for (process, ended) in processes.iter_mut().zip(&mut ended) {
            if ended.is_none() {
                *ended = process.try_wait().unwrap();
            }
        }
        let failed = ended.iter().flatten().any(|status| !status.success());
        if failed || started.elapsed() > DEADLINE {
            processes.iter_mut().for_each(|process| drop(process.kill()));
            panic!("processes ended with {ended:?} after {:?}", started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
