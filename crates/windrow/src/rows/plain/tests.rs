//! Rows of the plain encoder beside those of the general one.

use arrow_array::{
    Float64Array, Int32Array, Int64Array, LargeStringArray, StringArray, UInt64Array,
};

use super::*;
use crate::order::{Order, asc, desc};
use crate::rows::Encoder;

const ROWS: i64 = 300;

fn batch(from: i64, null: bool) -> RecordBatch {
    let b = (0..ROWS).map(|row| (!null || row != 7).then_some((row - 20) as i32));
    let text = |row: i64| "length ".repeat((row * row % 17) as usize) + &row.to_string();
    let columns: [(&str, ArrayRef, bool); 8] = [
        ("a", Arc::new(Float64Array::from_iter_values((0..ROWS).map(|x| 3.5 - x as f64))), false),
        ("b", Arc::new(Int32Array::from_iter(b)), null),
        ("c", Arc::new(Int32Array::from_iter_values(0..ROWS as i32)), false),
        ("s", Arc::new(StringArray::from_iter_values((0..ROWS).map(text))), false),
        (
            "l",
            Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(|x| text(ROWS - x)))),
            false,
        ),
        ("t", Arc::new(UInt64Array::from_iter_values((0..ROWS as u64).map(|x| x * x))), false),
        ("u", Arc::new(UInt64Array::from_iter_values(0..ROWS as u64)), false),
        ("d", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|x| x - from))), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The rows of the general encoder, and where they end.
fn encoded(layout: &Layout, batch: &RecordBatch) -> (Vec<u8>, Vec<u32>) {
    let encoder = Encoder::new(layout);
    let prepared = encoder.prepare(batch, 0).unwrap();
    let mut starts = vec![0];
    let mut rows = vec![0; prepared.add_ends(0, &mut starts)];
    encoder.encode(&prepared, 0..batch.num_rows(), &mut rows);
    (rows, starts)
}

#[test]
fn numbers_are_those_of_the_general_encoder() {
    let whole = batch(9, false).project(&[0, 1, 2, 5, 6, 7]).unwrap();
    let layout = Order::by([asc("c"), desc("a"), asc("b")]).time("t").diff("d");
    let layout = layout.bind(&whole.schema()).unwrap();
    let stride = layout.stride().unwrap();
    let mut plain = PlainEncoder::new(&layout).unwrap();
    for batch in [whole.clone(), whole.slice(3, 17), whole.slice(5, 0)] {
        let expected = encoded(&layout, &batch).0;
        let mut got = vec![0; expected.len()];
        assert!(plain.write(&batch, 0..batch.num_rows(), &mut got).unwrap());
        assert_eq!(got, expected);
    }
    let mut got = vec![0; 40 * stride];
    assert!(plain.write(&whole, 100..140, &mut got).unwrap());
    assert_eq!(got, encoded(&layout, &whole.slice(100, 40)).0);
    // A null where none may be is for the general encoder to refuse.
    let nulls = batch(9, true).project(&[0, 1, 2, 5, 6, 7]).unwrap();
    assert!(!plain.write(&nulls, 0..40, &mut got).unwrap());
}

/// Writes `rows` of `batch` behind ten bytes and `before` rows in front of those.
fn written(
    plain: &mut PlainEncoder,
    (batch, rows): (&RecordBatch, Range<usize>),
    room: usize,
    spare: usize,
) -> (Option<usize>, Vec<u8>, Vec<u32>) {
    let (mut bytes, mut starts) = (vec![0; room], vec![0, 10]);
    let mut target = Behind { bytes: &mut bytes, starts: &mut starts, spare };
    let written = plain.write_varying(batch, rows, &mut target).unwrap();
    (written, bytes, starts)
}

#[test]
fn texts_are_those_of_the_general_encoder() {
    let whole = batch(9, false);
    let orders = [
        vec![asc("s"), desc("a"), desc("l")],
        vec![asc("b"), desc("s"), asc("c")],
        vec![asc("b"), asc("l")],
        vec![desc("l"), asc("s")],
    ];
    for order in orders {
        let layout = Order::by(order).time("t").diff("d").bind(&whole.schema()).unwrap();
        let mut plain = PlainEncoder::new(&layout).unwrap();
        for (batch, spare) in [(&whole, 4), (&whole.slice(3, 17), 0), (&whole.slice(5, 0), 9)] {
            let (expected, ends) = encoded(&layout, batch);
            let rows = batch.num_rows();
            // Behind another row, with just enough room and with one byte less.
            let room = 10 + expected.len() + spare * (rows + 1);
            let (fit, got, starts) = written(&mut plain, (batch, 0..rows), room, spare);
            assert_eq!(fit, Some(rows));
            assert_eq!(got[10..10 + expected.len()], expected);
            assert!(starts[1..].iter().zip(&ends).all(|(start, end)| *start == end + 10));
            assert_eq!(starts.len(), ends.len() + 1);
            if rows > 0 {
                let (fit, got, starts) = written(&mut plain, (batch, 0..rows), room - 1, spare);
                let end = *starts.last().unwrap() as usize;
                assert_eq!((fit, starts.len()), (Some(rows - 1), ends.len()));
                assert_eq!(got[10..end], expected[..end - 10]);
                let (fit, _, starts) = written(&mut plain, (batch, 0..rows), 10, spare);
                assert_eq!((fit, &starts[..]), (Some(0), &[0, 10][..]));
                // The rows in the middle.
                let some = rows / 3..rows / 2;
                let part = ends[some.start] as usize..ends[some.end] as usize;
                let (fit, got, _) = written(&mut plain, (batch, some.clone()), room, spare);
                assert_eq!(fit, Some(some.len()));
                assert_eq!(got[10..10 + part.len()], expected[part]);
            }
        }
        let nulls = batch(9, true);
        let (fit, _, starts) = written(&mut plain, (&nulls, 0..300), 1 << 16, 4);
        assert_eq!((fit, &starts[..]), (None, &[0, 10][..]));
    }
}

/// `count` columns of one type, none nullable, and a diff.
fn alike(count: usize, column: impl Fn(i64) -> ArrayRef) -> (Layout, RecordBatch) {
    let names: Vec<String> = (0..count).map(|column| format!("c{column}")).collect();
    let columns = names.iter().zip(0..).map(|(name, number)| (&name[..], column(number), false));
    let diff: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let columns = columns.chain([("d", diff, false)]);
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let order = names.iter().enumerate().map(|(number, name)| match number % 3 {
        0 => desc(name.clone()),
        _ => asc(name.clone()),
    });
    let order = Order::by(order.collect::<Vec<_>>()).diff("d");
    (order.bind(&batch.schema()).unwrap(), batch)
}

#[test]
fn any_number_of_columns_is_as_by_the_general_encoder() {
    for count in 1..=26 {
        let number = |at: i64| (0..ROWS).map(move |row| (row - 100) * (at + 3));
        let (layout, batch) =
            alike(count, |at| Arc::new(Int64Array::from_iter_values(number(at))) as ArrayRef);
        let mut plain = PlainEncoder::new(&layout).unwrap();
        let expected = encoded(&layout, &batch).0;
        let mut got = vec![0; expected.len()];
        assert!(plain.write(&batch, 0..batch.num_rows(), &mut got).unwrap());
        assert_eq!(got, expected, "{count} numbers");
    }
    for count in 1..=MOST + 1 {
        let text = |at: i64| (0..ROWS).map(move |row| "x".repeat((row * (at + 3) % 29) as usize));
        let (layout, batch) =
            alike(count, |at| Arc::new(StringArray::from_iter_values(text(at))) as ArrayRef);
        let Some(mut plain) = PlainEncoder::new(&layout) else {
            assert!(count > MOST);
            continue;
        };
        let expected = encoded(&layout, &batch).0;
        let (fit, got, _) =
            written(&mut plain, (&batch, 0..batch.num_rows()), 10 + expected.len() + 4 * 301, 4);
        assert_eq!(fit, Some(batch.num_rows()));
        assert_eq!(got[10..10 + expected.len()], expected, "{count} texts");
    }
}

#[test]
fn other_layouts_have_none() {
    let nullable = batch(9, true);
    let layout = Order::by("b").diff("d").bind(&nullable.schema()).unwrap();
    assert!(PlainEncoder::new(&layout).is_none());
    let layout = Order::by("a").bind(&batch(9, false).schema()).unwrap();
    assert!(PlainEncoder::new(&layout).is_none());
}
