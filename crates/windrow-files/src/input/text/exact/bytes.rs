//! Bytes written as text: two hexadecimal digits per byte.
//!
//! ```text
//! "00ff1a"   00 ff 1a
//! "abc"      an error: the decoder of arrow would make ab 0c of it
//! ```

use arrow_array::builder::BinaryBuilder;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_schema::DataType;

use super::reading::{Fault, cast_strictly};

/// Parses bytes of `kind`, a binary type of any width.
pub(super) fn bytes(text: &StringArray, kind: &DataType) -> Result<ArrayRef, Fault> {
    let mut values = BinaryBuilder::with_capacity(text.len(), text.value_data().len() / 2);
    for value in text {
        match value.map(|value| decoded(value).ok_or(value)).transpose() {
            Ok(bytes) => values.append_option(bytes),
            Err(value) => return Err(format!("{value:?} is no even number of digits 0 to f")),
        }
    }
    let values: BinaryArray = values.finish();
    cast_strictly(&values, kind)
}

fn decoded(value: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = value.as_bytes().as_chunks::<2>();
    let bytes =
        pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok());
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn bytes_are_whole() {
        let text = StringArray::from(vec![Some("00fF"), None, Some("6162")]);
        for kind in [DataType::Binary, DataType::LargeBinary, DataType::BinaryView] {
            assert_eq!(bytes(&text, &kind).unwrap().data_type(), &kind);
        }
        let fixed = bytes(&text, &DataType::FixedSizeBinary(2)).unwrap();
        assert_eq!(fixed.as_fixed_size_binary().value(0), [0, 0xff]);
        for value in ["abc", "0g", "+1", "\u{e9}"] {
            let text = StringArray::from(vec![value]);
            assert!(bytes(&text, &DataType::Binary).unwrap_err().contains(value), "{value}");
        }
        assert!(bytes(&StringArray::from(vec!["00"]), &DataType::FixedSizeBinary(2)).is_err());
    }
}
