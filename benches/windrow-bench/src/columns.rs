//! Random columns: the data of `rows` and `partition`.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Int32Type};

use crate::Result;
use windrow_testdata::rng::Rng;

/// The type of a column, and the distribution of its values: uniform unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U64,
    F64,
    Decimal,
    /// Eight bytes.
    Fixed,
    /// Eight bytes, as binary.
    Binary,
    /// A common start, and words of letters, of the least and the greatest length.
    Utf8(&'static str, u64, u64),
    LargeUtf8(u64, u64),
    View(u64, u64),
    /// Words of 8 to 24 letters, a tenth of them null.
    SomeUtf8,
    /// Words of 4 to 12 letters out of so many.
    Words(u64),
    /// The same with keys.
    Dictionary(u64),
    /// Up to five numbers.
    List,
    /// Up to three words with numbers.
    Map,
    /// A number and a word.
    Struct,
    // Numbers of 64 bits.
    /// A tenth is the greatest of the type, a tenth the least.
    Sentinels,
    Below(u64),
    /// Ascending by less than a number.
    Ascending(u64),
    Descending,
    /// 16 ascending runs.
    Runs,
    /// Nine of ten are below 20.
    Skewed,
    Equal,
    RowNumber,
}

fn word(rng: &mut Rng, least: u64, most: u64) -> String {
    (0..rng.between(least, most)).map(|_| (b'a' + rng.below(26) as u8) as char).collect()
}

fn words(rng: &mut Rng, rows: usize, distinct: u64) -> Vec<String> {
    let words: Vec<String> = (0..distinct).map(|_| word(rng, 4, 12)).collect();
    (0..rows).map(|_| words[rng.below(distinct) as usize].clone()).collect()
}

/// Generates `rows` numbers of a kind.
fn numbers(kind: Kind, rng: &mut Rng, rows: usize) -> Vec<u64> {
    let mut at = 0;
    let mut number = |row: usize| match kind {
        Kind::Sentinels => [u64::MAX, 0, rng.next_u64()][rng.below(10).min(2) as usize],
        Kind::Below(bound) => rng.below(bound),
        Kind::Skewed => [rng.next_u64(), rng.below(20)][rng.below(10).min(1) as usize],
        Kind::Equal => 7,
        Kind::RowNumber => row as u64,
        Kind::Ascending(_) | Kind::Descending | Kind::Runs => {
            if kind == Kind::Runs && row.is_multiple_of(rows.div_ceil(16)) {
                at = 0;
            }
            at += rng.below(if let Kind::Ascending(step) = kind { step } else { 1 << 30 });
            if kind == Kind::Descending { (1 << 52) - at } else { at }
        }
        _ => rng.next_u64(),
    };
    (0..rows).map(&mut number).collect()
}

/// Generates a record batch of columns `c0`, `c1`, ... with `nulls` percent nulls, if nullable.
pub(crate) fn record_batch(
    kinds: impl Iterator<Item = Kind>,
    seed: u64,
    rows: usize,
    nulls: Option<u64>,
) -> Result<RecordBatch> {
    let mut rng = Rng::new(seed);
    let columns = kinds.enumerate().map(|(at, kind)| {
        let column = column(kind, &mut rng, rows, nulls.unwrap_or(0));
        // Few nulls of `SomeUtf8` are in a column by themselves.
        let is_nullable = nulls.is_some() || column.null_count() > 0;
        (format!("c{at}"), column, is_nullable)
    });
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// Generates a column of `rows` rows, with `nulls` percent nulls.
fn column(kind: Kind, rng: &mut Rng, rows: usize, nulls: u64) -> ArrayRef {
    let valid: Vec<bool> = (0..rows).map(|_| !rng.percent(nulls)).collect();
    let nulls = (nulls > 0).then(|| NullBuffer::from(valid.clone()));
    macro_rules! numbers {
        ($array:ty, $of:expr) => {
            Arc::new(<$array>::new(numbers(kind, rng, rows).into_iter().map($of).collect(), nulls))
        };
    }
    macro_rules! valid {
        ($array:ty, $value:expr) => {{
            let mut value = $value;
            Arc::new(<$array>::from_iter(valid.iter().map(|valid| valid.then(|| value()))))
        }};
    }
    let mut bytes = || rng.next_u64().to_le_bytes();
    match kind {
        Kind::Bool => valid!(BooleanArray, || rng.percent(50)),
        Kind::I8 => numbers!(Int8Array, |n| n as i8),
        Kind::I16 => numbers!(Int16Array, |n| n as i16),
        Kind::I32 => numbers!(Int32Array, |n| n as i32),
        Kind::I64 => numbers!(Int64Array, |n| n as i64),
        Kind::F64 => numbers!(Float64Array, |n| n as f64 - 9e18),
        Kind::Decimal => {
            let of = |n: u64| i128::from(n as i64) * i128::from(n.rotate_left(32) >> 8);
            numbers!(Decimal128Array, of)
        }
        Kind::Fixed => {
            let bytes = valid.iter().map(|valid| valid.then(&mut bytes));
            let values = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 8);
            Arc::new(values.expect("values of eight bytes"))
        }
        Kind::Binary => valid!(BinaryArray, bytes),
        Kind::Utf8(start, least, most) => {
            valid!(StringArray, || format!("{start}{}", word(rng, least, most)))
        }
        Kind::LargeUtf8(least, most) => valid!(LargeStringArray, || word(rng, least, most)),
        Kind::View(least, most) => valid!(StringViewArray, || word(rng, least, most)),
        Kind::SomeUtf8 => column(Kind::Utf8("", 8, 24), rng, rows, 10),
        Kind::Words(distinct) => {
            Arc::new(StringArray::from_iter_values(words(rng, rows, distinct)))
        }
        Kind::Dictionary(distinct) => {
            let words = words(rng, rows, distinct);
            Arc::new(words.iter().map(|word| &**word).collect::<DictionaryArray<Int32Type>>())
        }
        Kind::List => {
            let mut list = || (0..rng.below(6)).map(|_| Some(rng.next_u64() as i32)).collect();
            let lists = (0..rows).map(|_| Some(list())).collect::<Vec<Option<Vec<_>>>>();
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
        }
        Kind::Map => {
            let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
            for valid in valid {
                for _ in 0..rng.below(4) {
                    maps.keys().append_value(word(rng, 4, 12));
                    maps.values().append_value(rng.next_u64() as i32);
                }
                maps.append(valid).expect("as many values as keys");
            }
            Arc::new(maps.finish())
        }
        Kind::Struct => {
            let number = column(Kind::U64, rng, rows, 0);
            let word = column(Kind::Utf8("", 4, 12), rng, rows, 0);
            let field = |name, data_type| Arc::new(Field::new(name, data_type, false));
            let fields = [field("a", DataType::UInt64), field("b", DataType::Utf8)];
            Arc::new(StructArray::from(fields.into_iter().zip([number, word]).collect::<Vec<_>>()))
        }
        _ => numbers!(UInt64Array, |n| n),
    }
}
