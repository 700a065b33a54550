//! Permutations, compared with a stable sort by the model's comparison.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, LargeStringArray,
    RecordBatch, StringArray, StringViewArray, UInt64Array,
};
use proptest::prelude::*;

use super::argsort;
use crate::order::{Order, SortColumn, asc, desc};
use crate::rows::RowEncoder;
use crate::rows::tests::arrays::Rng;
use crate::rows::tests::{model, tables};

/// Makes some texts null, without or with their bytes under the nulls.
fn with_nulls(rng: &mut Rng, texts: StringArray, nulls: usize) -> ArrayRef {
    let valid = |at: usize| nulls == 0 || !at.is_multiple_of(nulls) && rng.below(9) > 0;
    let valid: Vec<bool> = (0..texts.len()).map(valid).collect();
    if !nulls.is_multiple_of(2) {
        let own = texts.iter().zip(&valid).map(|(text, valid)| text.filter(|_| *valid));
        return Arc::new(own.collect::<StringArray>());
    }
    let (offsets, bytes, _) = texts.into_parts();
    Arc::new(StringArray::new(offsets, bytes, Some(valid.into())))
}

/// Returns the same texts in each layout, also with bytes under nulls.
fn layouts(texts: &StringArray) -> [ArrayRef; 5] {
    let dictionary = texts.iter().collect::<DictionaryArray<Int32Type>>();
    // One value is a duplicate, and one value belongs to no row.
    let values = dictionary.values().as_string::<i32>().iter().flatten();
    let values = StringArray::from_iter_values(["", "zz"].into_iter().chain(values).chain(["zz"]));
    let keys = dictionary.keys().unary::<_, Int32Type>(|key| key + 2);
    let under = texts.iter().map(|text| text.unwrap_or("under"));
    let under = StringArray::from_iter_values(under);
    let (offsets, bytes, _) = under.into_parts();
    [
        Arc::new(texts.iter().collect::<StringViewArray>()),
        Arc::new(texts.iter().collect::<LargeStringArray>()),
        Arc::new(DictionaryArray::new(keys, Arc::new(values))),
        Arc::new(StringArray::new(offsets, bytes, texts.nulls().cloned())),
        Arc::new(texts.clone()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn strings_of_all_layouts_are_sorted_alike(
        seed: u64,
        rows in 250usize..6000,
        distinct in 1usize..5000,
        longest in 1usize..120,
        groups in 1u64..9000,
        nulls in 0usize..6,
    ) {
        let rng = &mut Rng::new(seed);
        let words: Vec<String> = (0..distinct)
            .map(|_| (0..rng.below(longest)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect())
            .collect();
        let texts = (0..rows).map(|_| Some(words[rng.below(distinct)].as_str()));
        let texts: Vec<_> = texts.collect();
        let some = |text: Option<_>| text.filter(|_| rng.below(9) >= nulls);
        let texts: StringArray = texts.into_iter().map(some).collect();
        let group: ArrayRef =
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|_| rng.next() % groups)));
        let skipped = rng.below(100);
        let (first, descending) = (rng.flip(), rng.flip());
        let names = if first { ["a", "b"] } else { ["b", "a"] };
        let by = names.map(|name| if descending { desc(name) } else { asc(name) });
        let orders = layouts(&texts).map(|texts| {
            let columns = [("a", texts, true), ("b", Arc::clone(&group), false)];
            let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
            let layout = Order::by(by.to_vec()).bind(&batch.schema()).unwrap();
            argsort(&layout, &batch.slice(skipped, rows - skipped)).unwrap()
        });
        for order in &orders[..4] {
            prop_assert_eq!(order, &orders[4]);
        }
    }
}

fn check(rng: &mut Rng, batch: &RecordBatch, keys: usize) {
    let by: Vec<model::By> = (0..keys)
        .map(|column| model::By { column, descending: rng.flip(), nulls_first: rng.flip() })
        .collect();
    let columns: Vec<SortColumn> = by
        .iter()
        .map(|by| SortColumn {
            name: format!("k{}", by.column),
            descending: by.descending,
            nulls_first: by.nulls_first,
        })
        .collect();
    let layout = Order::by(columns).bind(&batch.schema()).unwrap();
    let values = model::rows([batch]);
    let mut expected: Vec<u32> = (0..batch.num_rows() as u32).collect();
    expected.sort_by(|&a, &b| model::compare(&by, &values[a as usize], &values[b as usize]));
    assert_eq!(argsort(&layout, batch).unwrap().values(), &expected[..], "{by:?} {batch:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn many_rows(seed: u64, keys in 1usize..5, spread in 0usize..60, rows in 32_000usize..80_000) {
        let rng = &mut Rng::new(seed);
        // Nullable numbers, beside small numbers and strings.
        let number = |rng: &mut Rng| (rng.below(9) > 0).then(|| rng.next() >> spread);
        let first: ArrayRef = Arc::new(UInt64Array::from_iter((0..rows).map(|_| number(rng))));
        let second: ArrayRef =
            Arc::new(Int32Array::from_iter_values((0..rows).map(|_| rng.next() as i32)));
        let third: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..rows).map(|_| format!("{:x}", rng.next() >> spread)),
        ));
        let fourth: ArrayRef =
            Arc::new(BooleanArray::from_iter((0..rows).map(|_| Some(rng.flip()))));
        let mut columns = [(first, true), (second, false), (third, false), (fourth, false)];
        columns.rotate_left(rng.below(4));
        let columns = columns.into_iter().zip(["k0", "k1", "k2", "k3"]);
        let columns = columns.map(|((column, nullable), name)| (name, column, nullable));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let skipped = rng.below(100);
        check(rng, &batch.slice(skipped, rows - skipped), keys);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_permutation_is_that_of_a_stable_sort(
        seed: u64,
        keys in 1usize..5,
        rows in 0usize..300,
        distinct in 1usize..100,
    ) {
        let rng = &mut Rng::new(seed);
        let batch = tables::table(rng, keys, 0, rows, distinct);
        check(rng, &batch, keys);
    }

    #[test]
    fn large_groups_and_runs(seed: u64, keys in 1usize..4, distinct in 1usize..2000, shape in 0usize..4) {
        let rng = &mut Rng::new(seed);
        let batch = tables::table(rng, keys, 0, 2000, distinct);
        // In order, in reverse, or a few runs, by the result of the first sort.
        let layout = Order::by("k0").bind(&batch.schema()).unwrap();
        let mut order = argsort(&layout, &batch).unwrap().values().to_vec();
        match shape {
            0 => {}
            1 => order.reverse(),
            2 => order.rotate_left(rng.below(2000)),
            _ => order.sort_unstable(),
        }
        // Arrow cannot gather values of width zero; rows can be put in any order.
        let encoder = RowEncoder::new(&layout);
        let rows = encoder.encode(&batch).unwrap();
        let batch = encoder.decode_rows(order.iter().map(|&row| rows.row(row as usize))).unwrap();
        check(rng, &batch, keys);
    }

    #[test]
    fn numbers_that_are_mostly_in_one_place(
        seed: u64,
        base: u64,
        span in 0u32..64,
        outliers in 0usize..60,
        nulls in 0usize..30,
        rows in 1000usize..3000,
    ) {
        let rng = &mut Rng::new(seed);
        let number = |rng: &mut Rng| match rng.below(100) < outliers {
            true => rng.next(),
            false => base.wrapping_add(rng.next() & ((1 << span) - 1)),
        };
        let nulls = nulls.saturating_sub(10);
        let value = |rng: &mut Rng| (rng.below(100) >= nulls).then(|| number(rng));
        let first: ArrayRef = Arc::new(UInt64Array::from_iter((0..rows).map(|_| value(rng))));
        let second: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..rows).map(|_| rng.below(9) as i64)));
        let columns = [("k0", first, nulls > 0), ("k1", second, false)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        check(rng, &batch, 1 + seed as usize % 2);
    }

    #[test]
    fn numbers_that_depend_on_each_other(
        seed: u64,
        distinct in 1u64..9000,
        spread in 1u64..1 << 40,
        noise in 0u64..3,
        nulls: bool,
        rows in 500usize..8400,
    ) {
        let rng = &mut Rng::new(seed);
        let first: Vec<u64> = (0..rows).map(|_| rng.next() % distinct).collect();
        let mut second = |first: u64| {
            let more = match noise {
                0 => 0,
                1 => u64::from(rng.below(9) == 0),
                _ => rng.next(),
            };
            first.wrapping_mul(spread).wrapping_add(more) >> 20
        };
        let second: Vec<u64> = first.iter().map(|&first| second(first)).collect();
        let first: ArrayRef =
            Arc::new(UInt64Array::from_iter(first.iter().map(|&at| (!nulls || at % 7 > 0).then_some(at))));
        let columns = [("k0", first, nulls), ("k1", Arc::new(UInt64Array::from(second)) as ArrayRef, false)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        check(rng, &batch, 2);
    }

    #[test]
    fn strings_of_few_letters(
        seed: u64,
        (first, letters) in (0u8..120, 1usize..80),
        longest in 0usize..14,
        prefix in 0usize..3,
        rows in 200usize..3000,
        nulls in 0usize..5,
        keys in 1usize..3,
    ) {
        let rng = &mut Rng::new(seed);
        let letter = |rng: &mut Rng| char::from((first + rng.below(letters) as u8).min(127));
        let word = |rng: &mut Rng| {
            let len = rng.below(longest + 1);
            "www".chars().take(prefix).chain((0..len).map(|_| letter(rng))).collect::<String>()
        };
        let first = StringArray::from_iter_values((0..rows).map(|_| word(rng)));
        let first = with_nulls(rng, first, nulls);
        let second: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|_| rng.below(5) as i64)));
        let mut columns = [(first, true), (second, false)];
        columns.rotate_left(rng.below(2));
        let columns = columns.into_iter().zip(["k0", "k1"]);
        let columns = columns.map(|((column, nullable), name)| (name, column, nullable));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let skipped = rng.below(50);
        check(rng, &batch.slice(skipped, rows - skipped), keys);
    }

    #[test]
    fn strings_that_are_alike_and_numbers_that_decide(
        seed: u64,
        distinct in 1usize..1500,
        longest in 0usize..20,
        numbers in 1u64..50,
        rows in 20usize..6000,
        nulls in 0usize..5,
        keys in 1usize..4,
    ) {
        let rng = &mut Rng::new(seed);
        let letter = |rng: &mut Rng| if rng.below(20) == 0 { '\0' } else { 'b' };
        let words: Vec<String> = (0..distinct)
            .map(|_| (0..rng.below(longest + 1)).map(|_| letter(rng)).collect())
            .collect();
        let first = (0..rows).map(|_| &words[rng.below(distinct)]);
        let first = StringArray::from_iter_values(first);
        let first = with_nulls(rng, first, nulls);
        let number = |rng: &mut Rng| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(
                (0..rows).map(|_| (rng.next() % numbers) as i64 - 9),
            ))
        };
        let columns = [("k0", first, true), ("k1", number(rng), false), ("k2", number(rng), false)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        check(rng, &batch, keys);
    }
}

/// The order begins with later columns of the schema; a rule reverses no column.
#[test]
fn rules_and_other_columns_play_no_part() {
    let rng = &mut Rng::new(7);
    let rows = 3000;
    let mut column = |many: usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(|_| rng.below(many) as i64)))
    };
    let columns = [("other", column(9)), ("b", column(50)), ("a", column(20))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let value = |at: usize, row: u32| {
        batch.column(at).as_primitive::<arrow_array::types::Int64Type>().value(row as usize)
    };
    let mut expected: Vec<u32> = (0..rows).collect();
    expected.sort_by_key(|&row| (value(2, row), -value(1, row)));
    let order = Order::by("a").then(desc("b"));
    for order in [order.clone(), order.clone().first(), order.last()] {
        let layout = order.bind(&batch.schema()).unwrap();
        assert_eq!(argsort(&layout, &batch).unwrap().values(), &expected[..], "{order:?}");
    }
}

/// Every word tells few texts from the others, so that a group of all others stays open.
#[test]
fn texts_that_differ_late() {
    let lengths: Vec<usize> = (0..900).map(|at| at * 7 % 900).collect();
    let texts = lengths.iter().map(|&len| "a".repeat(len * 16));
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
    let layout = Order::by("text").bind(&batch.schema()).unwrap();
    let mut expected: Vec<u32> = (0..900).collect();
    expected.sort_by_key(|&row| lengths[row as usize]);
    assert_eq!(argsort(&layout, &batch).unwrap().values(), &expected[..]);
}
