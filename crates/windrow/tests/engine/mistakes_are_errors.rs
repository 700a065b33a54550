//! Mistakes of a caller, a file or a disk are errors with advice, never panics.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray,
    types::{Int8Type, Int32Type},
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use windrow::{
    Antichain, Batch, Batcher, Budget, Decoder, Error, Finish, Merging, Order, OrderCheck,
    PartitionBuilder, Partitioner, Pool, PoolOptions, consolidate, desc, merge, merge_in,
};

fn table() -> RecordBatch {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    let columns: [(&str, ArrayRef); 7] = [
        ("id", Arc::new(Int64Array::from(vec![1]))),
        ("name", Arc::new(StringArray::from(vec!["a"]))),
        ("time", Arc::new(Int64Array::from(vec![1]))),
        ("diff", Arc::new(Int32Array::from(vec![1]))),
        ("gone", Arc::new(BooleanArray::from(vec![true]))),
        ("list", Arc::new(lists)),
        ("real", Arc::new(arrow_array::Float64Array::from(vec![1.0]))),
    ];
    let columns = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Returns the engine's error from the result of an Arrow reader.
fn engines(read: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, Error> {
    read.map_err(Error::from)
}

fn bind(order: Order) -> Error {
    order.bind(&table().schema()).expect_err("a mistake")
}

#[test]
fn of_orders() {
    let missing = bind(Order::by("idd"));
    assert!(matches!(&missing, Error::MissingColumn { column, .. } if column == "idd"));
    assert!(missing.to_string().contains("id, name, time"), "{missing}");
    for order in [
        Order::by("id").then("nam"),
        Order::by("id").diff("dif"),
        Order::by("id").diff("diff").time("tim"),
        Order::by("id").last().tombstone("gon"),
    ] {
        assert!(matches!(bind(order), Error::MissingColumn { .. }));
    }
    for order in [
        Order::by("id").diff("name"),
        Order::by("id").diff("real"),
        Order::by("id").diff("diff").time("name"),
        Order::by("id").diff("diff").time("real"),
        Order::by("id").last().tombstone("id"),
    ] {
        assert!(matches!(bind(order), Error::UnsupportedColumn { .. }));
    }
    for order in [
        Order::by(["id", "id"]),
        Order::by("id").then("id"),
        Order::by("diff").diff("diff"),
        Order::by("time").diff("diff").time("time"),
        Order::by("id").diff("diff").time("diff"),
        Order::by("gone").last().tombstone("gone"),
        Order::by("id").tombstone("gone"),
        Order::by("id").first().tombstone("gone"),
        Order::by("id").diff("diff").tombstone("gone"),
        Order::by("id").time("time"),
        Order::by("id").diff("diff").then("name"),
        Order::by("id").diff("diff").last(),
        Order::by("id").diff("diff").first(),
    ] {
        assert!(matches!(bind(order.clone()), Error::InvalidOrder(_)), "{order:?}");
    }
    let twice = Schema::new(vec![Field::new("a", DataType::Int8, false); 2]);
    assert!(matches!(Order::by("a").bind(&twice), Err(Error::InvalidOrder(_))));
}

#[test]
fn of_record_batches() {
    let table = table();
    let layout = Order::by("id").bind(&table.schema()).unwrap();
    let fewer = table.project(&[0, 1]).unwrap();
    let other = table.project(&[0, 1, 2, 3, 4, 5, 5]).unwrap();
    for wrong in [fewer, other] {
        let mut batcher = Batcher::new(&layout, &Pool::unlimited());
        assert!(matches!(batcher.push(&wrong), Err(Error::SchemaMismatch { .. })));
        assert!(matches!(consolidate(&layout, &wrong), Err(Error::SchemaMismatch { .. })));
        let parts = Partitioner::hash(&layout, 3).split(&wrong);
        assert!(matches!(parts, Err(Error::SchemaMismatch { .. })));
        let checked = OrderCheck::new(&layout, 0).push(&wrong);
        assert!(matches!(checked, Err(Error::SchemaMismatch { .. })));
        let merged = merge(&layout, [vec![Ok(wrong)]]).unwrap().map(engines).next();
        assert!(matches!(merged, Some(Err(Error::SchemaMismatch { .. }))));
    }
}

#[test]
fn of_layouts_that_do_not_go_together() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Int64, false),
    ]);
    let loose = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Int64, true),
    ]);
    let narrow = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    let batch = |order: &Order, schema: &Schema| {
        let columns = schema.fields().iter().map(|_| Arc::new(Int64Array::from(vec![1, 2])) as _);
        let rows = RecordBatch::try_new(Arc::new(schema.clone()), columns.collect()).unwrap();
        let layout = order.bind(schema).unwrap();
        let mut batcher = Batcher::new(&layout, &Pool::unlimited());
        batcher.push(&rows).unwrap();
        (layout, batcher.finish().unwrap())
    };
    let by_a = Order::by("a");
    let (layout, _) = batch(&by_a, &schema);
    let others = [
        batch(&by_a, &narrow),
        batch(&by_a, &loose),
        batch(&Order::by("b"), &schema),
        batch(&Order::by(["a", "b"]), &schema),
        batch(&Order::by(desc("a")), &schema),
        batch(&by_a.clone().first(), &schema),
        batch(&by_a.clone().diff("b"), &schema),
    ];
    let pool = Pool::unlimited();
    let union = |other| Batch::union(&layout, &pool, [batch(&by_a, &schema).1, other]);
    for (_, other) in others {
        let read: Result<Vec<_>, _> =
            union(other).record_batches(10).unwrap().map(engines).collect();
        assert!(matches!(read, Err(Error::SchemaMismatch { .. })), "{read:?}");
    }
    for settled in [
        union(batch(&by_a, &narrow).1).settle(),
        union(batch(&by_a, &narrow).1).settle_on(4),
        union(batch(&by_a, &narrow).1).spill(),
        Merging::new(&layout, &pool, vec![batch(&by_a, &narrow).1]).finish(),
    ] {
        assert!(matches!(settled.map(|_| ()), Err(Error::SchemaMismatch { .. })));
    }
    // The same order, bound again, is the same layout.
    assert_eq!(union(batch(&by_a, &schema).1).settle().unwrap().rows(), Some(4));
}

#[test]
fn of_slabs_that_a_decoder_cannot_take() {
    // More distinct words than a dictionary has keys, if many rows are decoded at once.
    let words = |range: std::ops::Range<i32>| {
        let words: Vec<String> = range.map(|word| format!("{word:05}")).collect();
        let words: DictionaryArray<Int8Type> = words.iter().map(|word| Some(&word[..])).collect();
        let numbers = Int64Array::from_iter_values(0..words.len() as i64);
        let columns = [("n", Arc::new(numbers) as ArrayRef), ("word", Arc::new(words))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    for key in ["word", "n"] {
        let layout = Order::by(key).bind(&words(0..1).schema()).unwrap();
        let mut batcher = Batcher::new(&layout, &Pool::unlimited());
        batcher.push(&words(0..100)).unwrap();
        batcher.push(&words(100..200)).unwrap();
        let mut slabs = batcher.finish().unwrap().slabs(Finish::Log);
        let mut slab = |rows| slabs.next(rows, usize::MAX).unwrap().unwrap();
        let mut decoder = Decoder::new(&layout, &[0, 1]).unwrap();
        let found = decoder.decode(&slab(150));
        assert!(
            matches!(&found, Err(Error::Value { column, .. }) if column == "word"),
            "{found:?}"
        );
        assert_eq!(decoder.decode(&slab(50)).unwrap().num_rows(), 50, "{key}");
    }
}

#[test]
fn of_places_in_the_input() {
    let input = numbers(3);
    let layout = Order::by("id").bind(&input.schema()).unwrap();
    let batcher = Batcher::new(&layout, &Pool::unlimited());
    let mut pusher = batcher.pushers(1).remove(0);
    assert!(matches!(pusher.push(&input, u64::MAX - 1), Err(Error::InvalidOrder(_))));
    pusher.push(&input, u64::MAX - 3).unwrap();
    pusher.flush().unwrap();
    assert_eq!(batcher.finish().unwrap().rows(), Some(3), "what was refused left nothing");
    let last = (1 << 24) - 1;
    for (number, fits) in [(last, true), (last + 1, false), (usize::MAX, false)] {
        let run = [Ok(input.slice(0, 1))].into_iter();
        let merged = merge_in(&layout, &Pool::unlimited(), [(number, run)]);
        let read: Result<Vec<_>, _> = merged.record_batches(10).unwrap().map(engines).collect();
        assert_eq!(read.is_ok(), fits, "{number}");
        assert!(fits || matches!(read, Err(Error::InvalidOrder(_))));
    }
}

#[test]
fn of_nulls() {
    let table = table();
    let null = |column: usize| {
        let mut columns = table.columns().to_vec();
        columns[column] = arrow_array::new_null_array(columns[column].data_type(), 1);
        RecordBatch::try_new(table.schema(), columns).unwrap()
    };
    let changes = Order::by("id").diff("diff").time("time").bind(&table.schema()).unwrap();
    let upserts = Order::by("id").last().tombstone("gone").bind(&table.schema()).unwrap();
    for (layout, column, name) in
        [(&changes, 2, "time"), (&changes, 3, "diff"), (&upserts, 4, "gone")]
    {
        let found = consolidate(layout, &null(column));
        assert!(matches!(found, Err(Error::Value { column, .. }) if column == name));
    }
    // Chunks of partitions have the requested schema.
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let named = Field::new("id", DataType::Int64, true);
    let named = named.with_metadata([("of".into(), "another".into())].into());
    let ids = |values: Vec<Option<i64>>| {
        let schema = Arc::new(Schema::new(vec![named.clone()]));
        RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values))]).unwrap()
    };
    let (partitioner, pool) = (Partitioner::round_robin(1), Pool::unlimited());
    let mut builder = PartitionBuilder::new(partitioner, &schema, &pool).unwrap();
    let found = builder.push(&ids(vec![Some(1), None]));
    assert!(matches!(found, Err(Error::Value { column, .. }) if column == "id"));
    builder.push(&ids(vec![Some(1)])).unwrap();
    builder.push(&ids(vec![Some(2)])).unwrap();
    let chunk = builder.flush(0).unwrap().next().unwrap().unwrap();
    assert_eq!((chunk.num_rows(), chunk.schema()), (2, schema));

    // A schema without nullable columns, and record batches with nullable ones.
    let fields: Vec<_> = table.schema().fields().iter().cloned().collect();
    let strict: Vec<_> = fields.iter().map(|f| f.as_ref().clone().with_nullable(false)).collect();
    let strict = Order::by("id").bind(&Schema::new(strict)).unwrap();
    assert_eq!(consolidate(&strict, &table).unwrap().num_rows(), 1);
    for (column, field) in fields.iter().enumerate() {
        let found = consolidate(&strict, &null(column));
        assert!(matches!(found, Err(Error::Value { column, .. }) if column == *field.name()));
    }
}

fn numbers(rows: usize) -> RecordBatch {
    let numbers = Int64Array::from_iter_values((0..rows as i64).map(|i| i * 7919 % 10_007));
    RecordBatch::try_from_iter([("id", Arc::new(numbers) as ArrayRef)]).unwrap()
}

#[test]
fn of_temporary_space() {
    let missing = Pool::in_dir("/no/such/directory", Budget::bytes(1 << 20));
    assert!(matches!(missing, Err(Error::TempSpace { dir, .. }) if dir == "/no/such/directory"));

    let input = numbers(200_000);
    let layout = Order::by("id").bind(&input.schema()).unwrap();
    let options = PoolOptions::new().max_temp_bytes(500_000);
    let pool = Pool::new(Budget::bytes(1 << 20), options).unwrap();
    let mut batcher = Batcher::new(&layout, &pool);
    let pushed = (0..200).try_for_each(|at| batcher.push(&input.slice(at * 1000, 1000)));
    let Err(Error::TempSpace { message, .. }) = pushed else { panic!("{pushed:?}") };
    assert!(message.contains("500000"), "{message}");
    drop(batcher);

    let directory = tempfile::tempdir().unwrap();
    let pool = Pool::in_dir(directory.path(), Budget::bytes(1 << 20)).unwrap();
    std::fs::remove_dir(directory.path()).unwrap();
    let mut batcher = Batcher::new(&layout, &pool);
    let pushed = batcher.push(&input);
    assert!(matches!(pushed, Err(Error::TempSpace { .. })), "{pushed:?}");
}

/// A machine without a temporary directory. The test runs itself again with such a setting.
#[test]
fn of_the_systems_directory() {
    const MISSING: &str = "/no/such/directory";
    let here = std::env::temp_dir();
    if here != std::path::Path::new(MISSING) {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let test = concat!(module_path!(), "::of_the_systems_directory");
        let (_binary, test) = test.split_once("::").unwrap();
        again.args(["--exact", test]).env("TMPDIR", MISSING);
        let ran = again.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let input = numbers(100_000);
    let layout = Order::by("id").bind(&input.schema()).unwrap();
    assert_eq!(consolidate(&layout, &input).unwrap().num_rows(), 100_000);
    let pool = Pool::new(Budget::bytes(1 << 20), PoolOptions::default()).unwrap();
    let mut batcher = Batcher::new(&layout, &pool);
    let pushed = (0..10).try_for_each(|_| batcher.push(&input));
    assert!(matches!(pushed, Err(Error::TempSpace { dir, .. }) if dir == MISSING));
}

#[test]
fn of_pushers_whose_rows_would_be_lost() {
    let input = numbers(10);
    let layout = Order::by("id").bind(&input.schema()).unwrap();
    let batcher = Batcher::new(&layout, &Pool::unlimited());
    let mut pushers = batcher.pushers(2);
    pushers[0].push(&input, 0).unwrap();
    pushers[0].flush().unwrap();
    pushers[1].push(&input, 10).unwrap();
    assert!(matches!(batcher.finish(), Err(Error::Unflushed { pushers: 1 })));

    let batcher = Batcher::new(&layout, &Pool::unlimited());
    drop(batcher.pushers(1));
    let mut pushers = batcher.pushers(2);
    pushers[0].push(&input, 0).unwrap();
    pushers[0].flush().unwrap();
    drop(pushers);
    assert!(batcher.finish().is_ok());
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    let mut pusher = batcher.pushers(1).remove(0);
    let rows = input.clone();
    let panicked = std::thread::spawn(move || {
        pusher.push(&rows, 0).unwrap();
        panic!("a thread that pushes");
    });
    assert!(panicked.join().is_err());
    assert!(matches!(batcher.seal(&Antichain::new()), Err(Error::Lost)));
    assert!(matches!(batcher.finish(), Err(Error::Lost)));

    // A refused record batch left no rows behind.
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    batcher.push(&input).unwrap();
    assert!(batcher.push(&table()).is_err());
    let read: Vec<_> = batcher.finish().unwrap().record_batches(100).unwrap().collect();
    assert_eq!(read[0].as_ref().unwrap().num_rows(), 10);

    // Rows without temporary space are lost: the remaining rows are not the answer.
    let options = PoolOptions::new().max_temp_bytes(4096);
    let pool = Pool::new(Budget::bytes(1), options).unwrap();
    let mut batcher = Batcher::new(&layout, &pool);
    let input = numbers(100_000);
    assert!(batcher.push(&input).is_err());
    assert!(matches!(batcher.finish(), Err(Error::Lost)));
}

#[test]
fn of_those_who_go_on_after_an_error() {
    let changes = |rows: &[[i64; 3]]| {
        let column = |at: usize| Int64Array::from_iter_values(rows.iter().map(|row| row[at]));
        let columns = ["id", "time", "diff"].into_iter().enumerate();
        let columns = columns.map(|(at, name)| (name, Arc::new(column(at)) as ArrayRef));
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let layout = Order::by("id").time("time").diff("diff").bind(&changes(&[]).schema()).unwrap();
    for wrong in [&[[3, 2, 1]][..], &[[3, 6, i64::MAX], [3, 6, i64::MAX]]] {
        let mut batcher: Batcher<i64> = Batcher::timed(&layout, &Pool::unlimited());
        batcher.push(&changes(&[[1, 1, 1], [2, 9, 1]])).unwrap();
        assert_eq!(batcher.seal(&Antichain::at(5)).unwrap().rows(), Some(1));
        assert!(matches!(batcher.seal(&Antichain::at(4)), Err(Error::InvalidOrder(_))));
        batcher.push(&changes(wrong)).unwrap();
        let sealed = batcher.seal(&Antichain::at(8)).map(|_| ());
        assert!(matches!(sealed, Err(Error::Value { .. } | Error::DiffOverflow { .. })));
        assert!(matches!(batcher.seal(&Antichain::at(8)), Err(Error::Lost)));
        assert!(matches!(batcher.finish(), Err(Error::Lost)));
    }

    let layout = Order::by("id").bind(&numbers(1).schema()).unwrap();
    let runs = || {
        let failing = Err(ArrowError::ComputeError("a reader".into()).into());
        let runs = [vec![Ok(numbers(1))], vec![Ok(numbers(1)), failing, Ok(numbers(1))]];
        merge_in(&layout, &Pool::unlimited(), runs.into_iter().map(Vec::into_iter).enumerate())
    };
    let mut slabs = runs().slabs(Finish::Log);
    let first = std::iter::from_fn(|| Some(slabs.next(1, 1))).find_map(Result::err).unwrap();
    assert!(matches!(first, Error::Arrow(_)));
    assert!(matches!(slabs.next(1, 1), Err(Error::Lost)));
    let options = PoolOptions::new().max_temp_bytes(4096);
    let pool = Pool::new(Budget::bytes(1), options).unwrap();
    let input = numbers(20_000);
    let partitioner = Partitioner::round_robin(3);
    let mut builder = PartitionBuilder::new(partitioner, &input.schema(), &pool).unwrap();
    let lost = builder.push(&input).and_then(|()| builder.settle());
    assert!(matches!(lost, Err(Error::TempSpace { .. })), "{lost:?}");
    assert!(matches!(builder.push(&input), Err(Error::Lost)));
    assert!(matches!(builder.flush(0), Err(Error::Lost)));

    let mut merging = Merging::new(&layout, &Pool::unlimited(), vec![runs()]);
    assert!(matches!(merging.work(&mut i64::MAX.clone()), Err(Error::Arrow(_))));
    assert!(matches!(merging.work(&mut 1), Err(Error::Lost)));
    assert!(matches!(merging.finish(), Err(Error::Lost)));
}
