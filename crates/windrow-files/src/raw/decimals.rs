//! Decimals of Kafka Connect: the JSON has their bytes, the record's schema has their scale.
//!
//! ```text
//!  "schema":{"fields":[{"field":"after","fields":[
//!      {"field":"amt","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2",..}}]}]}
//!  "after":{"amt":"AN5A"}                            568.96     bytes in base64: an integer, the first byte its highest
//!  "after":{"any":{"scale":2,"value":"AN5A"}}        568.96     io.debezium.data.VariableScaleDecimal
//! ```
//! Each record has its own schema, so the schema may change. The schema of the last record is
//! cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::types::{Decimal256Type, DecimalType};
use arrow_buffer::i256;
use arrow_cast::base64::{BASE64_STANDARD_NO_PAD, Engine};
use memchr::memmem;

use super::declared::Declared;
use super::event::Members;
use super::json::{find, list, members, object, string, text, unquoted};

/// Type names of Kafka Connect and Debezium.
const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";
const VARIABLE: &str = "io.debezium.data.VariableScaleDecimal";

/// Returns true if a schema, as text, has decimals.
pub(super) fn has_decimals_in(schema: &[u8]) -> bool {
    [DECIMAL, VARIABLE].iter().any(|name| memmem::find(schema, name.as_bytes()).is_some())
}

/// The decimals of the last record's schema.
#[derive(Default)]
pub(super) struct LastDecimals(Mutex<Option<Arc<Decimals>>>);

/// The decimals of a schema.
#[derive(Default)]
pub(super) struct Decimals {
    schema: Vec<u8>,
    /// By name, as it stands between its quotes.
    pub(super) columns: HashMap<Vec<u8>, Column>,
}

pub(super) struct Column {
    /// `None` where each value has its own scale.
    scale: Option<i32>,
    precision: Option<u32>,
}

impl LastDecimals {
    /// Returns the decimals of `schema`.
    pub(super) fn of(&self, schema: Option<&[u8]>) -> Arc<Decimals> {
        let schema = schema.unwrap_or_default();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(decimals) if decimals.schema == schema => Arc::clone(decimals),
            _ => {
                let columns = columns(schema).unwrap_or_default();
                let decimals = Arc::new(Decimals { schema: schema.to_vec(), columns });
                Arc::clone(kept.insert(decimals))
            }
        }
    }
}

/// Returns the decimal columns of an event's rows.
fn columns(schema: &[u8]) -> Option<HashMap<Vec<u8>, Column>> {
    if !has_decimals_in(schema) {
        return None;
    }
    let mut columns: HashMap<Vec<u8>, Column> = HashMap::new();
    for image in list(&members(schema)?, "fields")? {
        let image = members(image)?;
        let (place, fields) = (text(&image, "field"), list(&image, "fields"));
        let (Some("after" | "before"), Some(fields)) = (place.as_deref(), fields) else { continue };
        for field in fields {
            let field = members(field)?;
            let name = unquoted(find(&field, "field")?)?;
            if columns.contains_key(name) {
                continue;
            }
            let parameters = object(&field, "parameters").unwrap_or_default();
            let scale = text(&parameters, "scale").and_then(|scale| scale.parse().ok());
            let precision = text(&parameters, "connect.decimal.precision");
            let precision = precision.and_then(|precision| precision.parse().ok());
            match text(&field, "name").as_deref() {
                Some(DECIMAL) if scale.is_some() => {}
                Some(VARIABLE) => {}
                _ => continue,
            }
            columns.insert(name.to_vec(), Column { scale, precision });
        }
    }
    Some(columns)
}

/// Digits of a decimal whose schema does not declare the precision.
const DIGITS: u32 = 38;

/// Digits of Arrow's widest decimal type.
const MOST_DIGITS: u8 = 76;

impl Decimals {
    /// Records the declared types, and the values of columns without one.
    pub(super) fn declare(&self, event: &Members<'_>, declared: &Declared) {
        let mut are_unbounded = false;
        for (name, column) in &self.columns {
            match column.scale {
                Some(scale) => {
                    declared.decimal(name, column.precision.unwrap_or(DIGITS), scale);
                }
                None => are_unbounded = true,
            }
        }
        for image in ["after", "before"].into_iter().filter(|_| are_unbounded) {
            for (name, value) in object(event, image).unwrap_or_default() {
                let is_unbounded = self.columns.get(name).is_some_and(|of| of.scale.is_none());
                if let Some(number) = self.number(name, value).filter(|_| is_unbounded) {
                    declared.unbounded(name, number.as_bytes());
                }
            }
        }
    }

    /// Returns the value as a number; `None` if the column is no decimal or the value is a number
    /// already.
    pub(super) fn number(&self, name: &[u8], value: &[u8]) -> Option<String> {
        let column = self.columns.get(name)?;
        match column.scale {
            Some(scale) => number(&string(value)?, scale),
            None => {
                let parts = members(value)?;
                let scale = std::str::from_utf8(find(&parts, "scale")?).ok()?.parse().ok()?;
                number(&text(&parts, "value")?, scale)
            }
        }
    }
}

/// Decodes a decimal from an integer in base64, with `scale` digits after the point.
fn number(base64: &str, scale: i32) -> Option<String> {
    let bytes = BASE64_STANDARD_NO_PAD.decode(base64.trim_end_matches('=')).ok()?;
    let mut wide = [if *bytes.first()? < 0x80 { 0 } else { 0xFF }; 32];
    let start = wide.len().checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(&bytes);
    let number = i256::from_be_bytes(wide);
    let scale = i8::try_from(scale).ok().filter(|scale| scale.unsigned_abs() <= MOST_DIGITS)?;
    // A number of 32 bytes may have a digit more than a decimal.
    Some(Decimal256Type::format_decimal(number, MOST_DIGITS + 1, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decimals() {
        for (base64, scale, expected) in [
            ("AN5A", 2, Some("568.96")),
            ("ew==", 0, Some("123")),
            ("/w==", 3, Some("-0.001")),
            ("AA==", 2, Some("0.00")),
            ("gA==", 0, Some("-128")),
            ("ew==", -2, Some("12300")),
            ("", 0, None),
            ("1.5", 0, None),
            ("AA==", 1_000_000, None),
            ("ESIQ9H3pgRU=", 2, Some("12345678901234567.89")),
            ("7t3vC4IWfus=", 4, Some("-123456789012345.6789")),
        ] {
            assert_eq!(number(base64, scale).as_deref(), expected, "{base64}");
        }
    }
}
