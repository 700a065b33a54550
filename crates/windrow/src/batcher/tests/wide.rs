//! Times of up to 32 bytes and diffs of several lanes: batcher, merges, cursors and spines against
//! a map from (key, time) to sums or folded diffs.

use std::collections::btree_map::Entry;

use arrow_array::FixedSizeBinaryArray;
use arrow_schema::{Field, Schema};
use proptest::prelude::*;

use super::cursors::spilling;
use super::*;
use crate::batch::{Merging, RecordBatches};
use crate::cursor::{Cursor, TakenRows};
use crate::spine::Spine;
use windrow_rows::{Antichain, Diff, Error, Fold};

/// A change: key, coordinates of its time, lanes.
type Wide = (u64, [u64; 4], [i64; 3]);
/// Lanes by key and the code of a time.
type Sums = BTreeMap<(String, Vec<u8>), Vec<i64>>;

/// A time that is monotone in some coordinates.
trait Grid: Time {
    fn of(at: [u64; 4]) -> Self;
}

impl Grid for u64 {
    fn of(at: [u64; 4]) -> Self {
        at[0]
    }
}

impl Grid for () {
    fn of(_at: [u64; 4]) {}
}

impl Grid for [u8; 13] {
    fn of(at: [u64; 4]) -> Self {
        let mut code = [0; 13];
        code[1..9].copy_from_slice(&at[0].to_be_bytes());
        code[12] = at[1] as u8;
        code
    }
}

impl Grid for (u64, u32) {
    fn of(at: [u64; 4]) -> Self {
        (at[0], at[1] as u32)
    }
}

impl Grid for ((u64, u64), (i64, usize)) {
    fn of(at: [u64; 4]) -> Self {
        ((at[0], at[1]), (at[2] as i64 - 1, at[3] as usize))
    }
}

/// The combination of diffs.
trait Meaning: std::fmt::Debug {
    const FOLD: Option<&'static dyn Fold>;
    fn add(sum: &mut i64, diff: i64, lane: usize);
    /// True if zeros change nothing.
    const ZEROS: bool;
}

#[derive(Debug)]
struct Sum;

impl Meaning for Sum {
    const FOLD: Option<&'static dyn Fold> = None;
    const ZEROS: bool = true;

    fn add(sum: &mut i64, diff: i64, _lane: usize) {
        *sum += diff;
    }
}

/// The minimum of the first lane, the maximum of all others.
#[derive(Debug)]
struct Bounds;

impl Meaning for Bounds {
    const FOLD: Option<&'static dyn Fold> = Some(&Folds(Self));
    const ZEROS: bool = false;

    fn add(sum: &mut i64, diff: i64, lane: usize) {
        *sum = if lane == 0 { diff.min(*sum) } else { diff.max(*sum) };
    }
}

/// Rows of odd multiplicity.
#[derive(Debug)]
struct Parity;

impl Meaning for Parity {
    const FOLD: Option<&'static dyn Fold> = Some(&Folds(Self));
    const ZEROS: bool = true;

    fn add(sum: &mut i64, diff: i64, _lane: usize) {
        *sum ^= diff;
    }
}

#[derive(Debug)]
struct Folds<M>(M);

impl<M: Meaning + Send + Sync + 'static> Fold for Folds<M> {
    fn name(&self) -> &str {
        std::any::type_name::<M>()
    }

    fn fold(&self, into: &mut [u8], diff: &[u8]) {
        let lanes = into.chunks_mut(8).zip(diff.chunks(8)).enumerate();
        lanes.for_each(|(lane, (into, diff))| {
            let mut sum = <i64 as Diff>::decode(into);
            M::add(&mut sum, <i64 as Diff>::decode(diff), lane);
            Diff::encode(sum, into);
        });
    }

    fn is_zero(&self, diff: &[u8]) -> bool {
        M::ZEROS && diff.iter().all(|&byte| byte == 0)
    }
}

fn code<T: Time>(time: T) -> Vec<u8> {
    let mut code = vec![0; T::WIDTH];
    time.encode(&mut code);
    code
}

fn schema<T: Time>(keys: Keys, lanes: usize) -> Schema {
    let key = keys.record_batch(&[]).schema().field(0).clone();
    let mut fields = vec![key];
    if T::WIDTH > 0 {
        fields.push(Field::new("time", DataType::FixedSizeBinary(T::WIDTH as i32), false));
    }
    fields.extend((0..lanes).map(|lane| Field::new(format!("lane{lane}"), DataType::Int64, false)));
    Schema::new(fields)
}

fn layout<T: Time, M: Meaning>(keys: Keys, lanes: usize) -> Layout {
    let schema = schema::<T>(keys, lanes);
    let order = Order::by("key").diffs((0..lanes).map(|lane| format!("lane{lane}")));
    let order = if T::WIDTH > 0 { order.time("time") } else { order };
    let order = M::FOLD.into_iter().fold(order, Order::fold);
    order.bind(&schema).unwrap()
}

fn record_batch<T: Grid>(keys: Keys, lanes: usize, changes: &[Wide]) -> RecordBatch {
    let of_keys: Vec<Change> = changes.iter().map(|c| (c.0, 0, 0, 0)).collect();
    let mut columns = vec![Arc::clone(keys.record_batch(&of_keys).column(0))];
    if T::WIDTH > 0 {
        let codes = changes.iter().map(|c| Some(code(T::of(c.1))));
        let times =
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(codes, T::WIDTH as i32).unwrap();
        columns.push(Arc::new(times));
    }
    columns.extend((0..lanes).map(|lane| {
        Arc::new(Int64Array::from_iter_values(changes.iter().map(|c| c.2[lane]))) as ArrayRef
    }));
    RecordBatch::try_new(Arc::new(schema::<T>(keys, lanes)), columns).unwrap()
}

fn add<M: Meaning>(sums: &mut Sums, key: String, time: Vec<u8>, diff: &[i64]) {
    match sums.entry((key, time)) {
        Entry::Vacant(entry) => drop(entry.insert(diff.to_vec())),
        Entry::Occupied(mut entry) => {
            let lanes = entry.get_mut().iter_mut().zip(diff).enumerate();
            lanes.for_each(|(lane, (sum, diff))| M::add(sum, *diff, lane));
        }
    }
}

fn is_there<M: Meaning>(lanes: &[i64]) -> bool {
    !M::ZEROS || lanes.iter().any(|&lane| lane != 0)
}

fn without_zeros<M: Meaning>(mut sums: Sums) -> Sums {
    sums.retain(|_, sum| is_there::<M>(sum));
    sums
}

fn model<T: Grid, M: Meaning>(keys: Keys, lanes: usize, changes: &[Wide]) -> Sums {
    let mut sums = Sums::new();
    for &(key, at, diff) in changes {
        add::<M>(&mut sums, keys.text(key), code(T::of(at)), &diff[..lanes]);
    }
    without_zeros::<M>(sums)
}

/// Reads the rows of a batch, which must ascend strictly and have no zeros.
fn read<T: Time, M: Meaning>(keys: Keys, lanes: usize, batch: Batch<T>) -> Sums {
    let mut rows = Vec::new();
    for batch in batch.record_batches(100).unwrap() {
        let batch = batch.unwrap();
        let first = usize::from(T::WIDTH > 0);
        for row in 0..batch.num_rows() {
            let key = match keys {
                Keys::Numbers => keys.text(batch.column(0).as_primitive::<UInt64Type>().value(row)),
                _ => batch.column(0).as_string::<i32>().value(row).to_owned(),
            };
            let time = match T::WIDTH {
                0 => Vec::new(),
                _ => batch.column(1).as_fixed_size_binary().value(row).to_vec(),
            };
            let lane = |at| batch.column(1 + first + at).as_primitive::<Int64Type>().value(row);
            rows.push(((key, time), (0..lanes).map(lane).collect::<Vec<_>>()));
        }
    }
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "rows ascend");
    assert!(rows.iter().all(|row| is_there::<M>(&row.1)), "not all are zero");
    rows.into_iter().collect()
}

/// Reads the changes of a cursor, with times advanced to `since`.
fn seen<T: Time, D: Diff, M: Meaning>(
    keys: Keys,
    mut cursor: Cursor<T>,
    since: &Antichain<T>,
) -> Sums {
    let mut sums = Sums::new();
    let mut decoder = crate::batch::Decoder::new(cursor.layout(), &[0]).unwrap();
    while cursor.has_key() {
        let row = decoder.decode_rows([cursor.row().unwrap()]).unwrap();
        let key = match keys {
            Keys::Numbers => keys.text(row.column(0).as_primitive::<UInt64Type>().value(0)),
            _ => row.column(0).as_string::<i32>().value(0).to_owned(),
        };
        assert_eq!(cursor.value(), Some(&[][..]));
        cursor
            .map_diffs(|time: T, diff: D| {
                let mut lanes = vec![0; 8 * D::LANES];
                diff.encode(&mut lanes);
                let lanes: Vec<i64> = lanes
                    .chunks(8)
                    .map(|lane| i64::from_le_bytes(lane.try_into().unwrap()))
                    .collect();
                if let Some(time) = since.advance(time) {
                    add::<M>(&mut sums, key.clone(), code(time), &lanes);
                }
            })
            .unwrap();
        cursor.step_key().unwrap();
    }
    without_zeros::<M>(sums)
}

fn advanced<T: Time, M: Meaning>(sums: &Sums, since: &Antichain<T>) -> Sums {
    let mut out = Sums::new();
    for ((key, time), diff) in sums {
        if let Some(time) = since.advance(T::decode(time)) {
            add::<M>(&mut out, key.clone(), code(time), diff);
        }
    }
    without_zeros::<M>(out)
}

/// Seals rounds of changes, each ending with a frontier. Reads each batch, the spine of all
/// batches, and the merge of all batches, with original times and with times advanced to `since`.
fn agree<T: Grid, D: Diff, M: Meaning>(
    keys: Keys,
    pool: &Pool,
    rounds: &[(Vec<Wide>, Antichain<T>)],
) {
    let (lanes, layout) = (D::LANES, layout::<T, M>(keys, D::LANES));
    let mut batcher = Batcher::<T>::timed(&layout, pool);
    let mut spine = Spine::<T>::new(&layout, pool).unwrap();
    let (mut pending, mut all) = (Sums::new(), Sums::new());
    let (mut lower, mut batches) = (Antichain::<T>::least(), Vec::new());
    for (changes, upper) in rounds {
        let upper = lower.join(upper);
        let on_time = changes.iter().filter(|change| lower.less_equal(T::of(change.1)));
        let changes: Vec<Wide> = on_time.copied().collect();
        for piece in changes.chunks(30) {
            batcher.push(&record_batch::<T>(keys, lanes, piece)).unwrap();
        }
        for ((key, time), diff) in model::<T, M>(keys, lanes, &changes) {
            add::<M>(&mut pending, key, time, &diff);
        }
        let batch = batcher.seal(&upper).unwrap();
        let (kept, shipped): (Sums, Sums) = without_zeros::<M>(std::mem::take(&mut pending))
            .into_iter()
            .partition(|((_, time), _)| upper.less_equal(T::decode(time)));
        let frontier: Antichain<T> = kept.keys().map(|row| T::decode(&row.1)).collect();
        assert_eq!(batcher.frontier(), &frontier);
        assert_eq!(read::<T, M>(keys, lanes, batch.try_clone().unwrap()), shipped);
        let cursor = Cursor::new([&batch]).unwrap();
        assert_eq!(seen::<T, D, M>(keys, cursor, &Antichain::least()), shipped);
        all.extend(shipped);
        spine.insert(batch.try_clone().unwrap()).unwrap();
        batches.push(batch);
        spine.work(&mut 20).unwrap();
        let since = spine.since().clone();
        assert_eq!(
            seen::<T, D, M>(keys, spine.cursor().unwrap(), &since),
            advanced::<T, M>(&all, &since)
        );
        if !upper.is_empty() {
            spine.set_since(&lower).unwrap();
        }
        (pending, lower) = (kept, upper);
    }
    let since = spine.since().clone();
    let merged = Batch::union(&layout, pool, batches.iter().filter_map(Batch::try_clone));
    assert_eq!(read::<T, M>(keys, lanes, merged.settle().unwrap()), all);
    let mut merging = Merging::new(&layout, pool, batches).advancing(&since).unwrap();
    while !merging.work(&mut 7).unwrap() {}
    assert_eq!(
        read::<T, M>(keys, lanes, merging.finish().unwrap()),
        advanced::<T, M>(&all, &since)
    );
}

fn rounds() -> impl Strategy<Value = Vec<(Vec<Wide>, [[u64; 4]; 2])>> {
    let at = || [0..5u64, 0..4, 0..3, 0..3];
    let change = (0..25u64, at(), [-1..2i64, -1..2, 0..2]);
    prop::collection::vec((prop::collection::vec(change, 0..60), [at(), at()]), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn times_and_diffs_of_any_width(
        rounds in rounds(),
        chunk in 100usize..1500,
        keys in prop::sample::select(&ALL_KEYS[..]),
        spills in any::<bool>(),
    ) {
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        fn of<T: Grid>(rounds: &[(Vec<Wide>, [[u64; 4]; 2])]) -> Vec<(Vec<Wide>, Antichain<T>)> {
            let upper = |corners: &[[u64; 4]; 2]| corners.iter().map(|&at| T::of(at)).collect();
            rounds.iter().map(|(changes, corners)| (changes.clone(), upper(corners))).collect()
        }
        agree::<u64, (i64, i64), Sum>(keys, &pool, &of(&rounds));
        agree::<(), [i64; 3], Sum>(keys, &pool, &of(&rounds));
        agree::<[u8; 13], i64, Sum>(keys, &pool, &of(&rounds));
        agree::<(u64, u32), (i64, [i64; 2]), Sum>(keys, &pool, &of(&rounds));
        agree::<((u64, u64), (i64, usize)), i64, Sum>(keys, &pool, &of(&rounds));
        agree::<((u64, u64), (i64, usize)), [i64; 2], Sum>(keys, &pool, &of(&rounds));
        agree::<u64, i64, Bounds>(keys, &pool, &of(&rounds));
        agree::<(), [i64; 3], Bounds>(keys, &pool, &of(&rounds));
        agree::<u64, i64, Parity>(keys, &pool, &of(&rounds));
        agree::<((u64, u64), (i64, usize)), [i64; 2], Parity>(keys, &pool, &of(&rounds));
    }
}

fn all(record_batches: Result<RecordBatches>) -> Result<Vec<RecordBatch>> {
    record_batches?.map(|record_batch| Ok(record_batch?)).collect()
}

#[test]
fn lanes_that_do_not_fit_are_told_whatever_meets_first() {
    let keys = Keys::Texts;
    let layout = layout::<u64, Sum>(keys, 2);
    let pool = tiny(300);
    let sealed = |diff: [i64; 3]| {
        let mut batcher = Batcher::new(&layout, &pool);
        batcher.push(&record_batch::<u64>(keys, 2, &[(1, [0; 4], diff)])).unwrap();
        batcher.finish().unwrap()
    };
    let parts = [[5, i64::MAX, 0], [0, 1, 0], [-5, -3, 0]];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let of = |count: usize| {
            let batches = order[..count].iter().map(|&at| sealed(parts[at]));
            Batch::union(&layout, &pool, batches).settle().unwrap()
        };
        let sums = read::<u64, Sum>(keys, 2, of(3));
        assert_eq!(sums.into_values().collect::<Vec<_>>(), [vec![0, i64::MAX - 2]], "{order:?}");
        let found = all(of(2).record_batches(10));
        let wraps = matches!(found, Err(Error::DiffOverflow { .. }));
        assert_eq!(wraps, !order[..2].contains(&2), "{order:?}");
    }
}

#[test]
fn what_lanes_cannot_say_is_refused() {
    let keys = Keys::Numbers;
    let layout = layout::<u64, Sum>(keys, 2);
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    batcher.push(&record_batch::<u64>(keys, 2, &[(1, [0; 4], [1, 1, 0])])).unwrap();
    let batch = batcher.finish().unwrap().settle().unwrap();
    let mut cursor = Cursor::new([&batch]).unwrap();
    assert!(matches!(cursor.map_times(|_, _| {}), Err(Error::InvalidOrder(_))));
    assert!(matches!(cursor.map_diffs(|_, _: [i64; 3]| {}), Err(Error::InvalidOrder(_))));
    assert!(
        cursor.map_diffs(|time, diff: (i64, i64)| assert_eq!((time, diff), (0, (1, 1)))).is_ok()
    );
    let snapshot = all(batch.try_clone().unwrap().snapshot(10));
    assert!(matches!(snapshot, Err(Error::InvalidOrder(_))), "{snapshot:?}");
    let none: [&str; 0] = [];
    assert!(matches!(
        Order::by("key").diffs(none).bind(layout.schema()),
        Err(Error::InvalidOrder(_))
    ));
    let twice = Order::by("key").diffs(["lane0", "lane0"]).bind(layout.schema());
    assert!(matches!(twice, Err(Error::InvalidOrder(_))));
    let wide = Schema::new(vec![
        Field::new("time", DataType::FixedSizeBinary(33), false),
        Field::new("lane", DataType::Int64, false),
    ]);
    let bound = Order::by("lane").time("time").diff("lane").bind(&wide);
    assert!(matches!(bound, Err(Error::UnsupportedColumn { .. })));
}

#[test]
fn folds_are_taken_and_are_refused_where_there_are_none() {
    let keys = Keys::Numbers;
    let layout = layout::<u64, Bounds>(keys, 1);
    let sealed = |changes: &[Wide]| {
        let mut batcher = Batcher::new(&layout, &Pool::unlimited());
        batcher.push(&record_batch::<u64>(keys, 1, changes)).unwrap();
        batcher.finish().unwrap().settle().unwrap()
    };
    let at = |time, diff| (1, [time, 0, 0, 0], [diff, 0, 0]);
    let batches = [sealed(&[at(0, 7), at(1, 5)]), sealed(&[at(0, 6), at(2, 1)])];
    let mut cursor = Cursor::new(&batches).unwrap();
    let mut taken = TakenRows::new();
    cursor.take_rows(1u64, &mut taken).unwrap();
    let least: Vec<i64> =
        taken.iter().map(|row| <i64 as Diff>::decode(&row[row.len() - 8..])).collect();
    assert_eq!(least, [5]);

    let snapshot = all(batches[0].try_clone().unwrap().snapshot(10));
    assert!(matches!(snapshot, Err(Error::InvalidOrder(_))), "{snapshot:?}");
    #[cfg(feature = "ipc")]
    {
        let directory = tempfile::tempdir().unwrap();
        let spine = Spine::<u64>::new(&layout, &Pool::unlimited()).unwrap();
        assert!(matches!(spine.save(directory.path()), Err(Error::InvalidOrder(_))));
    }
    assert!(matches!(Layout::from_bytes(&layout.to_bytes()), Err(Error::InvalidOrder(_))));
    assert_ne!(layout.to_bytes(), self::layout::<u64, Parity>(keys, 1).to_bytes());
    let sorted = Order::by("key").fold(&Folds(Bounds)).bind(layout.schema());
    assert!(matches!(sorted, Err(Error::InvalidOrder(_))));
}
