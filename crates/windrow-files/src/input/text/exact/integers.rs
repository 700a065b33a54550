//! A fast path for integers in the usual notation: digits without a zero in front.

use arrow_array::{Array, Int64Array, StringArray};

/// Maximum number of digits to accumulate without an overflow of 64 bits.
const MOST_DIGITS: usize = 19;

/// Parses the integers of `text`, if all are in the usual notation and fit 64 bits.
pub(super) fn plain(text: &StringArray) -> Option<Int64Array> {
    let bytes = text.value_data();
    let mut values = Vec::with_capacity(text.len());
    for (row, ends) in text.value_offsets().windows(2).enumerate() {
        match integer(&bytes[ends[0] as usize..ends[1] as usize]) {
            Some(value) => values.push(value),
            None if text.is_null(row) => values.push(0),
            None => return None,
        }
    }
    Some(Int64Array::new(values.into(), text.nulls().cloned()))
}

fn integer(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    match digits {
        [b'0'] if digits.len() == value.len() => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= MOST_DIGITS => {}
        _ => return None,
    }
    let (mut size, mut other) = (0_u64, false);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        other |= digit > 9;
        size = size.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    let size = i64::try_from(size).ok().filter(|_| !other)?;
    Some(if digits.len() == value.len() { size } else { -size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_integers_are_those_of_the_parser() {
        for value in ["0", "7", "-7", "10", "9223372036854775807", "-9223372036854775807"] {
            let text = StringArray::from(vec![Some(value), None, Some("-12")]);
            let expected = Int64Array::from(vec![Some(value.parse().unwrap()), None, Some(-12)]);
            assert_eq!(plain(&text), Some(expected), "{value}");
        }
        for value in [
            "",
            "-",
            "-0",
            "00",
            "007",
            "-07",
            "+7",
            " 7",
            "7 ",
            "7.0",
            "7e1",
            "1_0",
            "1/",
            "1:",
            "\u{663}",
            "9223372036854775808",
            "18446744073709551616",
            "99999999999999999999",
        ] {
            assert_eq!(plain(&StringArray::from(vec!["1", value])), None, "{value:?}");
        }
    }
}
