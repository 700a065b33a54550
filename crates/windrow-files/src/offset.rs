//! Offsets from UTC without a textual form.
//!
//! Before a zone had a standard time, it had the time of its capital's longitude: Kolkata was 5
//! hours, 53 minutes and 28 seconds ahead. Text has only hours and minutes of an offset, and would
//! thus show a wrong instant, and the same text for two instants.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::as_datetime_with_timezone;
use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

/// End of the last offset with seconds, in Liberia: 1972-01-07T00:44:30Z.
const LAST: i64 = 63_593_070;

/// Returns the first of `values`, timestamps with a zone, whose offset has seconds.
pub(crate) fn first_with_seconds(values: &ArrayRef) -> Option<i64> {
    use TimeUnit as U;
    let DataType::Timestamp(unit, Some(zone)) = values.data_type() else { return None };
    match unit {
        U::Second => first::<TimestampSecondType>(values.as_primitive(), zone, 1),
        U::Millisecond => first::<TimestampMillisecondType>(values.as_primitive(), zone, 1_000),
        U::Microsecond => first::<TimestampMicrosecondType>(values.as_primitive(), zone, 1_000_000),
        U::Nanosecond => {
            first::<TimestampNanosecondType>(values.as_primitive(), zone, 1_000_000_000)
        }
    }
}

fn first<T: ArrowTimestampType>(values: &PrimitiveArray<T>, zone: &str, units: i64) -> Option<i64> {
    if values.iter().flatten().min().is_none_or(|least| least >= LAST * units) {
        return None;
    }
    let zone: Tz = zone.parse().ok()?;
    values.iter().flatten().find(|value| {
        as_datetime_with_timezone::<T>(*value, zone).is_some_and(|at| {
            let offset = at.naive_local().and_utc().timestamp() - at.timestamp();
            offset % 60 != 0
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{TimestampNanosecondArray, TimestampSecondArray};

    use super::*;

    #[test]
    fn offsets_of_other_centuries() {
        let first = |zone: &str, seconds: i64| {
            let stamps = TimestampSecondArray::from(vec![None, Some(0), Some(seconds)]);
            first_with_seconds(&(Arc::new(stamps.with_timezone(zone)) as ArrayRef))
        };
        assert_eq!(first("Asia/Kolkata", -3_645_237_208), Some(-3_645_237_208));
        assert_eq!(first("Asia/Kolkata", -1_000_000_000), None);
        assert_eq!(first("Africa/Monrovia", LAST - 1), Some(0), "Liberia was late");
        for zone in ["UTC", "+05:53", "Europe/Berlin"] {
            assert_eq!(first(zone, -1_000_000_000), None, "{zone}");
        }
        let nanoseconds = TimestampNanosecondArray::from(vec![-3_645_237_208_000_000_000]);
        let nanoseconds: ArrayRef = Arc::new(nanoseconds.with_timezone("Asia/Kolkata"));
        assert!(first_with_seconds(&nanoseconds).is_some());
        let end = TimestampSecondArray::from(vec![LAST]).with_timezone("Africa/Monrovia");
        assert_eq!(first_with_seconds(&(Arc::new(end) as ArrayRef)), None);
    }
}
