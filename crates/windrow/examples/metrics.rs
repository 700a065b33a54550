//! The figures of a pool in a registry of Prometheus, as a long-running host has it: the host reports
//! the pool whenever it is scraped.
//!
//! ```text
//! cargo run --release -p windrow --example metrics
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use prometheus::{Encoder as _, Gauge, IntCounter, Registry, TextEncoder};
use windrow::arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use windrow::{Batcher, Budget, MetricsRegistry, Order, Pool};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BATCH: u64 = 8192;

/// The figures of one pool. Figures are registered when they are first reported.
#[derive(Default)]
struct Exported {
    registry: Registry,
    counters: HashMap<&'static str, IntCounter>,
    gauges: HashMap<&'static str, Gauge>,
}

impl MetricsRegistry for Exported {
    fn counter(&mut self, name: &'static str, value: u64) {
        let counter = self.counters.entry(name).or_insert_with(|| {
            let counter = IntCounter::new(format!("windrow_{name}_total"), name).expect("a name");
            self.registry.register(Box::new(counter.clone())).expect("registered once");
            counter
        });
        counter.inc_by(value.saturating_sub(counter.get()));
    }

    fn gauge(&mut self, name: &'static str, value: f64) {
        let gauge = self.gauges.entry(name).or_insert_with(|| {
            let gauge = Gauge::new(format!("windrow_{name}"), name).expect("a name");
            self.registry.register(Box::new(gauge.clone())).expect("registered once");
            gauge
        });
        gauge.set(value);
    }
}

fn main() -> Result<()> {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(8 << 20))?;
    let mut exported = Exported::default();
    let batch = |index: u64| {
        let keys =
            (index * BATCH..(index + 1) * BATCH).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let keys = Arc::new(UInt64Array::from_iter_values(keys)) as ArrayRef;
        RecordBatch::try_from_iter([("key", keys)])
    };
    let layout = Order::by("key").bind(&batch(0)?.schema())?;
    let mut batcher = Batcher::new(&layout, &pool);
    for index in 0..400 {
        batcher.push(&batch(index)?)?;
        // A host does this when it is scraped.
        pool.stats().report(&mut exported);
    }
    let rows: usize =
        batcher.finish()?.record_batches(8192)?.map(|b| b.map_or(0, |b| b.num_rows())).sum();
    pool.stats().report(&mut exported);
    TextEncoder::new().encode(&exported.registry.gather(), &mut std::io::stdout())?;
    println!("{rows} rows");
    Ok(())
}
