//! Column shapes of the benches of rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};

use crate::Result;
use crate::columns::{Kind, column};
use Kind::*;
use windrow_testdata::rng::Rng;

#[derive(Clone)]
/// A named shape, which generates columns from a seed and a number of rows.
pub(super) struct Shape {
    pub(super) name: String,
    columns: Vec<Kind>,
    /// Percent of nulls, if the columns are nullable.
    nulls: Option<u64>,
}

impl Shape {
    /// Creates a shape of `count` columns of the kinds in turn; a name without a count has one.
    fn new(name: &str, kinds: &[Kind], nulls: Option<u64>) -> Self {
        let count = name.split(' ').next().and_then(|first| first.parse().ok());
        let columns = kinds.iter().cycle().take(count.unwrap_or(kinds.len())).copied().collect();
        let nullable = nulls.map_or(String::new(), |nulls| format!(" nullable {nulls} %"));
        Self { name: format!("{name}{nullable}"), columns, nulls }
    }

    /// Generates a record batch of `rows` rows with columns `c0`, `c1`, ...
    pub(super) fn batch(&self, seed: u64, rows: usize) -> Result<RecordBatch> {
        let mut rng = Rng::new(seed);
        let nulls = self.nulls.unwrap_or(0);
        let columns = self.columns.iter().map(|&kind| column(kind, &mut rng, rows, nulls));
        let columns: Vec<_> = columns.collect();
        // Few nulls of `SomeUtf8` are in a column by themselves.
        let nullable = |at: usize| self.nulls.is_some() || self.columns[at] == SomeUtf8;
        let field = |(at, column): (usize, &arrow::array::ArrayRef)| {
            Field::new(format!("c{at}"), column.data_type().clone(), nullable(at))
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// Returns the shapes to encode and decode, with the original motivating case first.
pub(super) fn codec_shapes() -> Vec<Shape> {
    let text = Utf8("", 4, 12);
    let without: [(&str, &[Kind]); 17] = [
        ("50 x u64", &[U64]),
        ("10 x u64", &[U64]),
        ("4 x u64", &[U64]),
        ("1 x u64", &[U64]),
        ("4 x i32", &[I32]),
        ("4 x i64", &[I64]),
        ("4 x f64", &[F64]),
        ("4 x bool", &[Bool]),
        ("4 x decimal128", &[Decimal]),
        ("utf8 4-12", &[text]),
        ("utf8 1-31", &[Utf8("", 1, 31)]),
        ("utf8 64-128", &[Utf8("", 64, 128)]),
        ("utf8 shared prefix", &[Utf8("https://example.org/items/", 4, 12)]),
        ("mixed: i64 f64 i32 bool utf8", &[I64, F64, I32, Bool, text]),
        ("dictionary", &[Dictionary(100)]),
        ("list", &[List]),
        ("struct", &[Struct]),
    ];
    let with: [(&str, &[Kind]); 2] = [("4 x bool", &[Bool]), ("4 x decimal128", &[Decimal])];
    let both: [(&str, &[Kind]); 8] = [
        ("4 x i8", &[I8]),
        ("4 x i16", &[I16]),
        ("4 x fixed binary 8", &[Fixed]),
        ("4 x binary 8", &[Binary]),
        ("4 x utf8 4-12", &[text]),
        ("4 x utf8 view 1-31", &[View(1, 31)]),
        ("i64 i32 bool utf8", &[I64, I32, Bool, text]),
        ("20 columns", &[I64, text, Decimal, I32, text, F64, Bool, I16, Fixed, text]),
    ];
    let mut shapes: Vec<Shape> =
        without.iter().chain(&both).map(|(name, kinds)| Shape::new(name, kinds, None)).collect();
    shapes.extend(with.iter().chain(&both).map(|(name, kinds)| Shape::new(name, kinds, Some(10))));
    for nulls in [0, 10, 50] {
        shapes.extend(["50 x u64", "4 x u64"].map(|name| Shape::new(name, &[U64], Some(nulls))));
    }
    for count in [50, 10, 4, 2, 1] {
        let shape = Shape::new(&format!("{count} x u64"), &[Sentinels], Some(10));
        shapes.push(Shape { name: format!("{count} x u64 sentinels"), ..shape });
    }
    shapes
}

/// Returns the shapes to sort.
pub(super) fn sort_shapes() -> Vec<Shape> {
    let shapes: [(&str, &[Kind]); 16] = [
        ("u64", &[U64]),
        ("(u64, u64)", &[U64, U64]),
        ("(small, small)", &[Below(1000), Below(1_000_000)]),
        ("(few words, i64, f64)", &[Words(10_000), I64, F64]),
        ("(utf8, i64, f64)", &[Utf8("", 8, 24), I64, F64]),
        ("(utf8 shared prefix, i64)", &[Utf8("https://example.org/", 8, 24), I64]),
        ("(utf8 nullable, i64, f64)", &[SomeUtf8, I64, F64]),
        ("(utf8 view, i64, f64)", &[View(8, 24), I64, F64]),
        ("(large utf8, i64, f64)", &[LargeUtf8(8, 24), I64, F64]),
        ("(dictionary, i64, f64)", &[Dictionary(100), I64, F64]),
        ("u64 sorted", &[Ascending(1 << 30)]),
        ("u64 reversed", &[Descending]),
        ("(u64, u64) sorted", &[Ascending(2), RowNumber]),
        ("u64 16 runs", &[Runs]),
        ("u64 skewed", &[Skewed]),
        ("u64 all equal", &[Equal]),
    ];
    let mut shapes = shapes.map(|(name, kinds)| Shape::new(name, kinds, None)).to_vec();
    shapes.push(Shape { name: "u64 nullable".to_owned(), ..Shape::new("u64", &[U64], Some(10)) });
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_rows() {
        let (codec, sort) = (codec_shapes(), sort_shapes());
        assert_eq!((codec.len(), sort.len()), (46, 17));
        for shape in codec.into_iter().chain(sort) {
            let rows = shape.batch(1, 100).expect("a record batch").num_rows();
            assert_eq!(rows, 100, "{}", shape.name);
        }
    }
}
