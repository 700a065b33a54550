//! Column shapes of the benches of rows.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Field, Int32Type, Schema};

use super::schemas;
use crate::Result;
use windrow_testdata::rng::Rng;

/// Generates columns from random numbers and a number of rows.
type Columns = dyn Fn(&mut Rng, usize) -> Vec<ArrayRef>;

/// A named shape, which generates columns from a seed and a number of rows.
pub(super) struct Shape {
    pub(super) name: String,
    columns: Box<Columns>,
    nullable: bool,
}

impl Shape {
    pub(super) fn new(
        name: impl Into<String>,
        columns: impl Fn(&mut Rng, usize) -> Vec<ArrayRef> + 'static,
    ) -> Self {
        Self { name: name.into(), columns: Box::new(columns), nullable: false }
    }

    pub(super) fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// Generates a record batch of `rows` rows with columns `c0`, `c1`, ...
    pub(super) fn batch(&self, seed: u64, rows: usize) -> Result<RecordBatch> {
        let columns = (self.columns)(&mut Rng::new(seed), rows);
        let field = |(at, column): (usize, &ArrayRef)| {
            Field::new(format!("c{at}"), column.data_type().clone(), self.nullable)
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

fn valid(rng: &mut Rng, rows: usize, nulls: u64) -> Option<NullBuffer> {
    (nulls > 0).then(|| NullBuffer::from_iter((0..rows).map(|_| !rng.percent(nulls))))
}

fn longs(rng: &mut Rng, rows: usize, nulls: u64) -> ArrayRef {
    let values: Vec<u64> = (0..rows).map(|_| rng.next_u64()).collect();
    Arc::new(UInt64Array::new(values.into(), valid(rng, rows, nulls)))
}

fn signed(rng: &mut Rng, rows: usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..rows).map(|_| rng.next_u64() as i64)))
}

fn below(rng: &mut Rng, rows: usize, bound: u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values((0..rows).map(|_| rng.below(bound))))
}

fn doubles(rng: &mut Rng, rows: usize) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values((0..rows).map(|_| rng.next_u64() as f64 - 9e18)))
}

pub(super) fn word(rng: &mut Rng, least: u64, most: u64) -> String {
    let len = rng.between(least, most);
    (0..len).map(|_| (b'a' + rng.below(26) as u8) as char).collect()
}

fn text(rng: &mut Rng, rows: usize, least: u64, most: u64, start: &str) -> ArrayRef {
    let words = (0..rows).map(|_| format!("{start}{}", word(rng, least, most)));
    Arc::new(StringArray::from_iter_values(words))
}

/// Generates `rows` words out of `distinct` ones.
fn few_words(rng: &mut Rng, rows: usize, distinct: u64) -> ArrayRef {
    let words: Vec<String> = (0..distinct).map(|_| word(rng, 4, 12)).collect();
    let picked = (0..rows).map(|_| &words[rng.below(distinct) as usize]);
    Arc::new(StringArray::from_iter_values(picked))
}

/// Returns the shapes to encode and decode, with the original motivating case first.
pub(super) fn codec_shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for count in [50, 10, 4, 1] {
        shapes.push(Shape::new(format!("{count} x u64"), move |rng, rows| {
            (0..count).map(|_| longs(rng, rows, 0)).collect()
        }));
    }
    shapes.push(Shape::new("4 x i32", |rng, rows| {
        let column =
            |rng: &mut Rng| Int32Array::from_iter_values((0..rows).map(|_| rng.next_u64() as i32));
        (0..4).map(|_| Arc::new(column(rng)) as ArrayRef).collect()
    }));
    shapes.push(Shape::new("4 x i64", |rng, rows| (0..4).map(|_| signed(rng, rows)).collect()));
    shapes.push(Shape::new("4 x f64", |rng, rows| (0..4).map(|_| doubles(rng, rows)).collect()));
    shapes.push(Shape::new("4 x bool", |rng, rows| {
        let column =
            |rng: &mut Rng| BooleanArray::from_iter((0..rows).map(|_| Some(rng.percent(50))));
        (0..4).map(|_| Arc::new(column(rng)) as ArrayRef).collect()
    }));
    shapes.push(Shape::new("4 x decimal128", |rng, rows| {
        let value =
            |rng: &mut Rng| i128::from(rng.next_u64() as i64) * i128::from(rng.next_u64() >> 8);
        let column = |rng: &mut Rng| {
            Decimal128Array::from_iter_values((0..rows).map(|_| value(rng)))
                .with_precision_and_scale(38, 4)
                .expect("a valid scale")
        };
        (0..4).map(|_| Arc::new(column(rng)) as ArrayRef).collect()
    }));
    for nulls in [0, 10, 50] {
        for count in [50, 4] {
            let name = format!("{count} x u64 nullable {nulls} %");
            let columns = move |rng: &mut Rng, rows: usize| {
                (0..count).map(|_| longs(rng, rows, nulls)).collect()
            };
            shapes.push(Shape::new(name, columns).nullable());
        }
    }
    let sentinels = |count: usize, rng: &mut Rng, rows: usize| {
        let value = |rng: &mut Rng| match rng.below(10) {
            0 => u64::MAX,
            1 => 0,
            _ => rng.next_u64(),
        };
        let column = |rng: &mut Rng| {
            let values: Vec<u64> = (0..rows).map(|_| value(rng)).collect();
            UInt64Array::new(values.into(), valid(rng, rows, 10))
        };
        (0..count).map(|_| Arc::new(column(rng)) as ArrayRef).collect()
    };
    for count in [50, 10, 4, 2, 1] {
        let name = format!("{count} x u64 sentinels");
        let columns = move |rng: &mut Rng, rows: usize| sentinels(count, rng, rows);
        shapes.push(Shape::new(name, columns).nullable());
    }
    for (name, least, most, start) in [
        ("utf8 4-12", 4, 12, ""),
        ("utf8 1-31", 1, 31, ""),
        ("utf8 64-128", 64, 128, ""),
        ("utf8 shared prefix", 4, 12, "https://example.org/items/"),
    ] {
        shapes.push(Shape::new(name, move |rng, rows| vec![text(rng, rows, least, most, start)]));
    }
    shapes.push(Shape::new("mixed: i64 f64 i32 bool utf8", |rng, rows| {
        vec![
            signed(rng, rows),
            doubles(rng, rows),
            Arc::new(Int32Array::from_iter_values((0..rows).map(|_| rng.next_u64() as i32))),
            Arc::new(BooleanArray::from_iter((0..rows).map(|_| Some(rng.percent(50))))),
            text(rng, rows, 4, 12, ""),
        ]
    }));
    shapes.push(Shape::new("dictionary", |rng, rows| {
        let words: Vec<String> = (0..100).map(|_| word(rng, 4, 12)).collect();
        let picked = (0..rows).map(|_| words[rng.below(100) as usize].as_str());
        vec![Arc::new(DictionaryArray::<Int32Type>::from_iter(picked))]
    }));
    shapes.push(Shape::new("list", |rng, rows| {
        let lists = (0..rows).map(|_| {
            Some((0..rng.below(6)).map(|_| Some(rng.next_u64() as i32)).collect::<Vec<_>>())
        });
        vec![Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))]
    }));
    shapes.push(Shape::new("struct", |rng, rows| {
        let fields = vec![
            (
                Arc::new(Field::new("a", arrow::datatypes::DataType::UInt64, false)),
                longs(rng, rows, 0),
            ),
            (
                Arc::new(Field::new("b", arrow::datatypes::DataType::Utf8, false)),
                text(rng, rows, 4, 12, ""),
            ),
        ];
        vec![Arc::new(StructArray::from(fields))]
    }));
    shapes.extend(schemas::shapes());
    shapes
}

/// Returns the shapes to sort.
pub(super) fn sort_shapes() -> Vec<Shape> {
    let sorted = |rng: &mut Rng, rows: usize, step: u64| {
        let mut at = 0u64;
        (0..rows)
            .map(|_| {
                at += rng.below(step);
                at
            })
            .collect::<Vec<u64>>()
    };
    vec![
        Shape::new("u64", |rng, rows| vec![longs(rng, rows, 0)]),
        Shape::new("(u64, u64)", |rng, rows| vec![longs(rng, rows, 0), longs(rng, rows, 0)]),
        Shape::new("(small, small)", |rng, rows| {
            vec![below(rng, rows, 1000), below(rng, rows, 1_000_000)]
        }),
        Shape::new("(few words, i64, f64)", |rng, rows| {
            vec![few_words(rng, rows, 10_000), signed(rng, rows), doubles(rng, rows)]
        }),
        Shape::new("(utf8, i64, f64)", |rng, rows| {
            vec![text(rng, rows, 8, 24, ""), signed(rng, rows), doubles(rng, rows)]
        }),
        Shape::new("(utf8 shared prefix, i64)", |rng, rows| {
            vec![text(rng, rows, 8, 24, "https://example.org/"), signed(rng, rows)]
        }),
        Shape::new("(utf8 nullable, i64, f64)", |rng, rows| {
            let texts = (0..rows).map(|_| (!rng.percent(10)).then(|| word(rng, 8, 24)));
            let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
            vec![texts, signed(rng, rows), doubles(rng, rows)]
        })
        .nullable(),
        Shape::new("(utf8 view, i64, f64)", |rng, rows| {
            let views = (0..rows).map(|_| Some(word(rng, 8, 24))).collect::<StringViewArray>();
            vec![Arc::new(views), signed(rng, rows), doubles(rng, rows)]
        }),
        Shape::new("(large utf8, i64, f64)", |rng, rows| {
            let texts = (0..rows).map(|_| Some(word(rng, 8, 24))).collect::<LargeStringArray>();
            vec![Arc::new(texts), signed(rng, rows), doubles(rng, rows)]
        }),
        Shape::new("(dictionary, i64, f64)", |rng, rows| {
            let words = few_words(rng, rows, 100);
            let words = words.as_string::<i32>().iter().collect::<DictionaryArray<Int32Type>>();
            vec![Arc::new(words), signed(rng, rows), doubles(rng, rows)]
        }),
        Shape::new("u64 nullable", |rng, rows| vec![longs(rng, rows, 10)]).nullable(),
        Shape::new("u64 sorted", move |rng, rows| {
            vec![Arc::new(UInt64Array::from(sorted(rng, rows, 1 << 30)))]
        }),
        Shape::new("u64 reversed", move |rng, rows| {
            let mut values = sorted(rng, rows, 1 << 30);
            values.reverse();
            vec![Arc::new(UInt64Array::from(values))]
        }),
        Shape::new("(u64, u64) sorted", move |rng, rows| {
            let first = Arc::new(UInt64Array::from(sorted(rng, rows, 2)));
            vec![first, Arc::new(UInt64Array::from_iter_values(0..rows as u64))]
        }),
        Shape::new("u64 16 runs", move |rng, rows| {
            let run = rows.div_ceil(16);
            let values = (0..16).flat_map(|_| sorted(rng, run, 1 << 30)).take(rows);
            vec![Arc::new(UInt64Array::from_iter_values(values))]
        }),
        Shape::new("u64 skewed", |rng, rows| {
            let value = |rng: &mut Rng| match rng.below(10) {
                0 => rng.next_u64(),
                _ => rng.below(20),
            };
            vec![Arc::new(UInt64Array::from_iter_values((0..rows).map(|_| value(rng))))]
        }),
        Shape::new("u64 all equal", |_, rows| {
            vec![Arc::new(UInt64Array::from_iter_values(std::iter::repeat_n(7, rows)))]
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_rows() {
        for shape in codec_shapes().into_iter().chain(sort_shapes()) {
            assert_eq!(
                shape.batch(1, 100).expect("a record batch").num_rows(),
                100,
                "{}",
                shape.name
            );
        }
    }
}
