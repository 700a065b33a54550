//! Decimal types declared by records beside the values of their rows; JSON has no such type.
//!
//! ```text
//!  {"name":"amt","type":"numeric(20,2)","value":12.5}      decimal(20,2)
//!  {"name":"amt","type":"numeric","value":0.1234567890123456789}   38 digits, of which as many behind the point as were seen
//!  {"name":"amt","type":"numeric","value":12.5}            nothing: a float prints as the value
//! ```
//! Types are collected until type inference is complete.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};

use super::json::string;
use crate::lock::lock;

/// Decimal digits that every 64-bit float preserves.
const FLOAT_DIGITS: u32 = 15;

/// Decimal digits of the largest 64-bit integer.
const INTEGER_DIGITS: u32 = 19;

/// The declared digits by column.
#[derive(Default)]
pub(super) struct Declared {
    is_settled: AtomicBool,
    columns: Mutex<BTreeMap<String, Digits>>,
}

/// The digits of a decimal.
#[derive(Clone, Copy, Default)]
struct Digits {
    before: u32,
    behind: u32,
    /// Whether the declared type sets the digits.
    by_type: bool,
    /// Whether a value has more digits than a float preserves.
    many: bool,
}

impl Declared {
    /// Returns true while types are collected.
    pub(super) fn is_open(&self) -> bool {
        !self.is_settled.load(Ordering::Relaxed)
    }

    pub(super) fn settle(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }

    /// Records the SQL type `kind`, a JSON string, of the column `name`, a string with escapes
    /// but without quotes.
    pub(super) fn as_sql(&self, name: &[u8], kind: Option<&[u8]>, value: &[u8]) {
        let kind = kind.and_then(string).unwrap_or_default();
        match kind.strip_prefix("numeric") {
            Some("") => self.unbounded(name, value),
            Some(arguments) => {
                let arguments = arguments.strip_prefix('(').and_then(|of| of.strip_suffix(')'));
                let Some(arguments) = arguments else { return };
                let (precision, scale) = arguments.split_once(',').unwrap_or((arguments, "0"));
                if let (Ok(precision), Ok(scale)) = (precision.trim().parse(), scale.trim().parse())
                {
                    self.decimal(name, precision, scale);
                }
            }
            None => {}
        }
    }

    /// Records a decimal of `precision` digits, `scale` of them after the point.
    pub(super) fn decimal(&self, name: &[u8], precision: u32, scale: i32) {
        let before = (i64::from(precision) - i64::from(scale)).max(0);
        let digits = Digits {
            before: u32::try_from(before).unwrap_or(u32::MAX),
            behind: u32::try_from(scale).unwrap_or(0),
            by_type: true,
            many: false,
        };
        self.note(name, digits);
    }

    /// Records a value of a decimal without declared digits.
    pub(super) fn unbounded(&self, name: &[u8], value: &[u8]) {
        let value = value.strip_prefix(b"-").unwrap_or(value);
        let (whole, fraction) = match value.iter().position(|byte| *byte == b'.') {
            Some(point) => (&value[..point], &value[point + 1..]),
            None => (value, &b""[..]),
        };
        if !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
            return;
        }
        let (before, behind) = (whole.len() as u32, fraction.len() as u32);
        let many = match behind {
            0 => before > INTEGER_DIGITS,
            _ => before + behind > FLOAT_DIGITS,
        };
        self.note(name, Digits { before, behind, by_type: false, many });
    }

    fn note(&self, name: &[u8], new: Digits) {
        let mut columns = lock(&self.columns);
        let name = match name.contains(&b'\\') {
            true => string(&[b"\"", name, b"\""].concat()).unwrap_or_default(),
            false => String::from_utf8_lossy(name).into_owned(),
        };
        let digits = columns.entry(name).or_default();
        digits.before = digits.before.max(new.before);
        digits.behind = digits.behind.max(new.behind);
        digits.by_type |= new.by_type;
        digits.many |= new.many;
    }

    /// Returns the column types that JSON cannot express.
    pub(super) fn types(&self) -> HashMap<String, DataType> {
        let columns = lock(&self.columns);
        let known =
            columns.iter().filter_map(|(name, digits)| Some((name.clone(), digits.kind()?)));
        known.collect()
    }
}

impl Digits {
    fn kind(self) -> Option<DataType> {
        let needs = self.before.checked_add(self.behind)?.max(1);
        let scale = i8::try_from(self.behind).ok()?;
        let (narrow, wide) = (DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION);
        let precision = u8::try_from(needs).ok().filter(|needs| *needs <= wide)?;
        match (self.by_type, precision <= narrow) {
            (true, true) => Some(DataType::Decimal128(precision, scale)),
            (true, false) => Some(DataType::Decimal256(precision, scale)),
            (false, _) if !self.many => None,
            (false, true) => Some(DataType::Decimal128(narrow, scale)),
            (false, false) => Some(DataType::Decimal256(wide, scale)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_declared_by_their_types_or_their_values() {
        let (narrow, wide) = (DataType::Decimal128, DataType::Decimal256);
        for (columns, expected) in [
            (&[("numeric(20,2)", "1")][..], Some(narrow(20, 2))),
            (&[("numeric(5)", "1")], Some(narrow(5, 0))),
            (&[("numeric(60,2)", "1")], Some(wide(60, 2))),
            (&[("numeric(100,2)", "1")], None),
            (&[("numeric(3,5)", "0.00123")], Some(narrow(5, 5))),
            (&[("numeric(3,-2)", "12300")], Some(narrow(5, 0))),
            (&[("numeric(10,2)", "1"), ("numeric(10,4)", "1")], Some(narrow(12, 4))),
            (&[("numeric", "1.5"), ("numeric", "12345")], None),
            (&[("numeric", "1234567890123456789")], None),
            (&[("numeric", "12345678901234567890")], Some(narrow(38, 0))),
            (&[("numeric", "null"), ("numeric", "-12345678901234567.89")], Some(narrow(38, 2))),
            (&[("numeric", "0.0000000000000000000000000000000000000000001")], Some(wide(76, 43))),
            (&[("numeric(20,2)[]", "\"{}\""), ("double precision", "1.5")], None),
        ] {
            let declared = Declared::default();
            for (kind, value) in columns {
                declared.as_sql(b"a", Some(format!("{kind:?}").as_bytes()), value.as_bytes());
            }
            let found = declared.types().into_values().next();
            assert_eq!(found, expected, "{columns:?}");
        }
    }
}
