//! The codec against a plain model of what a value is, over random types.

mod golden;
mod limits;
mod model;

use arrow_array::{Array, ArrayRef, make_array};
use proptest::prelude::*;

use super::{reader, write};
use crate::rows::tests::arrays::{self, Rng};
use model::logical;

fn encode(array: &dyn Array) -> Vec<Vec<u8>> {
    let (bytes, offsets) = write(&make_array(array.to_data())).unwrap();
    offsets.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
}

/// Reads the rows from one buffer, as they lie in a page: nothing but the values delimits them.
fn decode(rows: &[Vec<u8>], like: &dyn Array) -> ArrayRef {
    let mut reader = reader(like.data_type()).unwrap();
    // Twice: the second time from a reader that was used before.
    let mut read = || {
        let page = rows.concat();
        let mut bytes = page.as_slice();
        rows.iter().for_each(|_| reader.read(&mut bytes).unwrap());
        assert!(bytes.is_empty());
        reader.finish().unwrap()
    };
    let (first, second) = (read(), read());
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
        for row in encode(&array) {
            for len in 0..row.len() {
                let mut reader = reader(array.data_type()).unwrap();
                prop_assert!(reader.skip(&mut &row[..len]).is_err());
                prop_assert!(reader.read(&mut &row[..len]).is_err());
                let _ = reader.finish();
            }
        }
    }

    #[test]
    fn skip_goes_as_far_as_read(seed: u64) {
        let array = arrays::array(&mut Rng::new(seed));
        let reader = reader(array.data_type()).unwrap();
        for mut row in encode(&array) {
            let len = row.len();
            row.extend([1, 2, 3]);
            let mut bytes = row.as_slice();
            reader.skip(&mut bytes).unwrap();
            prop_assert_eq!(bytes, &row[len..]);
        }
    }

    #[test]
    fn noise_does_not_panic(seed: u64) {
        let mut rng = Rng::new(seed);
        let array = arrays::array(&mut rng);
        let mut page = encode(&array).concat();
        match rng.below(2) {
            // Half of it small numbers: they are markers and lengths that lead somewhere.
            0 => page = (0..64).map(|_| rng.next() as u8 >> (rng.below(2) * 6)).collect(),
            _ if page.is_empty() => {}
            _ => (0..3).for_each(|_| {
                let at = rng.below(page.len());
                page[at] = rng.next() as u8;
            }),
        }
        let mut reader = reader(array.data_type()).unwrap();
        let mut bytes = page.as_slice();
        for _ in 0..100 {
            let rest = bytes;
            if reader.read(&mut bytes).is_err() {
                break;
            }
            // What reads at all is canonical: it writes the same bytes again.
            let mut alone = super::reader(array.data_type()).unwrap();
            alone.read(&mut { rest }).unwrap();
            if let Ok(value) = alone.finish() && rest.len() > bytes.len() {
                let again = encode(&value);
                prop_assert_eq!(&again[0], &rest[..rest.len() - bytes.len()]);
            }
        }
        if let Ok(array) = reader.finish() {
            array.to_data().validate_full().unwrap();
        }
    }
}
