//! Codes and readers, compared with a plain model of values, over random types.

mod golden;
mod limits;
mod model;

use arrow_array::{Array, ArrayRef, make_array};
use proptest::prelude::*;

use super::{ValueReader, reader};
use crate::error::Result;
use crate::order::code::Node;
use crate::rows::nested::{Form, stored};
use crate::rows::row_ref::{Rest, RowRef};
use crate::rows::tests::arrays::{self, Rng};
use model::logical;

fn encode(array: &dyn Array) -> Vec<Vec<u8>> {
    let (bytes, offsets) = stored(&make_array(array.to_data())).unwrap();
    offsets.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
}

/// Reads the rows from one buffer, as in a page; returns the end of each value.
fn read(reader: &mut dyn ValueReader, node: &Node, rows: &[Vec<u8>]) -> Result<Vec<usize>> {
    let mut ends = vec![0];
    ends.extend(rows.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    }));
    let mut cursors = ends[..rows.len()].to_vec();
    let bytes = &rows.concat()[..];
    let page = &mut Rest { bytes, cursors: &mut cursors, ends: &ends[1..] };
    reader.read_codes(node, Form::STORED, page)?;
    Ok(cursors)
}

fn decode(rows: &[Vec<u8>], like: &dyn Array) -> ArrayRef {
    let node = Node::of(like.data_type()).unwrap();
    let mut reader = reader(like.data_type()).unwrap();
    // Twice: the second time with a used reader.
    let mut again = || {
        let ends = read(&mut *reader, &node, rows).unwrap();
        assert_eq!(ends.last().copied().unwrap_or(0), rows.concat().len());
        reader.finish().unwrap()
    };
    let (first, second) = (again(), again());
    assert_eq!(model(&first), model(&second));
    first
}

fn model(array: &dyn Array) -> Vec<model::Logical> {
    (0..array.len()).map(|row| logical(array, row)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn comes_back_as_it_was(seed: u64) {
        let array = arrays::array(&mut Rng::new(seed));
        let rows = encode(&array);
        let back = decode(&rows, &array);
        prop_assert_eq!(back.data_type(), array.data_type());
        prop_assert_eq!(model(&back), model(&array), "{}", array.data_type());
        prop_assert_eq!(encode(&back), rows, "another layout, other bytes: {}", array.data_type());
        back.to_data().validate_full().unwrap();
    }

    #[test]
    fn equal_bytes_are_equal_values(seed: u64) {
        let array = arrays::array(&mut Rng::new(seed));
        let (rows, values) = (encode(&array), model(&array));
        for (a, left) in rows.iter().enumerate() {
            for (b, right) in rows.iter().enumerate() {
                prop_assert_eq!(left == right, values[a] == values[b], "{:?} {:?}", left, right);
            }
        }
    }

    #[test]
    fn a_prefix_is_an_error(seed: u64) {
        let array = arrays::array(&mut Rng::new(seed));
        let node = Node::of(array.data_type()).unwrap();
        for row in encode(&array) {
            for len in 0..row.len() {
                let mut reader = reader(array.data_type()).unwrap();
                prop_assert!(read(&mut *reader, &node, &[row[..len].to_vec()]).is_err());
                let _ = reader.finish();
            }
        }
    }

    #[test]
    fn skip_goes_as_far_as_read(seed: u64) {
        let array = arrays::array(&mut Rng::new(seed));
        let node = Node::of(array.data_type()).unwrap();
        for mut row in encode(&array) {
            let len = row.len();
            row.extend([1, 2, 3]);
            let mut rest = RowRef::exact(&row);
            Form::STORED.skip(&node, &mut rest).unwrap();
            prop_assert_eq!(rest.row(), &row[len..]);
        }
    }

    #[test]
    fn noise_does_not_panic(seed: u64) {
        let mut rng = Rng::new(seed);
        let array = arrays::array(&mut rng);
        let mut page = encode(&array).concat();
        match rng.below(2) {
            // Half of the bytes are small numbers, which are valid markers.
            0 => page = (0..64).map(|_| rng.next() as u8 >> (rng.below(2) * 6)).collect(),
            _ if page.is_empty() => {}
            _ => (0..3).for_each(|_| {
                let at = rng.below(page.len());
                page[at] = rng.next() as u8;
            }),
        }
        let node = Node::of(array.data_type()).unwrap();
        let mut reader = reader(array.data_type()).unwrap();
        let (mut at, end) = ([0], [page.len()]);
        for _ in 0..100 {
            let rest = &mut Rest { bytes: &page, cursors: &mut at, ends: &end };
            if reader.read_codes(&node, Form::STORED, rest).is_err() {
                break;
            }
        }
        if let Ok(array) = reader.finish() {
            array.to_data().validate_full().unwrap();
        }
    }
}
