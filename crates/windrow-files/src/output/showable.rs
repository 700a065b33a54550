//! Refuses times without a textual form, since writers would put an error's text in place of their
//! value.
//!
//! Each type of times has a range of values with a textual form. An instant in a zone also needs an
//! offset of whole minutes.

use std::ops::RangeInclusive;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, Result};
use crate::offset::first_with_seconds;

/// Seconds since the epoch with a date: years from -262143 to 262142, less a day for zones.
const SECONDS: RangeInclusive<i64> = -8_334_601_142_400..=8_210_266_790_399;
/// Seconds of a day.
const DAY: i64 = 86_400;
/// Longest duration in seconds.
const LONGEST: i64 = i64::MAX / 1000;

/// Refuses a record batch with a time without a textual form.
///
/// # Errors
/// `Data` that names the column and the value.
pub(super) fn check(batch: &RecordBatch) -> Result<()> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    for (column, field) in columns {
        let fault = |value, why| {
            Err(Error::data(format!(
                "column {:?} holds {value}, {why} ({}); write Parquet or Arrow, or leave it out with \
                 `select`",
                field.name(),
                field.data_type()
            )))
        };
        if let Some(value) = beyond(column) {
            return fault(value, "which is beyond the times that text can show");
        }
        if let Some(value) = in_leaves(column, &first_with_seconds) {
            return fault(
                value,
                "a time whose offset from UTC has seconds, which text cannot show",
            );
        }
    }
    Ok(())
}

/// Returns a value of a leaf outside of its range, if there is one.
fn beyond(column: &ArrayRef) -> Option<i64> {
    in_leaves(column, &|leaf| {
        let range = range(leaf.data_type())?;
        let is_narrow = leaf.data_type().primitive_width() == Some(4);
        let number = if is_narrow { DataType::Int32 } else { DataType::Int64 };
        let data = leaf.to_data().into_builder().data_type(number).build().ok()?;
        let values = cast(&make_array(data), &DataType::Int64).ok()?;
        let mut present = values.as_primitive::<Int64Type>().iter().flatten();
        present.find(|value| !range.contains(value))
    })
}

/// Returns the first result of `find` in the leaves of `column`.
fn in_leaves(column: &ArrayRef, find: &dyn Fn(&ArrayRef) -> Option<i64>) -> Option<i64> {
    match column.to_data().child_data() {
        [] => find(column),
        parts => parts.iter().find_map(|part| in_leaves(&make_array(part.clone()), find)),
    }
}

/// Returns the values of a type of times that have a textual form.
fn range(data_type: &DataType) -> Option<RangeInclusive<i64>> {
    use DataType as D;
    use TimeUnit as U;
    let of_day = |units: i64| 0..=DAY * units - 1;
    let since = |units: i64| SECONDS.start() * units..=SECONDS.end() * units;
    Some(match data_type {
        D::Date32 => SECONDS.start() / DAY..=SECONDS.end() / DAY,
        D::Timestamp(U::Second, _) => since(1),
        D::Date64 | D::Timestamp(U::Millisecond, _) => since(1000),
        D::Timestamp(U::Microsecond, _) => since(1_000_000),
        D::Time32(U::Second) => of_day(1),
        D::Time32(_) => of_day(1000),
        D::Time64(U::Microsecond) => of_day(1_000_000),
        D::Time64(_) => of_day(1_000_000_000),
        D::Duration(U::Second) => -LONGEST..=LONGEST,
        D::Duration(U::Millisecond) => -i64::MAX..=i64::MAX,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, ListArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_cast::display::{ArrayFormatter, FormatOptions};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn what_passes_has_a_text_and_what_does_not_has_none() {
        let day = SECONDS.end() / DAY;
        let units = [U::Second, U::Millisecond, U::Microsecond];
        use TimeUnit as U;
        let stamps = units.map(|unit| (DataType::Timestamp(unit, None), SECONDS.clone()));
        let mut ranges: Vec<(DataType, RangeInclusive<i64>)> = stamps.into();
        for ((_, range), unit) in ranges.iter_mut().zip([1, 1000, 1_000_000]) {
            *range = range.start() * unit..=range.end() * unit;
        }
        ranges.push((DataType::Date64, SECONDS.start() * 1000..=SECONDS.end() * 1000));
        ranges.push((DataType::Time64(U::Nanosecond), 0..=DAY * 1_000_000_000 - 1));
        ranges.push((DataType::Duration(U::Second), -LONGEST..=LONGEST));
        for (data_type, range) in ranges {
            let column = |value: i64| -> ArrayRef {
                let data = Int64Array::from(vec![Some(0), None, Some(value)]).into_data();
                let data = data.into_builder().data_type(data_type.clone()).build();
                arrow_array::make_array(data.expect("of the same width"))
            };
            for end in [*range.start(), *range.end()] {
                let column = column(end);
                assert_eq!(beyond(&column), None, "{data_type}: {end}");
                let options = FormatOptions::default().with_display_error(false);
                let text = ArrayFormatter::try_new(&column, &options).expect("has a format");
                let text = text.value(2).try_to_string().expect("has a text");
                assert!(!text.contains("invalid"), "{data_type}: {text}");
            }
            let far = range.end() + range.end() / 1_000_000_000 + 2 * DAY;
            assert_eq!(beyond(&column(far)), Some(far), "{data_type}");
        }
        let days = Int64Array::from(vec![0, day + 2]);
        let days = cast(&cast(&days, &DataType::Int32).unwrap(), &DataType::Date32).unwrap();
        let field = Arc::new(Field::new_list_field(DataType::Date32, true));
        let list = ListArray::new(field, OffsetBuffer::from_lengths([1, 1]), days, None);
        assert_eq!(beyond(&(Arc::new(list) as ArrayRef)), Some(day + 2));
    }
}
