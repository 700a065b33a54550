//! Costs of a partitioner besides the scatter, each with a plain way beside it: rules, early ends of the
//! hash, replicated rows, slices, null counts, repeated columns, owned record batches.

use arrow::array::{Array, RecordBatch};
use windrow::{Order, Partitioner};

use super::{Options, TURNS};
use crate::Result;
use crate::columns::{Kind, record_batch};
use crate::harness::{Cells, Turns, contender, seconds, timed};

const TEN: [Kind; 10] = [Kind::I64; 10];
/// Rows of an owned record batch: 80 MiB in ten columns.
const LARGE: usize = 1 << 20;

/// A way to do something, given the number of the call.
type Way<'a> = Box<dyn FnMut(usize) -> Result<usize> + 'a>;

fn hash(partitions: usize, of: &[RecordBatch]) -> Result<Partitioner> {
    Ok(Partitioner::hash(&Order::by("c0").bind(&of[0].schema())?, partitions))
}

fn split<'a>(rule: &Partitioner, of: &'a [RecordBatch]) -> Way<'a> {
    let mut rule = rule.clone();
    Box::new(move |turn| Ok(rule.split(&of[turn % of.len()])?.partitions()))
}

/// Splits by the ids that a rule assigns to the rows of `keys`.
fn given<'a>(rule: &Partitioner, keys: &[RecordBatch], of: &'a [RecordBatch]) -> Result<Way<'a>> {
    let (mut rule, mut ids) = (rule.clone(), vec![Vec::new(); keys.len()]);
    ids.iter_mut().zip(keys).try_for_each(|(ids, keys)| rule.assign(keys, ids))?;
    let mut next = move |at: usize| Ok(rule.split_by_ids(&of[at], &ids[at])?.partitions());
    Ok(Box::new(move |turn| next(turn % of.len())))
}

/// Adds up a number of each partition.
fn each<'a>(of: impl Fn(usize) -> usize + 'a) -> Way<'a> {
    Box::new(move |_| Ok((0..64).map(&of).sum()))
}

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    // A record batch for each call of a round, so that no branch predictor learns the ids.
    let make = |kinds: &[Kind], nulls| {
        let of = |seed| record_batch(kinds.iter().copied(), seed, options.rows, nulls);
        (0..TURNS.calls as u64).map(of).collect::<Result<Vec<_>>>()
    };
    let (ten, empty, some) = (make(&TEN, None)?, make(&TEN, Some(0))?, make(&TEN, Some(1))?);
    let (one, word) = (make(&[Kind::Dictionary(1)], None)?, make(&[Kind::Words(1)], None)?);
    let with = |at| ten.iter().map(|of| Ok(of.project(&[0, at])?)).collect::<Result<Vec<_>>>();
    let (twice, two) = (with(0)?, with(1)?);
    let turns = Partitioner::round_robin(64);
    let ranges = Order::by("c0").bind(&ten[0].schema())?;
    let ranges = Partitioner::range_of_sample(&ranges, &ten[0], 64)?;
    let (by_hash, one_hash, constant) = (hash(64, &ten)?, hash(1, &ten)?, hash(64, &one)?);
    let all = |of: &[RecordBatch]| hash(16, of).map(Partitioner::replicate_nulls_and_any);
    let parts = hash(64, &some)?.split(&some[0])?;
    let slice = |at| parts.partition(at).num_rows();
    let of_arrow = |at| some[0].slice(parts.rows(at).start, parts.rows(at).len()).num_rows();
    let counts = |at| (0..10).map(|column| parts.null_count(at, column)).sum();
    let counted = |at| parts.partition(at).columns().iter().map(|of| of.null_count()).sum();
    let same = |of| given(&by_hash, &ten, of);
    for (case, rival, mut ours, mut theirs) in [
        ("in turns", "given ids", split(&turns, &ten), given(&turns, &ten, &ten)?),
        ("by range", "given ids", split(&ranges, &ten), given(&ranges, &ten, &ten)?),
        ("by hash", "given ids", split(&by_hash, &ten), same(&ten)?),
        ("one partition", "64", split(&one_hash, &ten), split(&by_hash, &ten)),
        ("constant key", "texts", split(&constant, &one), split(&hash(64, &word)?, &word)),
        ("nullable", "not", split(&hash(64, &empty)?, &empty), split(&by_hash, &ten)),
        ("replicating", "not", split(&all(&empty)?, &empty), split(&hash(16, &empty)?, &empty)),
        ("1 % nulls to all", "not", split(&all(&some)?, &some), split(&hash(16, &some)?, &some)),
        ("a column twice", "two", same(&twice)?, same(&two)?),
        ("64 slices", "of Arrow", each(slice), each(of_arrow)),
        ("640 null counts", "of slices", each(counts), each(counted)),
    ] {
        let turns = Turns { rounds: options.samples * TURNS.rounds, ..TURNS };
        let mut pair = [timed("ours", |_: &(), at| ours(at)), timed(rival, |_, at| theirs(at))];
        cells.race(case, turns, |_| Ok(((), 1.0)), &mut pair)?;
    }
    // Both free the record batch within the time.
    let away = |name, owned: bool| {
        let mut rule = by_hash.clone();
        contender(name, move |&seed: &usize, _| {
            let batch = record_batch(TEN.into_iter(), seed as u64, LARGE, None)?;
            let split = || if owned { rule.split_owned(batch) } else { rule.split(&batch) };
            Ok(seconds(|| Ok(split()?))?.0)
        })
    };
    let turns = Turns { rounds: options.samples, warm: 0, calls: 1 };
    let mut pair = [away("ours", true), away("split", false)];
    cells.race("80 MiB given away", turns, |round| Ok((round, 1.0)), &mut pair)
}
