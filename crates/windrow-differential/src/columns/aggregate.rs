//! Aggregates, computed on the encoded rows of a key.
//!
//! ```text
//! values   | user.. | amount.. | note.. |      the ascending rows of one key, with multiplicities
//!                     \ column_ends finds it
//! count    sum of the multiplicities
//! sum      sum of the decoded numbers times multiplicity
//! min, max the bytes themselves: they sort like the values
//! ```
//! Invariant: an aggregate's output equals the engine's encoding of the result column.

use std::sync::Arc;

use windrow::arrow_array::ArrowPrimitiveType;
use windrow::arrow_array::types::Float16Type;
use windrow::arrow_schema::{DataType, Field, Schema, SchemaRef};
use windrow::{Error, Layout, Result, column_ends};

use super::Columns;
use super::collection::place_of;
use super::shape::Shape;
use crate::row::Form;
use crate::{DiffCode, Enc, Row};

/// The marker of a value in a nullable column; [`NULL`] is the marker of a null.
const VALUE: u8 = 1;
const NULL: u8 = 2;
/// A two-byte float.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// Digits of a decimal sum.
const DIGITS: u8 = 38;

/// An aggregate over the rows of a key: [`count`], [`sum`], [`min`], [`max`].
#[derive(Clone, Debug)]
pub struct Aggregate {
    kind: Kind,
    column: String,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Sum,
    Least,
    Greatest,
}

/// Counts rows with their multiplicities: `count`, an `Int64`.
pub fn count() -> Aggregate {
    Aggregate { kind: Kind::Count, column: String::new(), name: "count".into() }
}

/// Sums a column over all rows, weighted by multiplicity: `sum(column)`. The sum is an `Int64` for
/// integers, a `UInt64` for unsigned integers, a `Float64` for floats, a decimal of 38 digits for
/// decimals and a duration for durations. Nulls are skipped; the sum of nulls only is null. Floats
/// are added in row order, so the sum depends only on the rows. An overflowing sum ends the
/// dataflow.
pub fn sum(column: impl Into<String>) -> Aggregate {
    Aggregate::of(Kind::Sum, "sum", column.into())
}

/// Aggregates a column to its least non-null value: `min(column)`, of the same type, in the order
/// of [`Order`](windrow::Order).
pub fn min(column: impl Into<String>) -> Aggregate {
    Aggregate::of(Kind::Least, "min", column.into())
}

/// Aggregates a column to its greatest non-null value: `max(column)`.
pub fn max(column: impl Into<String>) -> Aggregate {
    Aggregate::of(Kind::Greatest, "max", column.into())
}

impl Aggregate {
    fn of(kind: Kind, word: &str, column: String) -> Self {
        Self { kind, name: format!("{word}({column})"), column }
    }

    /// Renames the result column.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// Aggregates of the columns of one arrangement.
pub(super) struct Aggregates {
    layout: Layout,
    /// Number of columns of the key. `looked_at` counts the value's columns up to the last
    /// aggregated one.
    key: usize,
    looked_at: usize,
    bound: Vec<Bound>,
    /// The schema of the output: the key, then a column for each aggregate.
    pub(super) schema: SchemaRef,
    /// Ends of the columns of each row.
    ends: Vec<usize>,
}

/// An aggregate, and the position of its column in the rows.
struct Bound {
    kind: Kind,
    column: String,
    /// Index of the column among the columns of a value.
    place: usize,
    has_marker: bool,
    number: Number,
}

/// The numeric interpretation of a column's bytes, and the kind of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// Up to 64 bits.
    Signed,
    Unsigned,
    /// Up to 128 bits.
    Decimal,
    Float,
    /// Not a number.
    None,
}

impl Aggregates {
    /// Binds `aggregates` to rows of `shape` with equal keys.
    pub(super) fn new(
        shape: &Shape,
        aggregates: impl IntoIterator<Item = Aggregate>,
    ) -> Result<Self> {
        let key = shape.key.len();
        let of_key = shape.places[..key].iter().map(|&at| Arc::clone(&shape.schema.fields()[at]));
        let mut fields: Vec<Arc<Field>> = of_key.collect();
        let mut bound = Vec::new();
        for aggregate in aggregates {
            let (one, field) = Bound::new(shape, aggregate)?;
            if fields.iter().any(|other| other.name() == field.name()) {
                let message = format!("more than one column is named {:?}", field.name());
                return Err(Error::InvalidOrder(message));
            }
            fields.push(Arc::new(field));
            bound.push(one);
        }
        let looked_at = bound.iter().filter(|one| one.kind != Kind::Count);
        let looked_at = looked_at.map(|one| one.place + 1).max().unwrap_or(0);
        let (layout, schema) = (shape.layout.clone(), Arc::new(Schema::new(fields)));
        Ok(Self { layout, key, looked_at, bound, schema, ends: Vec::new() })
    }

    /// Computes and encodes all aggregates of `rows`, values with their multiplicities. `rows` must
    /// not be empty.
    pub(super) fn of_rows<R: DiffCode<Lanes = i64>>(
        &mut self,
        rows: &[(Enc<'_, Columns>, R)],
    ) -> Result<Box<[u8]>> {
        let Self { layout, key, looked_at, bound, ends, .. } = self;
        let looked_at = *looked_at;
        ends.resize(rows.len() * looked_at, 0);
        for ((row, _), ends) in rows.iter().zip(ends.chunks_exact_mut(looked_at.max(1))) {
            column_ends(layout, *key, row.bytes(), ends);
        }
        let mut out = Vec::with_capacity(size_of::<u64>() * bound.len());
        for one in bound {
            let slots = rows.iter().enumerate().map(|(at, (row, times))| {
                if one.kind == Kind::Count {
                    return (&[][..], times.lanes());
                }
                let ends = &ends[at * looked_at..][..looked_at];
                let start = one.place.checked_sub(1).map_or(0, |before| ends[before]);
                (&row.bytes()[start..ends[one.place]], times.lanes())
            });
            one.put(slots, &mut out)?;
        }
        Ok(out.into())
    }
}

impl Bound {
    /// Binds an aggregate to a column of `shape`. Also returns the field of the result.
    fn new(shape: &Shape, aggregate: Aggregate) -> Result<(Self, Field)> {
        let Aggregate { kind, column, name } = aggregate;
        if kind == Kind::Count {
            let (place, has_marker, number) = (0, false, Number::Signed);
            let bound = Self { kind, column, place, has_marker, number };
            return Ok((bound, Field::new(name, DataType::Int64, false)));
        }
        let at = place_of(&shape.schema, &column)?;
        let field = shape.schema.field(at);
        let place = shape.places[shape.key.len()..].iter().position(|&place| place == at);
        let Some(place) = place else {
            let message = format!("column {column:?} is one of the key, by which rows are reduced");
            return Err(Error::InvalidOrder(message));
        };
        let (number, sum) = number_of(field.data_type());
        let data_type = match (kind, sum) {
            (Kind::Sum, Some(sum)) => sum,
            (Kind::Sum, None) => {
                let data_type = field.data_type().clone();
                return Err(Error::UnsupportedColumn { column, data_type, role: "added up" });
            }
            _ => field.data_type().clone(),
        };
        // A column of nulls has no bytes.
        let has_marker = field.is_nullable() && *field.data_type() != DataType::Null;
        let field = Field::new(name, data_type, field.is_nullable());
        Ok((Self { kind, column, place, has_marker, number }, field))
    }

    /// Appends the result of `slots`, a column's bytes with the rows' multiplicities.
    fn put<'a>(
        &self,
        slots: impl Iterator<Item = (&'a [u8], i64)> + Clone,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let is_null = |slot: &[u8]| self.has_marker && slot.first() == Some(&NULL);
        let values = slots.clone().filter(|(slot, _)| !is_null(slot));
        let best = match self.kind {
            Kind::Count => {
                let count = slots.map(|(_, times)| i128::from(times)).sum();
                return self.put_whole(count, out);
            }
            Kind::Sum => return self.put_sum(values, out),
            Kind::Least => values.map(|(slot, _)| slot).min(),
            Kind::Greatest => values.map(|(slot, _)| slot).max(),
        };
        // Without values, all slots are null.
        let best = best.or_else(|| slots.clone().next().map(|(slot, _)| slot));
        out.extend_from_slice(best.unwrap_or_default());
        Ok(())
    }

    /// Appends the sum of `values`.
    fn put_sum<'a>(
        &self,
        values: impl Iterator<Item = (&'a [u8], i64)> + Clone,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.has_marker {
            let has_value = values.clone().next().is_some();
            out.push(if has_value { VALUE } else { NULL });
            if !has_value {
                let width = if self.number == Number::Decimal { 16 } else { 8 };
                out.resize(out.len() + width, 0);
                return Ok(());
            }
        }
        let mut values = values.map(|(slot, times)| (&slot[usize::from(self.has_marker)..], times));
        if self.number == Number::Float {
            let sum: f64 = values.map(|(bytes, times)| float_of(bytes) * times as f64).sum();
            let flip = if sum.is_sign_negative() { u64::MAX } else { 1 << 63 };
            out.extend((sum.to_bits() ^ flip).to_be_bytes());
            return Ok(());
        }
        let sum = values.try_fold(0_i128, |sum, (bytes, times)| {
            let value = whole_of(bytes, self.number != Number::Unsigned);
            sum.checked_add(value.checked_mul(times.into())?)
        });
        self.put_whole(sum.ok_or_else(|| self.too_large())?, out)
    }

    /// Appends an integer.
    fn put_whole(&self, value: i128, out: &mut Vec<u8>) -> Result<()> {
        let too_large = |_| self.too_large();
        match self.number {
            Number::Decimal if value.unsigned_abs() < 10_u128.pow(DIGITS.into()) => {
                value.encode(Form::Column, out);
            }
            Number::Decimal => return Err(self.too_large()),
            Number::Unsigned => u64::try_from(value).map_err(too_large)?.encode(Form::Column, out),
            _ => i64::try_from(value).map_err(too_large)?.encode(Form::Column, out),
        }
        Ok(())
    }

    #[cold]
    fn too_large(&self) -> Error {
        let message = "a sum does not fit its type".to_owned();
        Error::Value { column: self.column.clone(), message }
    }
}

/// Returns the numeric interpretation of a type, and the type of the sum.
fn number_of(data_type: &DataType) -> (Number, Option<DataType>) {
    use DataType as Type;
    match data_type {
        Type::Duration(_) => (Number::Signed, Some(data_type.clone())),
        Type::Decimal32(_, scale) | Type::Decimal64(_, scale) | Type::Decimal128(_, scale) => {
            (Number::Decimal, Some(Type::Decimal128(DIGITS, *scale)))
        }
        _ if data_type.is_signed_integer() => (Number::Signed, Some(Type::Int64)),
        _ if data_type.is_unsigned_integer() => (Number::Unsigned, Some(Type::UInt64)),
        _ if data_type.is_floating() => (Number::Float, Some(Type::Float64)),
        _ => (Number::None, None),
    }
}

/// Decodes a big-endian integer; the sign bit is flipped if `is_signed`.
fn whole_of(bytes: &[u8], is_signed: bool) -> i128 {
    let code = bytes.iter().fold(0_u128, |code, &byte| code << 8 | u128::from(byte));
    if !is_signed {
        return code as i128;
    }
    // The code of zero: codes differ by as much as their numbers.
    let zero = 1_u128 << (8 * bytes.len() - 1);
    code.wrapping_sub(zero) as i128
}

/// Decodes a float from its order-preserving code.
fn float_of(bytes: &[u8]) -> f64 {
    let flipped = |code: u64, bits: usize| {
        let sign = 1 << (bits - 1);
        if code & sign == 0 { !code & (u64::MAX >> (64 - bits)) } else { code ^ sign }
    };
    let code = bytes.iter().fold(0_u64, |code, &byte| code << 8 | u64::from(byte));
    match bytes.len() {
        2 => Half::from_bits(flipped(code, 16) as u16).to_f64(),
        4 => f32::from_bits(flipped(code, 32) as u32).into(),
        _ => f64::from_bits(flipped(code, 64)),
    }
}
