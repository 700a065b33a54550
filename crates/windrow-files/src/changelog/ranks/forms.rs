//! Exact parsers for values in text columns: numbers, log sequence numbers, times, hexadecimal
//! numbers, time UUIDs.

use arrow_array::types::Decimal256Type;
use arrow_buffer::i256;
use arrow_cast::parse::parse_decimal;
use chrono::{NaiveDate, NaiveTime, Timelike};

/// Digits of numbers, and how many of them are decimal places.
pub(super) const DIGITS: u8 = 76;
pub(super) const FRACTION: i8 = 20;

/// Maximum number of sections of a hexadecimal number, and bytes of a section: 32 digits.
pub(super) const SECTIONS: usize = 4;
const SECTION: usize = 16;

/// Parses a number exactly.
pub(super) fn number(text: &str) -> Option<i256> {
    let text = text.trim();
    let (whole, fraction) = digits(text)?;
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() + FRACTION as usize > usize::from(DIGITS) || fraction.len() > FRACTION as usize {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let plain = format!("{sign}{}.{fraction:0<1}", if whole.is_empty() { "0" } else { whole });
    parse_decimal::<Decimal256Type>(&plain, DIGITS, FRACTION).ok()
}

/// Splits a number of any length into the digits before and after its point.
pub(super) fn digits(text: &str) -> Option<(&str, &str)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    (are_digits(whole) && are_digits(fraction)).then_some((whole, fraction))
}

pub(super) fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses hexadecimal digits, without a sign.
fn hexadecimal(text: &str) -> Option<u128> {
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u128::from_str_radix(digits, 16).ok()
}

/// Parses PostgreSQL's log sequence number: two hexadecimal halves of 32 bits.
pub(super) fn lsn(text: &str) -> Option<u64> {
    let half = |text| u32::try_from(hexadecimal(text)?).ok();
    let (high, low) = text.trim().split_once('/')?;
    Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
}

/// Parses a hexadecimal number of one to four sections into bytes with the order of numbers.
/// Missing sections are zero, as in BigQuery.
pub(super) fn hex(text: &str) -> Option<[u8; SECTIONS * SECTION]> {
    let text = text.trim();
    let text = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut bytes = [0; SECTIONS * SECTION];
    for (i, section) in text.split(['/', ':']).enumerate() {
        if i == SECTIONS || section.len() > 2 * SECTION {
            return None;
        }
        let number = hexadecimal(section)?;
        bytes[i * SECTION..][..SECTION].copy_from_slice(&number.to_be_bytes());
    }
    Some(bytes)
}

/// Parses a UUID of version 1 into bytes with the order of times: the time, followed by the rest.
pub(super) fn uuid_time(text: &str) -> Option<[u8; 16]> {
    let text = text.trim();
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] || !groups[2].starts_with('1') {
        return None;
    }
    let part = |group: usize| hexadecimal(groups[group]);
    let time = (part(2)? & 0xfff) << 48 | part(1)? << 32 | part(0)?;
    Some((time << 64 | part(3)? << 48 | part(4)?).to_be_bytes())
}

/// A parsed time, and its textual form.
pub(super) struct Time<'a> {
    date: NaiveDate,
    time: NaiveTime,
    fraction: &'a str,
    /// Seconds ahead of UTC, if the text has an offset.
    offset: Option<i64>,
    /// Equal for all texts of one form; texts of one form have the order of their bytes.
    pub(super) shape: u64,
}

/// Parses `2026-01-31`, optionally followed by `T` or a blank and `12:00`, `12:00:30` or
/// `12:00:30.25`, and by `Z`, `+01:00`, `+0100` or `+01`.
pub(super) fn time(text: &str) -> Option<Time<'_>> {
    let text = text.trim();
    let (day, rest) = (text.get(..10)?, &text[10..]);
    let bytes = day.as_bytes();
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |text: &str| are_digits(text).then(|| text.parse::<u32>().ok()).flatten();
    let date = NaiveDate::from_ymd_opt(
        i32::try_from(number(&day[..4])?).ok()?,
        number(&day[5..7])?,
        number(&day[8..])?,
    )?;
    if rest.is_empty() {
        return Some(Time { date, time: NaiveTime::MIN, fraction: "", offset: None, shape: 1 });
    }
    let between = rest.as_bytes()[0];
    let clock = rest.strip_prefix(['T', 't', ' '])?;
    let end =
        clock.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(end);
    let (clock, fraction) = match clock.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (clock, ""),
    };
    let mut parts = clock.split(':');
    let mut part = || parts.next().filter(|part| part.len() == 2).and_then(number);
    let (hour, minute) = (part()?, part()?);
    let has_second = clock.len() > 5;
    let second = if has_second { part()? } else { 0 };
    let is_whole = clock.len() <= 8 && (has_second || fraction.is_empty());
    if !is_whole
        || fraction.len() > FRACTION as usize
        || !(fraction.is_empty() || are_digits(fraction))
    {
        return None;
    }
    let time = NaiveTime::from_hms_opt(hour, minute, second)?;
    let zone = zone.trim_start();
    let offset = match zone {
        "" => None,
        "Z" | "z" | "UTC" => Some(0),
        _ => Some(offset(zone)?),
    };
    // The separator, the numbers of parts and digits of the time, and the text of the offset.
    let mut shape = u64::from(between) << 16 | u64::from(has_second) << 8 | fraction.len() as u64;
    for byte in zone.bytes() {
        shape = shape.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte);
    }
    Some(Time { date, time, fraction, offset, shape: shape | 1 << 63 })
}

/// Parses `+01:00`, `+0100` or `+01` into seconds.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone[1..].replacen(':', "", 1);
    if !are_digits(&digits) || !matches!(digits.len(), 2 | 4) {
        return None;
    }
    let hours: i64 = digits[..2].parse().ok()?;
    let minutes: i64 = if digits.len() == 4 { digits[2..].parse().ok()? } else { 0 };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

impl Time<'_> {
    /// Returns seconds since 1970 in UTC, with all digits of the fraction. Text without an offset
    /// counts as UTC.
    pub(super) fn seconds(&self) -> i256 {
        let days = self.date.signed_duration_since(NaiveDate::default()).num_days();
        let seconds = days * 86_400 + i64::from(self.time.num_seconds_from_midnight());
        let seconds = i128::from(seconds - self.offset.unwrap_or(0));
        let fraction: i128 = format!("{:0<20}", self.fraction).parse().unwrap_or(0);
        i256::from_i128(seconds * 10i128.pow(FRACTION as u32) + fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_sequence_numbers_read_as_postgresql_writes_them() {
        assert_eq!(lsn("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(lsn("0/0"), Some(0));
        assert_eq!(lsn("ffffffff/FFFFFFFF"), Some(u64::MAX));
        for text in ["", "/", "1", "1/", "/1", "1/2/3", "g/1", "+1/1", "100000000/0"] {
            assert_eq!(lsn(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let ascending = ["-1000000", "-9.5", "-0.5", "0", "0.00000000000000000001", "007", "9.75"];
        let large = ["999999", "1000000", "20120505165304080000000000000000065", &"9".repeat(56)];
        let numbers: Vec<_> =
            ascending.iter().chain(&large).map(|text| number(text).expect(text)).collect();
        assert!(numbers.is_sorted());
        assert_eq!(number("+1.50"), number("1.5"));
        let long = "9".repeat(57);
        for text in ["", "-", ".", "1.", ".5", "1e5", "1_000", "0x1", "NaN", "1,5", &long] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(number("0.000000000000000000001"), None, "a digit would be lost");
    }

    #[test]
    fn times_are_in_the_order_of_time() {
        let ascending = [
            "1969-12-31T23:59:59.75Z",
            "1970-01-01",
            "2026-03-01 08:00+02:00",
            "2026-03-01T09:30:00+0200",
            "2026-03-01T08:00:00Z",
            "2026-03-01T08:00:00.1Z",
            "2026-03-01 08:00:00.15",
            "2026-03-01T08:00:00.5 UTC",
            "2026-03-01T08:00:01-00",
        ];
        let seconds: Vec<_> =
            ascending.iter().map(|text| time(text).expect(text).seconds()).collect();
        assert!(seconds.is_sorted(), "{seconds:?}");
        let same = |a: &str, b: &str| time(a).expect(a).shape == time(b).expect(b).shape;
        assert!(same("2026-03-01T08:00:00.1Z", "2027-03-01T09:00:00.2Z"));
        for other in [
            "2026-03-01T08:00:00Z",
            "2026-03-01 08:00:00.1Z",
            "2026-03-01T08:00:00.1",
            "2026-03-01",
        ] {
            assert!(!same("2026-03-01T08:00:00.1Z", other), "{other}");
        }
        for text in [
            "",
            "2026-13-01",
            "2026-3-1",
            "26-01-01",
            "2026-01-01T1:00",
            "2026-01-01T10:00:00.",
            "2026-01-01T25:00",
            "2026-01-01x",
            "2026-01-01T10:00+1",
            "2026-01-01T10:00.5",
            "2026-01-0é",
        ] {
            assert!(time(text).is_none(), "{text}");
        }
    }

    #[test]
    fn hexadecimal_numbers_are_in_the_order_of_their_sections() {
        let ascending = [
            "0",
            "9",
            "F",
            "f/1",
            "10",
            "10/0/1",
            "FF",
            "100",
            "1B374D84800/F",
            "1B374D84800/10",
            "0x1B374D84801",
        ];
        let numbers: Vec<_> = ascending.iter().map(|text| hex(text).expect(text)).collect();
        assert!(numbers.is_sorted());
        for text in ["", "/", "1/", "g", "1/2/3/4/5", &"f".repeat(33), "+1"] {
            assert!(hex(text).is_none(), "{text}");
        }
    }

    #[test]
    fn uuids_of_version_1_are_in_the_order_of_time() {
        let (old, new) =
            ("fffffff0-1234-11ee-8000-000000000001", "00000010-1235-11ee-8000-000000000001");
        assert!(uuid_time(old) < uuid_time(new));
        for text in
            ["", "fffffff0-1234-41ee-8000-000000000001", "fffffff0-1234-11ee-8000-00000000000g"]
        {
            assert!(uuid_time(text).is_none(), "{text}");
        }
    }
}
