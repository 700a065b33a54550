//! A shop's change log: TPC-H orders, inserted, updated, deleted, reinserted.
//!
//! ```text
//! order -> its events, each at a time -> all events by time, numbered (lsn)
//!       -> shuffled within windows -> some delivered twice -> file
//! ```
//!
//! An updated order starts open (O) and continues with P and F, while its price changes to TPC-H's.
//! Orders without updates keep the status of TPC-H. A delete carries the last row. Rows, keys and
//! texts are TPC-H's; times after the order date are generated here.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tpchgen::generators::{Order, OrderGenerator};

use crate::rng::Rng;
use crate::{Op, Result, Summary};

/// Events are out of place by less than this many rows.
const WINDOW: usize = 512;
const BATCH: usize = 8192;
/// Small, so that a small file has several row groups.
const ROW_GROUP: usize = 16_384;

/// Shares of the orders, in percent.
const UPDATED: u64 = 33;
const DELETED: u64 = 5;
/// Of the deleted.
const REINSERTED: u64 = 15;
/// Of the events.
const DUPLICATED: u64 = 1;

const DAY: i64 = 86_400_000_000;

/// A change. `lsn` is 0 until numbered.
#[derive(Clone)]
struct Event<'a> {
    order: &'a Order<'a>,
    op: Op,
    status: &'static str,
    /// In cents.
    price: i64,
    at: i64,
    lsn: i64,
}

/// Writes the change log of the orders of TPC-H at this scale factor.
pub fn write(file: &Path, scale: f64, seed: u64) -> Result<Summary> {
    if !(scale > 0.0 && scale <= 1.0) {
        return Err("--scale must be above 0 and at most 1: all events are held in memory".into());
    }
    let mut rng = Rng::new(seed);
    let generator = OrderGenerator::new(scale, 1, 1);
    let orders: Vec<Order<'_>> = generator.iter().collect();
    let mut summary = Summary { file: file.to_owned(), ..Summary::default() };
    let mut events = Vec::new();
    for order in &orders {
        let last = live(order, &mut rng, &mut events);
        summary.live += u64::from(last != Op::Delete);
    }
    number(&mut events, &mut rng);
    let delivered = deliver(events, &mut rng);
    delivered.iter().for_each(|event| summary.count(event.op));

    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build();
    let schema = batch(&[])?.schema();
    let mut writer = ArrowWriter::try_new(File::create(file)?, schema, Some(properties))?;
    for events in delivered.chunks(BATCH) {
        writer.write(&batch(events)?)?;
    }
    writer.close()?;
    summary.rows = delivered.len() as u64;
    summary.bytes = std::fs::metadata(file)?.len();
    Ok(summary)
}

/// Appends the events of one order; returns `Op::Delete` only if the last event is a delete.
fn live<'a>(order: &'a Order<'a>, rng: &mut Rng, events: &mut Vec<Event<'a>>) -> Op {
    let updates = if rng.percent(UPDATED) { rng.between(1, 3) } else { 0 };
    let mut event = Event {
        order,
        op: Op::Insert,
        status: if updates > 0 { "O" } else { order.o_orderstatus.as_str() },
        price: order.o_totalprice.0,
        at: i64::from(order.o_orderdate.to_unix_epoch()) * DAY + rng.below(DAY as u64) as i64,
        lsn: 0,
    };
    let last_price = event.price;
    if updates > 0 {
        event.price = last_price * rng.between(80, 120) as i64 / 100;
    }
    events.push(event.clone());
    event.op = Op::Update;
    for left in (0..updates).rev() {
        event.at += later(rng, 30);
        event.status = if event.status == "O" && left > 0 { "P" } else { "F" };
        event.price =
            if left == 0 { last_price } else { last_price * rng.between(95, 105) as i64 / 100 };
        events.push(event.clone());
    }
    if !rng.percent(DELETED) {
        return Op::Update;
    }
    event.at += later(rng, 60);
    event.op = Op::Delete;
    events.push(event.clone());
    if !rng.percent(REINSERTED) {
        return Op::Delete;
    }
    event.at += later(rng, 10);
    event.op = Op::Insert;
    event.status = "O";
    events.push(event);
    Op::Insert
}

/// Returns a time span of up to `days`, never zero, so that an order's events have distinct times.
fn later(rng: &mut Rng, days: i64) -> i64 {
    1 + rng.below((days * DAY) as u64) as i64
}

/// Sorts the events by time and assigns log positions. Positions have gaps, like byte offsets.
fn number(events: &mut [Event<'_>], rng: &mut Rng) {
    events.sort_by_key(|event| event.at);
    let mut lsn = 26_000_000;
    for event in events {
        lsn += 8 * rng.between(12, 60) as i64;
        event.lsn = lsn;
    }
}

/// Returns the events in order of arrival, some with a duplicate a little later.
fn deliver<'a>(mut events: Vec<Event<'a>>, rng: &mut Rng) -> Vec<Event<'a>> {
    for window in events.chunks_mut(WINDOW) {
        if rng.percent(60) {
            rng.shuffle(window);
        }
    }
    let mut delivered = Vec::with_capacity(events.len());
    let mut again = Vec::new();
    for (i, event) in events.into_iter().enumerate() {
        if rng.percent(DUPLICATED) {
            again.push(event.clone());
        }
        delivered.push(event);
        if (i + 1) % (WINDOW / 4) == 0 {
            delivered.append(&mut again);
        }
    }
    delivered.append(&mut again);
    delivered
}

fn batch(events: &[Event<'_>]) -> Result<RecordBatch> {
    let numbers = |of: fn(&Event<'_>) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(events.iter().map(of)))
    };
    let texts = |of: fn(&Event<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(events.iter().map(of)))
    };
    let prices = Decimal128Array::from_iter_values(events.iter().map(|of| of.price.into()));
    let dates = events.iter().map(|of| of.order.o_orderdate.to_unix_epoch());
    let priorities = events.iter().map(|of| of.order.o_shippriority);
    let committed = TimestampMicrosecondArray::from_iter_values(events.iter().map(|of| of.at));
    let columns: [(&str, ArrayRef); 12] = [
        ("lsn", numbers(|of| of.lsn)),
        ("op", texts(|of| of.op.as_str().to_owned())),
        ("o_orderkey", numbers(|of| of.order.o_orderkey)),
        ("o_custkey", numbers(|of| of.order.o_custkey)),
        ("o_orderstatus", texts(|of| of.status.to_owned())),
        ("o_totalprice", Arc::new(prices.with_precision_and_scale(15, 2)?)),
        ("o_orderdate", Arc::new(Date32Array::from_iter_values(dates))),
        ("o_orderpriority", texts(|of| of.order.o_orderpriority.to_owned())),
        ("o_clerk", texts(|of| of.order.o_clerk.to_string())),
        ("o_shippriority", Arc::new(Int32Array::from_iter_values(priorities))),
        ("o_comment", texts(|of| of.order.o_comment.to_owned())),
        ("committed_at", Arc::new(committed)),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, false));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
