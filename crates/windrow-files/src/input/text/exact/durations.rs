//! Durations: a number of units, or seconds in the notation of Arrow, `PT86400.5S`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, TimeUnit};

use super::reading::{Fault, cast_strictly};
use super::times::digits_of;

/// Parses durations in `unit`.
pub(super) fn durations(text: &StringArray, unit: TimeUnit) -> Result<ArrayRef, Fault> {
    let kind = DataType::Duration(unit);
    let mut counts = Int64Array::builder(text.len());
    for value in text {
        let count = value.map(|value| {
            let count = value.parse().ok().or_else(|| seconds(value, unit));
            count.ok_or_else(|| format!("{value:?} is no value of its type, {kind}"))
        });
        counts.append_option(count.transpose()?);
    }
    let counts: ArrayRef = Arc::new(counts.finish());
    cast_strictly(&counts, &kind)
}

/// Parses seconds as a number of units; `None` for a fraction of a unit.
fn seconds(value: &str, unit: TimeUnit) -> Option<i64> {
    let (sign, value) = match value.strip_prefix('-') {
        Some(value) => (-1, value),
        None => (1, value),
    };
    if value == "P0D" {
        return Some(0);
    }
    let digits = digits_of(unit);
    let value = value.strip_prefix("PT")?.strip_suffix('S')?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let fraction = fraction.trim_end_matches('0');
    let all = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !all || whole.is_empty() || fraction.len() > digits {
        return None;
    }
    let units: i128 = format!("{whole}{fraction:0<digits$}").parse().ok()?;
    i64::try_from(sign * units).ok()
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::DurationMillisecondType;
    use arrow_cast::display::array_value_to_string;

    use super::*;

    #[test]
    fn what_arrow_writes_is_read_back() {
        let text = ["PT1.5S", "-PT86400S", "P0D", "PT0.001S", "-7", "PT9223372036854775.807S"];
        let read = durations(&StringArray::from(text.to_vec()), TimeUnit::Millisecond).unwrap();
        let counts = read.as_primitive::<DurationMillisecondType>();
        assert_eq!(counts.values()[..], [1500, -86_400_000, 0, 1, -7, i64::MAX]);
        for row in 0..read.len() {
            let shown = array_value_to_string(&read, row).unwrap();
            let again = durations(&StringArray::from(vec![shown]), TimeUnit::Millisecond).unwrap();
            assert_eq!(again.to_data(), read.slice(row, 1).to_data());
        }
        for value in ["PT1.0005S", "PTS", "PT1M", "1.5", "P1D", "PT-1S"] {
            let fault = durations(&StringArray::from(vec![value]), TimeUnit::Millisecond);
            assert!(fault.unwrap_err().contains(value));
        }
    }
}
