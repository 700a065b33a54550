//! Column shapes of the benches of rows.

use arrow::array::RecordBatch;

use crate::Result;
use crate::columns::{Kind, record_batch};
use Kind::*;

/// A name, the kinds of columns, and the percents of nulls, of which each makes a shape. `None` is
/// a shape whose columns are not nullable. A number in front of the name counts the columns, which
/// have the kinds in turn.
type Shapes = (&'static str, &'static [Kind], &'static [Option<u64>]);

/// One shape.
pub(super) struct Shape {
    pub(super) name: String,
    kinds: Vec<Kind>,
    nulls: Option<u64>,
}

impl Shape {
    pub(super) fn batch(&self, seed: u64, rows: usize) -> Result<RecordBatch> {
        record_batch(self.kinds.iter().copied(), seed, rows, self.nulls)
    }
}

const PLAIN: &[Option<u64>] = &[None];
const NULLABLE: &[Option<u64>] = &[Some(10)];
const BOTH: &[Option<u64>] = &[None, Some(10)];
const ALL: &[Option<u64>] = &[None, Some(0), Some(10), Some(50)];
const TEXT: Kind = Utf8("", 4, 12);

/// The shapes to encode and decode, with the original motivating case first.
pub(super) const CODEC: &[Shapes] = &[
    ("50 x u64", &[U64], ALL),
    ("10 x u64", &[U64], PLAIN),
    ("4 x u64", &[U64], ALL),
    ("1 x u64", &[U64], PLAIN),
    ("4 x i32", &[I32], PLAIN),
    ("4 x i64", &[I64], PLAIN),
    ("4 x f64", &[F64], PLAIN),
    ("4 x bool", &[Bool], BOTH),
    ("4 x decimal128", &[Decimal], BOTH),
    ("4 x i8", &[I8], BOTH),
    ("4 x i16", &[I16], BOTH),
    ("4 x fixed binary 8", &[Fixed], BOTH),
    ("4 x binary 8", &[Binary], BOTH),
    ("utf8 4-12", &[TEXT], PLAIN),
    ("utf8 1-31", &[Utf8("", 1, 31)], PLAIN),
    ("utf8 64-128", &[Utf8("", 64, 128)], PLAIN),
    ("utf8 shared prefix", &[Utf8("https://example.org/items/", 4, 12)], PLAIN),
    ("4 x utf8 4-12", &[TEXT], BOTH),
    ("4 x utf8 view 1-31", &[View(1, 31)], BOTH),
    ("mixed: i64 f64 i32 bool utf8", &[I64, F64, I32, Bool, TEXT], PLAIN),
    ("i64 i32 bool utf8", &[I64, I32, Bool, TEXT], BOTH),
    ("20 columns", &[I64, TEXT, Decimal, I32, TEXT, F64, Bool, I16, Fixed, TEXT], BOTH),
    ("fixed widths, widest first", &[Decimal, Decimal, I64, I64, I32, I32, I16, I8, Bool], BOTH),
    ("fixed widths, mixed", &[Bool, Decimal, I8, I64, I32, Decimal, I16, I64, I32], BOTH),
    ("dictionary", &[Dictionary(100)], PLAIN),
    ("list", &[List], PLAIN),
    ("struct", &[Struct], PLAIN),
    ("50 x u64 sentinels", &[Sentinels], NULLABLE),
    ("10 x u64 sentinels", &[Sentinels], NULLABLE),
    ("4 x u64 sentinels", &[Sentinels], NULLABLE),
    ("2 x u64 sentinels", &[Sentinels], NULLABLE),
    ("1 x u64 sentinels", &[Sentinels], NULLABLE),
];

/// The shapes to sort.
pub(super) const SORT: &[Shapes] = &[
    ("u64", &[U64], BOTH),
    ("(u64, u64)", &[U64, U64], PLAIN),
    ("(small, small)", &[Below(1000), Below(1_000_000)], PLAIN),
    ("(few words, i64, f64)", &[Words(10_000), I64, F64], PLAIN),
    ("(utf8, i64, f64)", &[Utf8("", 8, 24), I64, F64], PLAIN),
    ("(utf8 shared prefix, i64)", &[Utf8("https://example.org/", 8, 24), I64], PLAIN),
    ("(utf8 nullable, i64, f64)", &[SomeUtf8, I64, F64], PLAIN),
    ("(utf8 view, i64, f64)", &[View(8, 24), I64, F64], PLAIN),
    ("(large utf8, i64, f64)", &[LargeUtf8(8, 24), I64, F64], PLAIN),
    ("(dictionary, i64, f64)", &[Dictionary(100), I64, F64], PLAIN),
    ("u64 sorted", &[Ascending(1 << 30)], PLAIN),
    ("u64 reversed", &[Descending], PLAIN),
    ("(u64, u64) sorted", &[Ascending(2), RowNumber], PLAIN),
    ("u64 16 runs", &[Runs], PLAIN),
    ("u64 skewed", &[Skewed], PLAIN),
    ("u64 all equal", &[Equal], PLAIN),
];

/// Returns the single shapes of a table.
pub(super) fn shapes(table: &'static [Shapes]) -> impl Iterator<Item = Shape> {
    table.iter().flat_map(|(name, kinds, all)| {
        all.iter().map(move |&nulls| {
            let count = name.split(' ').next().and_then(|first| first.parse().ok());
            let kinds = kinds.iter().cycle().take(count.unwrap_or(kinds.len())).copied().collect();
            let nullable = nulls.map_or(String::new(), |nulls| format!(" nullable {nulls} %"));
            Shape { name: format!("{name}{nullable}"), kinds, nulls }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_rows() {
        assert_eq!((shapes(CODEC).count(), shapes(SORT).count()), (50, 17));
        for shape in shapes(CODEC).chain(shapes(SORT)) {
            let rows = shape.batch(1, 100).expect("a record batch").num_rows();
            assert_eq!(rows, 100, "{}", shape.name);
        }
    }
}
