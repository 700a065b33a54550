//! Numbers between the values of a column: `d < 3.685` for `d` with two digits after the point.
//!
//! ```text
//!  3.685     is cut off to  3.68      d < 3.685  -->  d <= 3.68     d > 3.685  -->  d > 3.68     no d is equal
//!  -3.685    is cut off to  -3.68     d < -3.685 -->  d < -3.68     d > -3.685 -->  d >= -3.68
//!  1e9 digits before the point: all values are less, or all are greater
//! ```

use arrow_array::{ArrayRef, Scalar};
use arrow_schema::DataType;

use crate::input::options::filter::Op;
use crate::nested::of_decimal;

use super::{BoundTest, literal};

/// A number that equals no value of the column.
pub(super) struct Between {
    is_negative: bool,
    /// The number truncated toward zero; `None` beyond all values.
    cut: Option<ArrayRef>,
}

impl Between {
    /// Parses `text` as a number between values of `kind`.
    pub(super) fn of(text: &str, kind: &DataType) -> Option<Self> {
        let scale = match of_decimal(kind) {
            Some((_, scale)) => usize::try_from(scale).ok()?,
            None if kind.is_integer() => 0,
            None => return None,
        };
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mut all = whole.bytes().chain(fraction.bytes()).peekable();
        if all.peek().is_none() || !all.all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let is_negative = text.starts_with('-');
        let (sign, whole) = (if is_negative { "-" } else { "" }, whole.trim_start_matches('0'));
        let whole = if whole.is_empty() { "0" } else { whole };
        let cut = match &fraction[..fraction.len().min(scale)] {
            "" => literal(&format!("{sign}{whole}"), kind),
            fraction => literal(&format!("{sign}{whole}.{fraction}"), kind),
        };
        Some(Self { is_negative, cut })
    }

    /// Returns the equivalent test on the column.
    pub(super) fn test(self, op: Op) -> BoundTest {
        let Self { is_negative, cut } = self;
        let is_less = matches!(op, Op::Less | Op::LessOrEqual);
        match (op, cut) {
            (Op::Equal, _) => BoundTest::NEVER,
            (Op::NotEqual, _) => BoundTest::NOT_NULL,
            (_, None) if is_less == is_negative => BoundTest::NEVER,
            (_, None) => BoundTest::NOT_NULL,
            (_, Some(cut)) => {
                let op = match (is_less, is_negative) {
                    (true, false) => Op::LessOrEqual,
                    (true, true) => Op::Less,
                    (false, false) => Op::Greater,
                    (false, true) => Op::GreaterOrEqual,
                };
                BoundTest::Compare(op, Scalar::new(cut))
            }
        }
    }
}
