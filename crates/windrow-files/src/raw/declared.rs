//! The types that records declare beside the values of their rows, as far as JSON has nothing of them: decimals.
//!
//! ```text
//!  {"name":"amt","type":"numeric(20,2)","value":12.5}      decimal(20,2)
//!  {"name":"amt","type":"numeric","value":0.1234567890123456789}   38 digits, of which as many behind the point as were seen
//!  {"name":"amt","type":"numeric","value":12.5}            nothing: a float prints as the value
//! ```
//! They are noted down as long as types are inferred.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};

use super::json::string;

/// Digits that a float of 64 bits keeps, whatever they are.
const FLOAT_DIGITS: u32 = 15;

/// Digits that an integer of 64 bits may have.
const INTEGER_DIGITS: u32 = 19;

/// What was declared, by column.
pub(super) struct Declared {
    open: AtomicBool,
    columns: Mutex<BTreeMap<String, Digits>>,
}

/// The digits of a decimal.
#[derive(Clone, Copy, Default)]
struct Digits {
    before: u32,
    behind: u32,
    /// The type has them.
    by_type: bool,
    /// A value has more of them than a float keeps.
    many: bool,
}

impl Declared {
    pub(super) fn new() -> Self {
        Self { open: AtomicBool::new(true), columns: Mutex::default() }
    }

    /// Whether anything is still noted down.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn settle(&self) {
        self.open.store(false, Ordering::Relaxed);
    }

    fn columns(&self) -> MutexGuard<'_, BTreeMap<String, Digits>> {
        self.columns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes down a type of SQL as a string of JSON, of the column `name`, as it stands between quotes.
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

    /// Notes down a decimal of so many digits, `scale` of them behind the point.
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

    /// Notes down a value of a decimal of any digits.
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
        let mut columns = self.columns();
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

    /// The types of columns that JSON does not tell.
    pub(super) fn types(&self) -> HashMap<String, DataType> {
        let columns = self.columns();
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
            let declared = Declared::new();
            for (kind, value) in columns {
                declared.as_sql(b"a", Some(format!("{kind:?}").as_bytes()), value.as_bytes());
            }
            let found = declared.types().into_values().next();
            assert_eq!(found, expected, "{columns:?}");
        }
    }
}
