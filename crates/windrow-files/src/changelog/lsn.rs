//! PostgreSQL's log sequence numbers, which wal2json writes as text: `16/B374D848`.
//!
//! Two hexadecimal halves of 32 bits without leading zeros: as text `0/FFFFFFF` is behind `0/10000000`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Builder};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::misfit;
use crate::error::{Error, Result};

/// The number that the text stands for.
pub(super) fn number(text: &str) -> Option<u64> {
    let half = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if digits { u32::from_str_radix(text, 16).ok() } else { None }
    };
    let (high, low) = text.trim().split_once('/')?;
    Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
}

/// The numbers of a column, whose first row is `first_row` of its input.
pub(super) fn numbers(column: &ArrayRef, name: &str, first_row: u64) -> Result<ArrayRef> {
    let text = cast(column, &DataType::Utf8).map_err(misfit)?;
    let mut numbers = UInt64Builder::with_capacity(text.len());
    for (row, text) in text.as_string::<i32>().iter().enumerate() {
        let parsed = text.map(|text| {
            number(text).ok_or_else(|| {
                let row = first_row + row as u64;
                Error::data(format!(
                    "row {row}: column {name:?} holds {text:?}, which is no log sequence number \
                     such as 16/B374D848"
                ))
                .at_row(row)
                .in_column(name)
            })
        });
        numbers.append_option(parsed.transpose()?);
    }
    Ok(Arc::new(numbers.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_postgresql_writes_them() {
        assert_eq!(number("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(number("0/0"), Some(0));
        assert_eq!(number("ffffffff/FFFFFFFF"), Some(u64::MAX));
        for text in ["", "/", "1", "1/", "/1", "1/2/3", "g/1", "+1/1", "100000000/0"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
