//! The changes between two sides, applied to the old side, give the new side, whatever the sides
//! are.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use windrow_files::{
    CompactSpec, DiffSpec, ErrorKind, Inputs, Job, Limits, ReadOptions, Shown, Source,
};

/// A key of two columns, one of them nullable, and a row of the key: text, a float and a struct.
type Key = (Option<i64>, String);
type Row = (Option<String>, f64, Option<bool>);
type Side = BTreeMap<Key, Row>;

/// A generator of pseudo-random numbers.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn side(&mut self, keys: u64) -> Side {
        let rows = self.below(keys + 1);
        (0..rows)
            .map(|_| {
                let id = Some(self.below(keys) as i64).filter(|id| id % 7 != 6);
                let name = ["", "a", "a\u{0}b", "żółw"][self.below(4) as usize].to_owned();
                ((id, name), self.row())
            })
            .collect()
    }

    fn row(&mut self) -> Row {
        let text = [None, Some(""), Some("x"), Some("a long text that is no prefix")];
        let float = [0.0, -0.0, f64::NAN, 1.5, f64::INFINITY];
        let flag = [None, Some(false), Some(true)];
        let text = text[self.below(4) as usize].map(str::to_owned);
        (text, float[self.below(5) as usize], flag[self.below(3) as usize])
    }

    /// Returns `side` with some rows left out, some added, and some changed.
    fn changed(&mut self, side: &Side, keys: u64) -> Side {
        let mut changed = side.clone();
        changed.retain(|_, _| self.below(5) > 0);
        changed.extend(self.side(keys / 3));
        for row in changed.values_mut() {
            if self.below(4) == 0 {
                *row = self.row();
            }
        }
        changed
    }

    fn shuffled(&mut self, side: &Side) -> RecordBatch {
        let mut rows: Vec<(&Key, &Row)> = side.iter().collect();
        for at in (1..rows.len()).rev() {
            rows.swap(at, self.below(at as u64 + 1) as usize);
        }
        batch(&rows)
    }
}

fn schema() -> SchemaRef {
    let flag = Field::new("flag", DataType::Boolean, true);
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, true),
        Field::new("float", DataType::Float64, false),
        Field::new("inner", DataType::Struct(vec![flag].into()), true),
    ]))
}

fn batch(rows: &[(&Key, &Row)]) -> RecordBatch {
    let schema = schema();
    let DataType::Struct(members) = schema.field(4).data_type() else { unreachable!() };
    let flags: ArrayRef = Arc::new(rows.iter().map(|(_, row)| row.2).collect::<BooleanArray>());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|(key, _)| key.0).collect::<Int64Array>()),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(key, _)| &key.1))),
        Arc::new(rows.iter().map(|(_, row)| row.0.as_deref()).collect::<StringArray>()),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, row)| row.1))),
        Arc::new(StructArray::new(members.clone(), vec![flags], None)),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

/// Returns the rows of `batch`, whose columns from `first` on are the columns of [`schema`].
fn side(batch: &RecordBatch, first: usize) -> BTreeMap<Key, (Option<String>, u64, Option<bool>)> {
    let ids = batch.column(first).as_primitive::<Int64Type>();
    let names = batch.column(first + 1).as_string::<i32>();
    let texts = batch.column(first + 2).as_string::<i32>();
    let floats = batch.column(first + 3).as_primitive::<Float64Type>();
    let flags = batch.column(first + 4).as_struct().column(0).as_boolean().clone();
    let rows = (0..batch.num_rows()).map(|row| {
        let key = (ids.is_valid(row).then(|| ids.value(row)), names.value(row).to_owned());
        let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
        let flag = flags.is_valid(row).then(|| flags.value(row));
        // The two zeros are equal.
        (key, (text, (floats.value(row) + 0.0).to_bits(), flag))
    });
    let found: BTreeMap<_, _> = rows.collect();
    assert_eq!(found.len(), batch.num_rows(), "a key comes once");
    found
}

fn source(name: &str, batches: Vec<RecordBatch>) -> Source {
    let schema = batches[0].schema();
    Source::reader(name, RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
}

fn all(job: Job) -> RecordBatch {
    let batches = job.batches(&Limits::default()).unwrap();
    let batches: Vec<RecordBatch> = batches.map(|batch| batch.unwrap()).collect();
    match batches.first() {
        Some(first) => concat_batches(&first.schema(), &batches).unwrap(),
        None => RecordBatch::new_empty(schema()),
    }
}

fn diff(old: &RecordBatch, new: &RecordBatch, spec: &DiffSpec) -> windrow_files::Result<Job> {
    let (old, new) = (source("old", vec![old.clone()]), source("new", vec![new.clone()]));
    Job::diff(Inputs::open_pair(&[old], &[new], &ReadOptions::default())?, spec)
}

/// Returns `rows` as insertions, in the form of the changes.
fn inserted(rows: &RecordBatch) -> RecordBatch {
    let op: ArrayRef = Arc::new(StringArray::from(vec!["insert"; rows.num_rows()]));
    let mut fields = vec![Arc::new(Field::new("op", DataType::Utf8, false))];
    fields.extend(rows.schema().fields().iter().cloned());
    let columns = [&[op], rows.columns()].concat();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
fn changes_make_the_new_side_of_the_old_one() {
    for seed in 0..150 {
        let mut seeded = Seeded(seed);
        let keys = [3, 40, 900][seed as usize % 3];
        let old_rows = seeded.side(keys);
        let new_rows = seeded.changed(&old_rows, keys);
        let (old, new) = (seeded.shuffled(&old_rows), seeded.shuffled(&new_rows));
        let spec = DiffSpec::by_key(["id", "name"]);
        let changes = all(diff(&old, &new, &spec).unwrap());

        // Each key whose rows differ has one change, and no other key has any.
        let (before, after) = (side(&old, 0), side(&new, 0));
        let differing = before.keys().chain(after.keys());
        let differing: std::collections::BTreeSet<&Key> =
            differing.filter(|key| before.get(*key) != after.get(*key)).collect();
        assert_eq!(changes.num_rows(), differing.len(), "seed {seed}");
        if differing.is_empty() {
            continue;
        }
        for (row, (key, values)) in side(&changes, 1).iter().enumerate() {
            assert!(differing.contains(key), "seed {seed}, change {row}");
            let expected = after.get(key).or(before.get(key));
            assert_eq!(Some(values), expected, "seed {seed}, {key:?}");
        }

        let inputs = [source("old", vec![inserted(&old)]), source("changes", vec![changes])];
        let inputs = Inputs::open(&inputs, &ReadOptions::default()).unwrap();
        let apply = CompactSpec::by_key(["id", "name"]).op_column("op");
        let applied = all(Job::compact(inputs, &apply).unwrap());
        assert_eq!(side(&applied, 0), after, "seed {seed}");
    }
}

#[test]
fn figures_are_those_of_the_changes() {
    let mut seeded = Seeded(7);
    let old_rows = seeded.side(2000);
    let new_rows = seeded.changed(&old_rows, 2000);
    let (old, new) = (seeded.shuffled(&old_rows), seeded.shuffled(&new_rows));
    let key = || DiffSpec::by_key(["id", "name"]);
    let changes = all(diff(&old, &new, &key()).unwrap());
    let figures = all(diff(&old, &new, &key().shown(Shown::Summary)).unwrap());
    let words = changes.column(0).as_string::<i32>();
    let count = |word: &str| words.iter().flatten().filter(|found| *found == word).count() as i64;
    let (before, after) = (side(&old, 0), side(&new, 0));
    let both = || before.iter().filter_map(|(key, old)| Some((old, after.get(key)?)));
    let differ = |of: fn(&(&_, &_)) -> bool| both().filter(of).count() as i64;
    let expected = [
        ("insert", None, count("insert")),
        ("update", None, count("update")),
        ("delete", None, count("delete")),
        ("none", None, differ(|(old, new)| old == new)),
        (
            "update",
            Some("text"),
            differ(|(old, new): &(&(_, u64, _), &(_, u64, _))| {
                let (old, new): (&Option<String>, &Option<String>) = (&old.0, &new.0);
                old != new
            }),
        ),
        (
            "update",
            Some("float"),
            differ(|(old, new): &(&(Option<String>, u64, Option<bool>), _)| old.1 != new.1),
        ),
        (
            "update",
            Some("inner"),
            differ(|(old, new): &(&(Option<String>, u64, Option<bool>), _)| old.2 != new.2),
        ),
    ];
    let rows: Vec<(String, Option<String>, i64)> = (0..figures.num_rows())
        .map(|row| {
            let columns = figures.column(1).as_string::<i32>();
            let column = columns.is_valid(row).then(|| columns.value(row).to_owned());
            let change = figures.column(0).as_string::<i32>().value(row).to_owned();
            (change, column, figures.column(2).as_primitive::<Int64Type>().value(row))
        })
        .collect();
    let expected =
        expected.map(|(change, column, rows)| (change.to_owned(), column.map(str::to_owned), rows));
    assert_eq!(rows, expected);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut seeded = Seeded(3);
    let rows = seeded.side(50);
    let old = seeded.shuffled(&rows);
    let usage = |spec: DiffSpec, part: &str| {
        let error = diff(&old, &old, &spec).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(part), "{error}");
    };
    usage(DiffSpec::by_key("nope"), "nope");
    usage(DiffSpec::by_key("id").op_column("text"), "op_column");
    usage(DiffSpec::by_key([""; 0]), "key");
    let alone = Inputs::open(&[source("old", vec![old.clone()])], &ReadOptions::default());
    let error = Job::diff(alone.unwrap(), &DiffSpec::by_key("id")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    // A key with two rows on either side: equal or different rows, many or few.
    let twice = concat_batches(&old.schema(), [&old, &old.slice(2, 1)]).unwrap();
    let many = vec![old.slice(1, 1); 20_000];
    let many = concat_batches(&old.schema(), &many).unwrap();
    let whole = || DiffSpec::by_key(["id", "name"]);
    for (one, other, part) in [
        (&twice, &old, "old side has more than one row"),
        (&old, &twice, "new side has more than one row"),
        (&many, &old, "old side has more than one row"),
        (&old, &many, "new side has more than one row"),
        (&many, &many, "has more than one row"),
    ] {
        for spec in [whole(), whole().shown(Shown::Summary), whole().select(["name"])] {
            let job = diff(one, other, &spec).unwrap();
            let error = match job.batches(&Limits::default()) {
                Ok(batches) => {
                    batches.filter_map(Result::err).next().expect("an error").to_string()
                }
                Err(error) => error.to_string(),
            };
            assert!(error.contains(part), "{error}");
        }
    }
}
