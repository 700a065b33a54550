//! Replaced and unreplaced plans, merges, limits, change logs, and propagation of errors.

use std::sync::Arc;

use crate::common::{Numbers, Setting, batch, lines, plan, register, rows, session};
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::config::ConfigOptions;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::col;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::stream;
use windrow_datafusion::{WindrowCompact, WindrowConfig, WindrowFrame, rewrite};

const SETTING: Setting = Setting { partitions: 3, batch_size: 100, limit: None };

fn table() -> Vec<Vec<RecordBatch>> {
    let mut numbers = Numbers::new(3);
    (0..3).map(|part| vec![batch(&mut numbers, part * 1000, 500, 20)]).collect()
}

fn ours() -> SessionContext {
    let context = session(SETTING, true);
    register(&context, &table()).expect("a table");
    context
}

#[tokio::test]
async fn plans_hold_together() {
    let context = ours();
    let queries = [
        ("SELECT * FROM t ORDER BY k", "WindrowSortExec"),
        ("SELECT k, count(*) FROM t GROUP BY k ORDER BY k", "WindrowSortExec"),
        ("SELECT sum(i) OVER (PARTITION BY k ORDER BY t) FROM t", "WindrowSortExec"),
        ("SELECT DISTINCT ON (k) * FROM t ORDER BY k, t", "WindrowLatestExec"),
        ("SELECT s, last_value(i ORDER BY t) FROM t GROUP BY s", "WindrowLatestExec"),
        (
            "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY t) = 1",
            "WindrowLatestExec",
        ),
        // Plans without replacement.
        ("SELECT * FROM t ORDER BY k LIMIT 10", "SortExec: TopK"),
        (
            "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY t) = 2",
            "BoundedWindowAggExec",
        ),
        (
            "SELECT * FROM t QUALIFY rank() OVER (PARTITION BY k ORDER BY t) = 1",
            "BoundedWindowAggExec",
        ),
        ("SELECT f, first_value(i ORDER BY t) FROM t GROUP BY f", "AggregateExec"),
        ("SELECT k, first_value(i ORDER BY l, t) FROM t GROUP BY k", "AggregateExec"),
        ("SELECT k, first_value(i ORDER BY t), sum(i) FROM t GROUP BY k", "AggregateExec"),
        (
            "SELECT k, first_value(i ORDER BY t), first_value(i ORDER BY s) FROM t GROUP BY k",
            "AggregateExec",
        ),
        (
            "SELECT k, first_value(i ORDER BY t) FILTER (WHERE i > 0) FROM t GROUP BY k",
            "AggregateExec",
        ),
    ];
    for (sql, operator) in queries {
        let (plan, text) = plan(&context, sql).await.expect(sql);
        assert!(text.contains(operator), "{sql}\n{text}");
        let latest = operator == "WindrowLatestExec";
        assert_eq!(text.contains("WindrowLatestExec"), latest, "{sql}\n{text}");
        SanityCheckPlan::new().optimize(plan, &ConfigOptions::default()).expect("a sane plan");
    }
}

#[tokio::test]
async fn sorts_below_a_projection_become_one() {
    let context = ours();
    let (scan, _) = plan(&context, "SELECT id, k, s FROM t").await.expect("a plan");
    let column = |name, place| Arc::new(Column::new(name, place)) as Arc<dyn PhysicalExpr>;
    let by = |columns: [Arc<dyn PhysicalExpr>; 2]| {
        LexOrdering::new(columns.map(PhysicalSortExpr::new_default)).expect("columns")
    };
    let sort = SortExec::new(by([column("s", 2), column("id", 0)]), scan);
    let sort = Arc::new(sort.with_preserve_partitioning(true));
    let columns =
        [("s", 2), ("id", 0), ("k", 1)].map(|(name, place)| (column(name, place), name.to_owned()));
    let projection = ProjectionExec::try_new(columns, sort).expect("a projection");
    let order = by([column("s", 0), column("id", 1)]);
    let merge = SortPreservingMergeExec::new(order, Arc::new(projection)).with_fetch(Some(700));
    let stock: Arc<dyn ExecutionPlan> = Arc::new(merge);
    let rewritten = rewrite(Arc::clone(&stock), &WindrowConfig::default()).expect("a plan");
    let text = displayable(rewritten.as_ref()).indent(false).to_string();
    assert!(text.starts_with("ProjectionExec"), "{text}");
    assert!(text.contains("partitions=3, fetch=700") && !text.contains("SortPreserving"), "{text}");
    let expected = collect(stock, context.task_ctx()).await.expect("rows");
    let got = collect(rewritten, context.task_ctx()).await.expect("rows");
    assert_eq!(lines(&got), lines(&expected));
}

#[tokio::test]
async fn latest_rows_are_found_before_they_are_spread() {
    let context = ours();
    let sql = "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY t, id) = 1";
    let (got, text) = rows(&context, &format!("{sql} ORDER BY id")).await.expect("rows");
    let place = |of: &str| text.find(of).unwrap_or_else(|| panic!("no {of} in\n{text}"));
    assert!(place("RepartitionExec: partitioning=Hash") < place("WindrowLatestExec"), "{text}");
    assert!(text.contains("key=1, partitions=3"), "{text}");
    context.sql("SET windrow.fuse = false").await.expect("a setting");
    let (expected, text) = rows(&context, &format!("{sql} ORDER BY id")).await.expect("rows");
    assert!(text.contains("key=1\n"), "{text}");
    assert_eq!(lines(&got), lines(&expected));
}

#[tokio::test]
async fn numbers_of_latest_rows_are_ones() {
    let stock = session(SETTING, false);
    register(&stock, &table()).expect("a table");
    let context = ours();
    let numbered = "SELECT *, row_number() OVER (PARTITION BY k, s ORDER BY t DESC, id) n FROM t";
    for (sql, filtered) in [
        (format!("SELECT id, k, s, n FROM ({numbered}) WHERE n = 1 ORDER BY id"), false),
        (format!("SELECT s, id FROM ({numbered}) WHERE n < 2 ORDER BY id"), false),
        (format!("SELECT id, n FROM ({numbered}) WHERE n <= 1 AND i > 0 ORDER BY id"), true),
        (format!("SELECT n, count(*), max(id) FROM ({numbered}) WHERE 1 = n GROUP BY n"), false),
        (format!("SELECT k, n FROM ({numbered}) WHERE n = 1 ORDER BY id LIMIT 7"), false),
    ] {
        for topn in [false, true] {
            for fuse in [false, true] {
                let settings = format!("SET datafusion.optimizer.enable_window_topn = {topn}");
                context.sql(&settings).await.expect("a setting");
                context.sql(&format!("SET windrow.fuse = {fuse}")).await.expect("a setting");
                let (expected, _) = rows(&stock, &sql).await.expect("rows");
                let (got, text) = rows(&context, &sql).await.expect("rows");
                assert!(text.contains("WindrowLatestExec"), "{text}");
                assert!(!text.contains("BoundedWindowAggExec"), "{text}");
                assert_eq!(text.contains("FilterExec"), filtered, "{text}");
                assert_eq!(lines(&got), lines(&expected), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn settings_of_a_session_say_what_is_replaced() {
    let context = ours();
    let sql = "SELECT * FROM t ORDER BY k, id";
    context.sql("SET windrow.sort = false").await.expect("a setting");
    assert!(!plan(&context, sql).await.expect("a plan").1.contains("Windrow"));
    context.sql("SET windrow.merge = true").await.expect("a setting");
    let (merged, text) = rows(&context, sql).await.expect("rows");
    assert!(text.starts_with("WindrowMergeExec") && text.contains(" SortExec"), "{text}");
    context.sql("SET windrow.sort = true").await.expect("a setting");
    context.sql("SET windrow.fuse = false").await.expect("a setting");
    let (sorted, text) = rows(&context, sql).await.expect("rows");
    assert!(text.starts_with("WindrowMergeExec") && text.contains("WindrowSortExec"), "{text}");
    context.sql("SET windrow.topk_bytes = 100").await.expect("a setting");
    let (_, text) = rows(&context, "SELECT * FROM t ORDER BY k, id LIMIT 20").await.expect("rows");
    assert!(text.contains("WindrowSortExec") && text.contains("fetch=20"), "{text}");
    assert_eq!(lines(&merged), lines(&sorted));
}

#[tokio::test]
async fn equal_rows_come_as_they_came() {
    let context = ours();
    let (rows, text) = rows(&context, "SELECT id, b FROM t ORDER BY b").await.expect("rows");
    assert!(text.contains("WindrowSortExec"), "{text}");
    let mut before = (None, -1);
    for batch in rows {
        let ids: &Int64Array = batch.column(0).as_any().downcast_ref().expect("numbers");
        let flags: &arrow_array::BooleanArray =
            batch.column(1).as_any().downcast_ref().expect("flags");
        for (id, flag) in ids.values().iter().zip(flags.iter()) {
            assert!(before.0 != flag || before.1 < *id, "{id} behind {}", before.1);
            before = (flag, *id);
        }
    }
}

#[tokio::test]
async fn names_may_repeat_and_plans_may_recur() {
    let context = ours();
    let stock = session(SETTING, false);
    register(&stock, &table()).expect("a table");
    for sql in [
        "SELECT * FROM t a JOIN t b ON a.id = b.id ORDER BY b.s DESC, a.id",
        "SELECT 1 FROM t ORDER BY k",
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL (SELECT x + 1 FROM n WHERE x < 50 ORDER BY x)) \
         SELECT * FROM n ORDER BY x DESC",
        "SELECT count(*) FROM (SELECT * FROM t ORDER BY k)",
    ] {
        let (expected, _) = rows(&stock, sql).await.expect(sql);
        let (got, text) = rows(&context, sql).await.expect(sql);
        assert_eq!(lines(&got), lines(&expected), "{text}");
    }
}

/// A table with one record batch, followed by an error.
#[derive(Debug)]
struct Failing(Arc<Schema>);

impl PartitionStream for Failing {
    fn schema(&self) -> &Arc<Schema> {
        &self.0
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch =
            RecordBatch::try_new(Arc::clone(&self.0), vec![Arc::new(Int64Array::from(vec![2, 1]))]);
        let error: Result<RecordBatch> = Err(DataFusionError::Execution("the disk is gone".into()));
        let rows = stream::iter([batch.map_err(DataFusionError::from), error]);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.0), rows))
    }
}

#[tokio::test]
async fn errors_of_inputs_are_what_they_were() {
    let context = session(SETTING, true);
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let parts = (0..2).map(|_| Arc::new(Failing(Arc::clone(&schema))) as Arc<dyn PartitionStream>);
    let table = StreamingTable::try_new(Arc::clone(&schema), parts.collect()).expect("a table");
    context.register_table("broken", Arc::new(table)).expect("a table");
    context.sql("SET windrow.merge = true").await.expect("a setting");
    for sort in [true, false] {
        context.sql(&format!("SET windrow.sort = {sort}")).await.expect("a setting");
        let error = rows(&context, "SELECT * FROM broken ORDER BY id").await.expect_err("an error");
        assert!(
            matches!(error.find_root(), DataFusionError::Execution(text) if text == "the disk is gone"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn data_frames_have_their_latest_rows() {
    let context = session(SETTING, true);
    let log = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![2, 1, 2, 3, 1])) as arrow_array::ArrayRef),
        ("lsn", Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3), None, Some(5)]))),
        ("name", Arc::new(StringArray::from(vec!["b", "a", "B", "c", "A"]))),
    ])
    .expect("columns of one length");
    let table = MemTable::try_new(log.schema(), vec![vec![log]]).expect("a table");
    let frame = context.read_table(Arc::new(table)).expect("a frame");
    let latest = frame.latest(vec![col("id")], vec![col("lsn").sort(true, true)]).expect("a frame");
    let sorted = latest.sort(vec![col("id").sort(true, true)]).expect("a frame");
    let state = context.state();
    let plan = state.create_physical_plan(sorted.logical_plan()).await.expect("a plan");
    let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
    assert!(text.contains("WindrowLatestExec"), "{text}");
    let rows = lines(&sorted.collect().await.expect("rows"));
    assert_eq!(rows[3..6], ["| 1  | 5   | A    |", "| 2  | 3   | B    |", "| 3  |     | c    |"]);
}

#[tokio::test]
async fn change_logs_are_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = "op,id,lsn,name\nI,2,1,b\nI,1,2,a\nU,2,3,B\nD,1,4,\nI,3,5,c\n";
    std::fs::write(directory.path().join("a.csv"), log).expect("a file");
    let limited = Setting { limit: Some(256 << 20), ..SETTING };
    for setting in [SETTING, limited] {
        let context = session(setting, true);
        context.register_udtf(WindrowCompact::NAME, Arc::new(WindrowCompact));
        let files = directory.path().join("*.csv");
        let sql = format!(
            "SELECT name, id FROM windrow_compact('{}', 'id', 'lsn', 'op') WHERE id < 3 OR name = 'c'",
            files.display()
        );
        let (got, _) = rows(&context, &sql).await.expect("rows");
        assert_eq!(lines(&got)[3..5], ["| B    | 2  |", "| c    | 3  |"]);
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
        let error =
            context.sql("SELECT * FROM windrow_compact('none', 'id')").await.expect_err("too few");
        assert!(error.to_string().contains("windrow_compact(files, key, order"), "{error}");
        let error = context
            .sql("SELECT * FROM windrow_compact('none', 'id', 'lsn')")
            .await
            .expect_err("none");
        assert!(error.to_string().contains("none"), "{error}");
    }
}

#[tokio::test]
async fn files_that_are_sorted_are_merged() {
    let directory = tempfile::tempdir().expect("a directory");
    let context = session(SETTING, true);
    for part in 0..3 {
        let sql = format!(
            "COPY (SELECT value * 3 + {part} id FROM generate_series(0, 999) s (value)) TO '{}/{part}.parquet'",
            directory.path().display()
        );
        rows(&context, &sql).await.expect("a file");
    }
    let path = directory.path().to_str().expect("text");
    let sorted =
        ParquetReadOptions::default().file_sort_order(vec![vec![col("id").sort(true, false)]]);
    context.register_parquet("sorted", path, sorted).await.expect("a table");
    for fetch in ["", " LIMIT 1500"] {
        context.sql("SET windrow.merge = true").await.expect("a setting");
        context.sql("SET windrow.topk_bytes = 0").await.expect("a setting");
        let sql = format!("SELECT id FROM sorted ORDER BY id{fetch}");
        let (got, text) = rows(&context, &sql).await.expect("rows");
        assert!(text.contains("WindrowMergeExec"), "{text}");
        let ids: Vec<i64> = got
            .iter()
            .flat_map(|batch| {
                let ids: &Int64Array = batch.column(0).as_any().downcast_ref().expect("numbers");
                ids.values().to_vec()
            })
            .collect();
        let all = if fetch.is_empty() { 3000 } else { 1500 };
        assert_eq!(ids, (0..all).collect::<Vec<i64>>());
    }
}
