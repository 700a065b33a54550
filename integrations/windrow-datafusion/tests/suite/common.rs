//! Random tables, sessions with and without the rule, and the results of a query.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray,
};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use windrow_datafusion::WithWindrow;

/// A deterministic pseudo-random generator.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn some<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(8) > 0).then(|| value(self))
    }
}

/// Generates `rows` rows of many types, with ids from `id` on and few distinct values in most
/// columns.
pub(crate) fn batch(numbers: &mut Numbers, id: i64, rows: usize, values: u64) -> RecordBatch {
    let words = ["", "a", "ab", "abcdefghijklmnop", "b\0", "z", "zz zz zz zz zz zz"];
    let word = |n: &mut Numbers| words[n.below(values.min(7)) as usize];
    let of = |n: &mut Numbers| n.below(values) as i64 - (values / 2) as i64;
    let floats = [0.0, -0.0, 1.5, -1.5, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
    let n = numbers;
    let mut lists = ListBuilder::new(StringBuilder::new());
    for _ in 0..rows {
        let list: Vec<_> = (0..n.below(3)).map(|_| n.some(word)).collect();
        lists.append_option(n.some(|_| list));
    }
    let mut column = |array: &mut dyn FnMut(&mut Numbers) -> ArrayRef| array(n);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(id..id + rows as i64))),
        ("k", column(&mut |n| Arc::new((0..rows).map(|_| n.some(of)).collect::<Int64Array>()))),
        (
            "i",
            column(&mut |n| {
                Arc::new((0..rows).map(|_| n.some(|n| of(n) as i32)).collect::<Int32Array>())
            }),
        ),
        ("s", column(&mut |n| Arc::new((0..rows).map(|_| n.some(word)).collect::<StringArray>()))),
        (
            "v",
            column(&mut |n| Arc::new((0..rows).map(|_| n.some(word)).collect::<StringViewArray>())),
        ),
        (
            "d",
            column(&mut |n| {
                Arc::new((0..rows).map(|_| n.some(word)).collect::<DictionaryArray<Int32Type>>())
            }),
        ),
        (
            "f",
            column(&mut |n| {
                Arc::new(
                    (0..rows)
                        .map(|_| n.some(|n| floats[n.below(7) as usize]))
                        .collect::<Float64Array>(),
                )
            }),
        ),
        (
            "b",
            column(&mut |n| {
                Arc::new((0..rows).map(|_| n.some(|n| n.below(2) == 0)).collect::<BooleanArray>())
            }),
        ),
        (
            "t",
            column(&mut |n| {
                Arc::new((0..rows).map(|_| n.some(of)).collect::<TimestampMicrosecondArray>())
            }),
        ),
        (
            "m",
            column(&mut |n| {
                let values = (0..rows)
                    .map(|_| n.some(|n| i128::from(of(n)) * 7))
                    .collect::<Decimal128Array>();
                Arc::new(values.with_precision_and_scale(20, 2).expect("fits"))
            }),
        ),
        ("l", Arc::new(lists.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, name != "id")),
    )
    .expect("columns of one length")
}

/// The parameters of a session: partitions, rows of a record batch, bytes of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) partitions: usize,
    pub(crate) batch_size: usize,
    pub(crate) limit: Option<usize>,
}

pub(crate) fn runtime(limit: Option<usize>) -> Arc<RuntimeEnv> {
    let builder = RuntimeEnvBuilder::new();
    let builder = match limit {
        Some(limit) => builder.with_memory_pool(Arc::new(FairSpillPool::new(limit))),
        None => builder,
    };
    builder.build_arc().expect("a runtime")
}

/// Creates a session with or without the rule.
pub(crate) fn session(setting: Setting, windrow: bool) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(setting.partitions)
        .with_batch_size(setting.batch_size);
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime(setting.limit))
        .with_default_features();
    let builder = if windrow { builder.with_windrow() } else { builder };
    SessionContext::new_with_state(builder.build())
}

/// Registers `table` as `t`.
pub(crate) fn register(context: &SessionContext, table: &[Vec<RecordBatch>]) -> Result<()> {
    let schema = table.iter().flatten().next().expect("a record batch").schema();
    context.register_table("t", Arc::new(MemTable::try_new(schema, table.to_vec())?))?;
    Ok(())
}

/// Plans `sql`, and returns the plan and its text.
pub(crate) async fn plan(
    context: &SessionContext,
    sql: &str,
) -> Result<(Arc<dyn ExecutionPlan>, String)> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let text = displayable(plan.as_ref()).indent(true).to_string();
    Ok((plan, text))
}

/// Runs `sql`, and returns the rows and the plan's text.
pub(crate) async fn rows(
    context: &SessionContext,
    sql: &str,
) -> Result<(Vec<RecordBatch>, String)> {
    let (plan, text) = plan(context, sql).await?;
    Ok((collect(plan, context.task_ctx()).await?, text))
}

/// Waits until all reservations are released; aborted tasks take some time.
pub(crate) async fn given_back(pool: &Arc<dyn MemoryPool>) {
    let begun = Instant::now();
    while pool.reserved() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes stay", pool.reserved());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Formats rows as text, one per line.
pub(crate) fn lines(batches: &[RecordBatch]) -> Vec<String> {
    // An empty result equals an empty record batch.
    let some = batches.iter().filter(|batch| batch.num_rows() > 0).cloned();
    let batches: Vec<RecordBatch> = some.collect();
    let text =
        datafusion::arrow::util::pretty::pretty_format_batches(&batches).expect("rows").to_string();
    text.lines().map(str::to_owned).collect()
}
