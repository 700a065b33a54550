//! Columns and mixtures of columns typical for tables, mostly nullable, in addition to the numbers
//! and single texts of [`super::data`].

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;

use super::data::{Shape, word};
use windrow_testdata::rng::Rng;

/// The type of a column.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    F64,
    Decimal,
    Fixed,
    Binary,
    Text,
    View,
}

/// Generates `rows` values of a kind, with `nulls` percent nulls.
fn column(kind: Kind, rng: &mut Rng, rows: usize, nulls: u64) -> ArrayRef {
    let numbers: Vec<u64> = (0..rows).map(|_| rng.next_u64()).collect();
    let some: Vec<bool> = (0..rows).map(|_| !rng.percent(nulls)).collect();
    let valid = (nulls > 0).then(|| NullBuffer::from(some.clone()));
    macro_rules! numbers {
        ($array:ty) => {
            Arc::new(<$array>::new(numbers.into_iter().map(|n| n as _).collect(), valid))
        };
    }
    let bytes: Vec<Option<[u8; 8]>> = match kind {
        Kind::Fixed | Kind::Binary => {
            numbers.iter().zip(&some).map(|(n, some)| some.then(|| n.to_le_bytes())).collect()
        }
        _ => Vec::new(),
    };
    let mut words = |least: u64, most: u64| -> Vec<Option<String>> {
        some.iter().map(|some| some.then(|| word(rng, least, most))).collect()
    };
    match kind {
        Kind::Bool => {
            let bits = numbers.iter().zip(&some).map(|(n, some)| some.then_some(n % 2 == 1));
            Arc::new(BooleanArray::from_iter(bits))
        }
        Kind::I8 => numbers!(Int8Array),
        Kind::I16 => numbers!(Int16Array),
        Kind::I32 => numbers!(Int32Array),
        Kind::I64 => numbers!(Int64Array),
        Kind::F64 => numbers!(Float64Array),
        Kind::Decimal => numbers!(Decimal128Array),
        Kind::Fixed => {
            let values = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 8);
            Arc::new(values.expect("values of eight bytes"))
        }
        Kind::Binary => Arc::new(BinaryArray::from_iter(bytes)),
        Kind::Text => Arc::new(StringArray::from(words(4, 12))),
        Kind::View => Arc::new(StringViewArray::from_iter(words(1, 31))),
    }
}

/// Returns shapes to encode and decode.
pub(super) fn shapes() -> Vec<Shape> {
    use Kind::*;
    let several: [(&str, &[Kind], usize); 10] = [
        ("4 x bool", &[Bool], 4),
        ("4 x i8", &[I8], 4),
        ("4 x i16", &[I16], 4),
        ("4 x decimal128", &[Decimal], 4),
        ("4 x fixed binary 8", &[Fixed], 4),
        ("4 x binary 8", &[Binary], 4),
        ("4 x utf8 4-12", &[Text], 4),
        ("4 x utf8 view 1-31", &[View], 4),
        ("i64 i32 bool utf8", &[I64, I32, Bool, Text], 4),
        ("20 columns", &[I64, Text, Decimal, I32, Text, F64, Bool, I16, Fixed, Text], 20),
    ];
    let mut shapes = Vec::new();
    for (name, kinds, count) in several {
        for nulls in [0, 10] {
            let columns = move |rng: &mut Rng, rows: usize| {
                kinds
                    .iter()
                    .cycle()
                    .take(count)
                    .map(|&kind| column(kind, rng, rows, nulls))
                    .collect()
            };
            match nulls {
                // `codec_shapes` has a case for these.
                0 if matches!(kinds, [Bool | Decimal]) => {}
                0 => shapes.push(Shape::new(name, columns)),
                _ => shapes
                    .push(Shape::new(format!("{name} nullable {nulls} %"), columns).nullable()),
            }
        }
    }
    shapes
}
