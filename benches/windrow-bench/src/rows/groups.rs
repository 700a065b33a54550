//! Groups: a million rows numbered by their distinct values.
//!
//! Each call starts from an empty table and interns record batches of 8,192 rows, which are drawn
//! from distinct rows at random. The rivals are rows of arrow-row in a table of hashbrown, and with
//! the feature `datafusion` the table that its aggregations choose for the columns.

use ahash::RandomState;
use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::row::{RowConverter, SortField};
use hashbrown::HashTable;
use windrow::{Groups, Pool};
use windrow_testdata::rng::Rng;

use crate::Result;
use crate::columns::{Kind, record_batch};
use crate::harness::{Cells, Contender, Turns, contender, seconds};
use Kind::*;

const ROWS: usize = 1 << 20;
const BATCH: usize = 8192;

/// A name, columns, and the number of distinct rows: keys of arrow-rs's issue, of TPC-H and of
/// ClickBench.
const CASES: [(&str, &[Kind], usize); 10] = [
    ("50 x u64, 100K", &[U64; 50], 100_000),
    ("u64, 1K", &[U64], 1000),
    ("u64, 1M", &[U64], ROWS),
    ("(u64, u64), 100K", &[U64, U64], 100_000),
    ("TPC-H Q1: two texts of 1, 4", &[Utf8("", 1, 1), Utf8("", 1, 1)], 4),
    ("TPC-H Q3: (i64, i32, i32), 300K", &[I64, I32, I32], 300_000),
    (
        "TPC-H Q10: 7 columns, 40K",
        &[I64, Utf8("Customer#", 9, 9), Decimal, Utf8("", 15, 15), Utf8("", 4, 14), TEXT, TEXT],
        40_000,
    ),
    ("ClickBench: (i64, utf8), 200K", &[I64, TEXT], 200_000),
    ("ClickBench: phrase, 100K", &[SomeUtf8], 100_000),
    ("ClickBench: address, 300K", &[Utf8("https://example.org/", 8, 60)], 300_000),
];
const TEXT: Kind = Utf8("", 10, 40);

pub(super) fn measure(cells: &mut Cells) -> Result<()> {
    for (name, kinds, distinct) in CASES {
        let name = format!("groups {name}");
        if !cells.wants(&name) {
            continue;
        }
        cells.unit = "ns/row";
        let fresh = |round: usize| {
            let all = record_batch(kinds.iter().copied(), round as u64, distinct, None)?;
            let mut rng = Rng::new(round as u64);
            let batch = |_| {
                let rows = (0..BATCH).map(|_| rng.below(distinct as u64));
                Ok(take_record_batch(&all, &UInt64Array::from_iter_values(rows))?)
            };
            let batches = (0..ROWS / BATCH).map(batch).collect::<Result<Vec<_>>>()?;
            Ok((batches, ROWS as f64))
        };
        let mut contenders = vec![
            numbered("ours", |batches, numbers| {
                let mut groups = Groups::new(&batches[0].schema(), &Pool::unlimited())?;
                batches.iter().try_for_each(|batch| groups.intern(batch, numbers))?;
                Ok(groups.len())
            }),
            numbered("arrow-row and hashbrown", hashed),
        ];
        #[cfg(feature = "datafusion")]
        contenders.push(numbered("DataFusion", |batches, _| {
            use datafusion::physical_plan::aggregates::group_values::new_group_values;
            use datafusion::physical_plan::aggregates::order::GroupOrdering;
            let mut groups = new_group_values(batches[0].schema(), &GroupOrdering::None)?;
            let mut numbers = Vec::new();
            batches.iter().try_for_each(|batch| groups.intern(batch.columns(), &mut numbers))?;
            Ok(groups.len())
        }));
        cells.race(&name, Turns { rounds: 5, warm: 0, calls: 1 }, fresh, &mut contenders)?;
    }
    Ok(())
}

/// A contender that numbers the rows of record batches, and returns the number of groups.
fn numbered<'a>(
    name: &str,
    work: impl Fn(&[RecordBatch], &mut Vec<u32>) -> Result<usize> + 'a,
) -> Contender<'a, Vec<RecordBatch>> {
    let mut numbers = Vec::new();
    contender(name, move |batches: &Vec<RecordBatch>, _| {
        let (time, groups) = seconds(|| work(batches, &mut numbers))?;
        Ok((time, groups as u64))
    })
}

/// Rows of arrow-row, each hashed, in a table that holds the hash and the number of each group.
fn hashed(batches: &[RecordBatch], numbers: &mut Vec<u32>) -> Result<usize> {
    let fields = batches[0].schema();
    let fields = fields.fields().iter().map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let (mut rows, mut groups) = (converter.empty_rows(0, 0), converter.empty_rows(0, 0));
    let (state, mut table) = (RandomState::with_seeds(1, 2, 3, 4), HashTable::new());
    for batch in batches {
        rows.clear();
        converter.append(&mut rows, batch.columns())?;
        numbers.clear();
        for row in &rows {
            let hash = state.hash_one(row.data());
            let same =
                |&(other, number): &(u64, u32)| other == hash && groups.row(number as usize) == row;
            let found = table.find(hash, same).map(|&(_, number)| number);
            numbers.push(found.unwrap_or_else(|| {
                let number = groups.num_rows() as u32;
                groups.push(row);
                table.insert_unique(hash, (hash, number), |&(hash, _)| hash);
                number
            }));
        }
    }
    Ok(groups.num_rows())
}
