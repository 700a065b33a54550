//! Sorts record batches from one thread for another: only rows beyond the memory limit touch a
//! file.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator};
use windrow_files::{Inputs, Job, Limits, ReadOptions, SortSpec, Source, desc};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let batch = |from: i64| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 1000));
        RecordBatch::try_from_iter([("id", ids)])
    };
    let schema = batch(0)?.schema();
    let (sender, receiver) = sync_channel(2);
    let producer = thread::spawn(move || {
        (0..100).map(|n| batch(n * 1000)).try_for_each(|batch| sender.send(batch))
    });
    let source = Source::reader("channel", RecordBatchIterator::new(receiver, schema));
    let inputs = Inputs::open(&[source], &ReadOptions::default())?;
    let job = Job::sort(inputs, &SortSpec::by(desc("id")))?;
    let mut rows = 0;
    for batch in job.batches(&Limits::default().threads(2))? {
        rows += batch?.num_rows();
    }
    producer.join().map_err(|_| "the producer failed")??;
    println!("{rows} rows");
    Ok(())
}
