//! The partition hash against its specification, `docs/partition-hash.md`: a slow implementation of
//! the page, the page's test vectors, and consequences for encodings, spread and exchanges.

use std::sync::Arc;

use crate::common::arrays::{Rng, array_of, data_type};
use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Schema, UnionFields};
use windrow::{Order, Partitioner, RowEncoder};

const MOST: usize = 1 << 24;

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e3779b97f4a7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

const NULL: u64 = 0xe7037ed1a0b428db;
const S: [u64; 3] = [0x2d358dccaa6c78a5, 0x8bb84b93962eacc9, 0x4b33a62ed433d4a3];

fn word_of_bytes(b: &[u8]) -> u64 {
    let number = |at: usize, width: usize| {
        b[at..at + width].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let n = b.len();
    let mut word = S[0] ^ n as u64;
    let mut at = 0;
    while n - at > 16 {
        word = fold(word ^ number(at, 8), S[1] ^ number(at + 8, 8));
        at += 16;
    }
    let (first, last) = match n {
        0 => (0, 0),
        1..=3 => (number(0, 1) << 8 | number(n / 2, 1), number(n - 1, 1)),
        4..=7 => (number(0, 4), number(n - 4, 4)),
        8..=15 => (number(0, 8), number(n - 8, 8)),
        _ => (number(n - 16, 8), number(n - 8, 8)),
    };
    fold(word ^ first, S[2] ^ last)
}

fn word_of_128(value: i128) -> u64 {
    fold(value as u64 ^ S[1], (value >> 64) as u64 ^ S[2])
}

fn word_of_words(words: &[u64]) -> u64 {
    let state = words.iter().fold(S[0] ^ words.len() as u64, |state, w| fold(state ^ w, S[1]));
    fold(state, S[2])
}

fn partition(words: &[u64], seed: u64, round: u64, partitions: u64) -> u32 {
    let golden = 0x9e3779b97f4a7c15u64;
    let nth = |n: u64| mix(mix(seed).wrapping_add(n.wrapping_mul(golden)));
    let multiplier = |round: u64| nth(2 * round) | 1;
    let addend = |round: u64| nth(2 * round + 1);
    let mut state = addend(0);
    for pair in words.chunks(2) {
        state = match pair {
            [one, two] => fold(state ^ one, multiplier(0) ^ two),
            _ => fold(state ^ pair[0], multiplier(0)),
        };
    }
    if round > 0 {
        state = fold(state ^ addend(round), multiplier(round));
    }
    state = (state ^ (state >> 32)).wrapping_mul(0xd6e8feb86659fd93);
    (((state >> 32) * partitions) >> 32) as u32
}

fn assign(columns: &[ArrayRef], seed: u64, round: u64, partitions: usize) -> Vec<u32> {
    let names: Vec<String> = (0..columns.len()).map(|index| format!("c{index}")).collect();
    let fields = names.iter().zip(columns);
    let fields: Vec<Field> =
        fields.map(|(name, c)| Field::new(name, c.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns.to_vec()).unwrap();
    let layout = Order::by(names).bind(&schema).unwrap();
    let mut ids = Vec::new();
    let mut partitioner = Partitioner::hash(&layout, partitions).seed(seed).round(round);
    partitioner.assign(&batch, &mut ids).unwrap();
    ids
}

fn id(column: impl Array + 'static) -> u32 {
    assign(&[Arc::new(column)], 0, 0, MOST)[0]
}

fn list(values: &[Option<i64>]) -> ListArray {
    ListArray::from_iter_primitive::<Int64Type, _, _>([Some(values.to_vec())])
}

fn pair() -> StructArray {
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    StructArray::try_from(vec![("one", one), ("text", text)]).unwrap()
}

fn map() -> MapArray {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("a");
    map.values().append_value(1);
    map.append(true).unwrap();
    map.finish()
}

fn union() -> UnionArray {
    let fields = UnionFields::try_new([5], [Field::new("integer", DataType::Int64, true)]).unwrap();
    let ones: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    UnionArray::try_new(fields, vec![5].into(), None, vec![ones]).unwrap()
}

#[test]
fn the_vectors_of_the_page() {
    let of = |words: &[u64]| partition(words, 0, 0, MOST as u64);
    let seeded = |seed, round| {
        let ids = assign(&[Arc::new(Int64Array::from(vec![1]))], seed, round, MOST);
        assert_eq!(ids[0], partition(&[1], seed, round, MOST as u64));
        ids[0]
    };
    let long = "the quick brown fox jumps over the lazy dog";
    let entry = word_of_words(&[word_of_bytes(b"a"), 1]);
    let lines: Vec<(&str, u32, u32)> = vec![
        ("null", id(Int64Array::new_null(1)), of(&[NULL])),
        ("integer 0", id(Int32Array::from(vec![0])), of(&[0])),
        ("integer 1", id(UInt8Array::from(vec![1])), of(&[1])),
        ("integer -1", id(Int16Array::from(vec![-1])), of(&[u64::MAX])),
        (
            "integer 9223372036854775807",
            id(Int64Array::from(vec![i64::MAX])),
            of(&[i64::MAX as u64]),
        ),
        ("Boolean true", id(BooleanArray::from(vec![true])), of(&[1])),
        ("float 0.0", id(Float64Array::from(vec![-0.0])), of(&[0])),
        ("float 1.5", id(Float32Array::from(vec![1.5])), of(&[1.5f64.to_bits()])),
        ("float NaN", id(Float32Array::from(vec![-f32::NAN])), of(&[0x7ff8000000000000])),
        ("decimal, 16 bytes, 1", id(Decimal128Array::from(vec![1])), of(&[word_of_128(1)])),
        (
            "decimal, 32 bytes, -1",
            id(Decimal256Array::from(vec![i256::MINUS_ONE])),
            of(&[fold(word_of_128(-1) ^ S[1], word_of_128(-1) ^ S[2])]),
        ),
        ("text, empty", id(StringArray::from(vec![""])), of(&[word_of_bytes(b"")])),
        ("text a", id(StringArray::from(vec!["a"])), of(&[word_of_bytes(b"a")])),
        ("text abc", id(BinaryArray::from(vec![&b"abc"[..]])), of(&[word_of_bytes(b"abc")])),
        ("text hello", id(StringViewArray::from(vec!["hello"])), of(&[word_of_bytes(b"hello")])),
        (
            "text twelve bytes",
            id(LargeStringArray::from(vec!["twelve bytes"])),
            of(&[word_of_bytes(b"twelve bytes")]),
        ),
        (
            "text the quick brown fox jumps over the lazy dog",
            id(StringViewArray::from(vec![long])),
            of(&[word_of_bytes(long.as_bytes())]),
        ),
        ("list, empty", id(list(&[])), of(&[word_of_words(&[])])),
        ("list 1, null", id(list(&[Some(1), None])), of(&[word_of_words(&[1, NULL])])),
        ("struct of 1 and a", id(pair()), of(&[word_of_words(&[1, word_of_bytes(b"a")])])),
        ("map of a to 1", id(map()), of(&[word_of_words(&[entry])])),
        ("union, type id 5, integer 1", id(union()), of(&[word_of_words(&[5, 1])])),
        ("integer 1, seed 1", seeded(1, 0), partition(&[1], 1, 0, MOST as u64)),
        ("integer 1, round 1", seeded(0, 1), partition(&[1], 0, 1, MOST as u64)),
        ("integer 1, seed 7, round 3", seeded(7, 3), partition(&[1], 7, 3, MOST as u64)),
    ];
    let page = include_str!("../../../../docs/partition-hash.md");
    let lacking: Vec<String> = lines
        .into_iter()
        .map(|(what, got, expected)| {
            assert_eq!(got, expected, "{what}");
            format!("| {what} | {got} |")
        })
        .filter(|line| !page.contains(line))
        .collect();
    assert!(lacking.is_empty(), "the page lacks\n{}", lacking.join("\n"));
    assert_eq!(Partitioner::HASH_VERSION, 1);
}

#[test]
fn intervals_hash_by_their_parts_with_and_without_nulls_beside_them() {
    use arrow_array::types::{IntervalDayTime, IntervalMonthDayNano};
    let (days, nanos) = (IntervalDayTime::new(-3, 7), IntervalMonthDayNano::new(1, -2, 3));
    let word = fold(-3i64 as u64 ^ S[1], 7 ^ S[2]);
    let expected = partition(&[word], 0, 0, MOST as u64);
    assert_eq!(id(IntervalDayTimeArray::from(vec![days])), expected);
    assert_eq!(id(IntervalDayTimeArray::from(vec![Some(days), None])), expected);
    let months = fold(1 ^ S[1], -2i64 as u64 ^ S[2]);
    let expected = partition(&[fold(months ^ S[1], 3 ^ S[2])], 0, 0, MOST as u64);
    assert_eq!(id(IntervalMonthDayNanoArray::from(vec![nanos])), expected);
    assert_eq!(id(IntervalMonthDayNanoArray::from(vec![Some(nanos), None])), expected);
}

#[test]
fn keys_of_any_number_of_columns() {
    let mut rng = Rng::new(1);
    let columns: Vec<Vec<i64>> =
        (0..9).map(|_| (0..3000).map(|_| rng.next() as i64 >> rng.below(60)).collect()).collect();
    for count in 1..=9 {
        for partitions in [1, 2, 100, 65_536] {
            let arrays: Vec<ArrayRef> = columns[..count]
                .iter()
                .map(|column| Arc::new(Int64Array::from(column.clone())) as ArrayRef)
                .collect();
            let ids = assign(&arrays, 5, 2, partitions);
            for (row, id) in ids.into_iter().enumerate() {
                let words: Vec<u64> = columns[..count].iter().map(|c| c[row] as u64).collect();
                assert_eq!(id, partition(&words, 5, 2, partitions as u64));
            }
        }
    }
}

#[test]
fn a_value_hashes_alike_in_every_encoding() {
    let mut rng = Rng::new(2);
    let texts: Vec<Option<String>> = (0..2500)
        .map(|_| {
            (rng.below(9) > 0)
                .then(|| "abcdefghijklmnopqrstuvwxyz0123456789"[..rng.below(37)].into())
        })
        .collect();
    let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let expected = assign(std::slice::from_ref(&plain), 0, 0, 1000);
    let bytes = || texts.iter().map(|text| text.as_ref().map(String::as_bytes));
    let coded: DictionaryArray<Int16Type> = texts.iter().map(Option::as_deref).collect();
    let runs: RunArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
    let others: Vec<ArrayRef> = vec![
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from_iter(texts.clone())),
        Arc::new(BinaryArray::from_iter(bytes())),
        Arc::new(LargeBinaryArray::from_iter(bytes())),
        Arc::new(BinaryViewArray::from_iter(bytes())),
        Arc::new(coded),
        Arc::new(runs),
    ];
    for other in others {
        assert_eq!(
            assign(std::slice::from_ref(&other), 0, 0, 1000),
            expected,
            "{}",
            other.data_type()
        );
        for (start, len) in [(1, 2000), (1023, 1100), (2499, 1), (7, 0)] {
            let ids = assign(&[other.slice(start, len)], 0, 0, 1000);
            assert_eq!(ids, expected[start..start + len], "{}", other.data_type());
        }
    }

    let numbers: Vec<Option<i8>> =
        (0..3000).map(|row| (row % 10 > 0).then_some((row * 7) as i8)).collect();
    let plain = Int8Array::from(numbers.clone());
    let expected = assign(&[Arc::new(plain.clone())], 0, 0, 1000);
    let keys: PrimitiveArray<Int8Type> = numbers.iter().map(|n| n.map(|n| n.max(0))).collect();
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..=127));
    let coded: ArrayRef = Arc::new(DictionaryArray::new(keys.clone(), values));
    assert_eq!(assign(&[coded], 0, 0, 1000), assign(&[Arc::new(keys)], 0, 0, 1000));
    macro_rules! wider {
        ($($array:ty)*) => {
            $(
                let wide = <$array>::from_iter(numbers.iter().map(|n| n.map(|n| n.into())));
                assert_eq!(assign(&[Arc::new(wide)], 0, 0, 1000), expected);
            )*
        };
    }
    wider!(Int16Array Int32Array Int64Array);
    let halves: Vec<f32> = (0..3000).map(|row| row as f32 / 2.0 - 700.0).collect();
    let doubles = Float64Array::from_iter_values(halves.iter().map(|&half| half.into()));
    let halves: ArrayRef = Arc::new(Float32Array::from(halves));
    assert_eq!(assign(&[halves], 0, 0, 1000), assign(&[Arc::new(doubles)], 0, 0, 1000));
    assert_eq!(DataType::Int8, *plain.data_type());
}

#[test]
fn one_partition_and_constant_keys_are_as_row_by_row() {
    let dictionary = DictionaryArray::<Int8Type>::try_new(
        Int8Array::from(vec![0; 2000]),
        Arc::new(StringArray::from(vec!["a"])),
    );
    let of_null = DictionaryArray::<Int8Type>::try_new(
        Int8Array::from(vec![0; 2000]),
        Arc::new(StringArray::from(vec![None::<&str>])),
    );
    let with_null = DictionaryArray::<Int8Type>::try_new(
        (0..2000).map(|row| (row % 3 > 0).then_some(0)).collect::<Int8Array>(),
        Arc::new(StringArray::from(vec!["a"])),
    );
    let ends = Int32Array::from(vec![2000]);
    let run = RunArray::<Int32Type>::try_new(&ends, &Int64Array::from(vec![7])).unwrap();
    let constants: Vec<ArrayRef> = vec![
        Arc::new(dictionary.unwrap()),
        Arc::new(of_null.unwrap()),
        Arc::new(run),
        Arc::new(NullArray::new(2000)),
    ];
    let with_null: ArrayRef = Arc::new(with_null.unwrap());
    let mut keys: Vec<Vec<ArrayRef>> = constants.iter().map(|key| vec![Arc::clone(key)]).collect();
    keys.push(constants.clone());
    keys.push([&constants[..], &constants[..1]].concat());
    keys.push(vec![Arc::clone(&with_null), Arc::clone(&constants[2])]);
    for columns in keys {
        for (round, partitions) in [(0, 1), (0, 7), (3, 7)] {
            let all = assign(&columns, 5, round, partitions);
            for row in [0, 1, 2, 1023, 1024, 1999] {
                let one: Vec<_> = columns.iter().map(|column| column.slice(row, 1)).collect();
                assert_eq!(assign(&one, 5, round, partitions), all[row..=row], "{row}");
            }
            let none: Vec<_> = columns.iter().map(|column| column.slice(9, 0)).collect();
            assert!(assign(&none, 5, round, partitions).is_empty());
        }
    }
    let batch = RecordBatch::try_from_iter([("k", with_null)]).unwrap();
    let layout = Order::by(["k"]).bind(&batch.schema()).unwrap();
    let parts = Partitioner::hash(&layout, 1).split(&batch).unwrap();
    assert_eq!((parts.batch(), parts.offsets()), (&batch, &[0, 2000][..]));
    let other = RecordBatch::try_from_iter([("k", Arc::new(NullArray::new(1)) as ArrayRef)]);
    assert!(Partitioner::hash(&layout, 1).split(&other.unwrap()).is_err());
}

#[test]
fn lists_hash_alike_whatever_their_kind_and_what_lies_between_them() {
    let field = || Arc::new(Field::new("item", DataType::Int64, true));
    let lists =
        [Some(vec![Some(1), None]), None, Some(vec![None, Some(7)]), Some(vec![Some(1), None])];
    let plain = ListArray::from_iter_primitive::<Int64Type, _, _>(lists.clone());
    let expected = assign(&[Arc::new(plain)], 0, 0, MOST);
    assert_eq!(expected[0], expected[3]);
    assert_eq!(expected[1], id(Int64Array::new_null(1)));
    // Nine is outside of every list: before the first, in a null list, after the last.
    let values = [9, 1, 0, 9, 9, 0, 7, 1, 0, 9].map(|value| (value != 0).then_some(value));
    let values: ArrayRef = Arc::new(Int64Array::from_iter(values));
    let nulls = || Some(NullBuffer::from(vec![true, false, true, true]));
    let large = OffsetBuffer::new(vec![1i64, 3, 5, 7, 9].into());
    let others: [ArrayRef; 3] = [
        Arc::new(LargeListArray::new(field(), large, values.clone(), nulls())),
        Arc::new(FixedSizeListArray::new(field(), 2, values.slice(1, 8), nulls())),
        Arc::new(ListViewArray::new(
            field(),
            vec![7, 3, 5, 1].into(),
            vec![2, 2, 2, 2].into(),
            values.clone(),
            nulls(),
        )),
    ];
    for other in others {
        assert_eq!(assign(std::slice::from_ref(&other), 0, 0, MOST), expected);
        assert_eq!(assign(&[other.slice(1, 3)], 0, 0, MOST), expected[1..]);
    }
}

#[test]
fn equal_rows_of_any_type_go_together_wherever_they_stand() {
    let mut rng = Rng::new(3);
    for round in 0..400 {
        let data_type = data_type(&mut rng, round % 4);
        let array = array_of(&mut rng, &data_type, true, 60);
        let ids = assign(std::slice::from_ref(&array), 1, 0, MOST);
        for (start, len) in [(0, 17), (17, 26), (43, 17), (59, 1), (30, 0)] {
            let part = assign(&[array.slice(start, len)], 1, 0, MOST);
            assert_eq!(part, ids[start..start + len], "round {round}, {data_type}");
        }
        // Rows that differ in the row format differ in the hash, except for zeros and NaNs; equal
        // rows do not.
        let field = Field::new("a", data_type.clone(), true);
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
        let layout = Order::by("a").bind(&batch.schema()).unwrap();
        let rows = RowEncoder::new(&layout).encode(&batch).unwrap();
        let floats = data_type.to_string().contains("Float");
        for a in 0..60 {
            for b in 0..a {
                let equal = rows.row(a) == rows.row(b);
                assert!(ids[a] == ids[b] || !equal, "round {round}, {data_type}: {a} and {b}");
                assert!(
                    ids[a] != ids[b] || equal || floats,
                    "round {round}, {data_type}: {a}, {b}"
                );
            }
        }
    }
}

/// Checks that no partition has a quarter more than its share, beyond chance (five deviations).
#[track_caller]
fn check_spread(ids: &[u32], partitions: usize, what: &str) {
    let mut counts = vec![0.0f64; partitions];
    ids.iter().for_each(|&id| counts[id as usize] += 1.0);
    let share = ids.len() as f64 / partitions as f64;
    let most = counts.into_iter().fold(0.0, f64::max);
    assert!(most < 1.25 * share + 5.0 * share.sqrt(), "{what}: {most} of {share}");
}

#[test]
fn keys_with_a_pattern_are_spread_and_spread_again() {
    let rows = 50_000i64;
    type Pattern = (&'static str, fn(i64) -> i64);
    let patterns: [Pattern; 9] = [
        ("in sequence", |row| row),
        ("even", |row| row * 2),
        ("thousands", |row| row * 1000),
        ("pages", |row| row << 12),
        ("upper halves", |row| row << 32),
        ("top bits", |row| row << 47),
        ("days of microseconds", |row| 1_767_225_600_000_000 + row * 86_400_000_000),
        ("floats", |row| (row as f64).to_bits() as i64),
        ("negative", |row| -row),
    ];
    for (name, key) in patterns {
        let keys = Int64Array::from_iter_values((0..rows).map(key));
        let keys: ArrayRef = Arc::new(keys);
        for partitions in [2, 16, 100, 1024] {
            for seed in 0..4 {
                let first = assign(std::slice::from_ref(&keys), seed, 0, partitions);
                check_spread(&first, partitions, &format!("{name}, {partitions}, seed {seed}"));
                // The rows of one partition, in a second exchange.
                let second = assign(std::slice::from_ref(&keys), seed, 1, 16);
                let rows = first.iter().zip(&second).filter(|(first, _)| **first == 1);
                let again: Vec<u32> = rows.map(|(_, second)| *second).collect();
                check_spread(&again, 16, &format!("{name} again, {partitions}, seed {seed}"));
            }
        }
    }
}
