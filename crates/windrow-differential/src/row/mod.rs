//! Rows: Rust values encoded as bytes with the same order.
//!
//! ```text
//! #[derive(Row)] struct Item { user: u64, name: String }
//!
//! columns    UInt64               Utf8                  as the engine sees the type
//! bytes      user, big-endian     name + 2, then 01     see docs/row-format.md, rows without nulls
//! ```
//! A struct or a tuple is encoded as one column for each part, in sequence, however deeply nested.
//! An enum, an `Option` or a list is one column of a nested type. Inside of a nested type each
//! value except enums has a marker in front.
//!
//! Invariant: `a.cmp(b) == bytes(a).cmp(bytes(b))`, and encodings are prefix-free.

mod compound;
mod plain;

use std::fmt::Debug;

pub use windrow::arrow_schema::DataType;

pub use compound::{enum_of, put_variant, struct_of, take_variant};

/// The marker of a value inside of a nested type.
const MARKER: u8 = 1;

/// The position of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In columns of its own.
    Column,
    /// Inside of a nested type, after a marker.
    Nested,
}

impl Form {
    /// Appends the marker, if the value is nested.
    #[inline(always)]
    pub fn put_marker(self, out: &mut Vec<u8>) {
        if self == Self::Nested {
            out.push(MARKER);
        }
    }

    /// Skips the marker, if the value is nested.
    #[inline(always)]
    pub fn take_marker(self, bytes: &mut &[u8]) {
        if self == Self::Nested {
            *bytes = &bytes[1..];
        }
    }
}

/// A value that can be a key or a value of an arrangement.
///
/// The law: `a.cmp(b)` equals the comparison of the bytes of `a` and `b`. `#[derive(Row)]` obeys
/// the law for structs and enums with derived order whose parts obey the law.
///
/// ```
/// use windrow_differential::Row;
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
/// struct Item {
///     user: u64,
///     name: String,
/// }
///
/// let bytes = |user, name: &str| Item { user, name: name.into() }.to_bytes();
/// assert!(bytes(1, "b") < bytes(1, "ba") && bytes(1, "ba") < bytes(2, ""));
/// assert_eq!(Item::from_bytes(&bytes(7, "x")), Item { user: 7, name: "x".into() });
/// ```
///
/// # Panics
/// Decoding panics if the bytes do not encode a value. Row bytes come only from encoded rows, and a
/// checksum finds a damaged page before decoding.
pub trait Row: Clone + Ord + Debug + 'static {
    /// Bytes of a value in columns of its own, if equal for all values.
    const WIDTH: Option<usize>;

    /// Returns the type of a column of such values.
    fn data_type() -> DataType;

    /// Appends the types of the value's columns: one, unless the type has parts.
    fn columns(columns: &mut Vec<DataType>) {
        columns.push(Self::data_type());
    }

    /// Appends the bytes of the value.
    fn encode(&self, form: Form, out: &mut Vec<u8>);

    /// Decodes a value from the front of `bytes`.
    fn decode(form: Form, bytes: &mut &[u8]) -> Self;

    /// Encodes the value in columns of its own.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(Form::Column, &mut out);
        out
    }

    /// Decodes the bytes of [`Row::to_bytes`].
    fn from_bytes(mut bytes: &[u8]) -> Self {
        Self::decode(Form::Column, &mut bytes)
    }
}

/// The keys and values of a batch: Rust values, each a [`Row`], or columns known at run time
/// ([`Columns`](crate::Columns)). Batches, traces, joins and reductions need only this trait.
pub trait RowCode: 'static {
    /// Bytes of an encoding, if equal for all values under every layout.
    const WIDTH: Option<usize>;

    /// The owned form.
    type Owned: Clone + Ord + 'static;

    /// Appends the bytes.
    fn put(owned: &Self::Owned, out: &mut Vec<u8>);

    /// Decodes the owned form.
    fn take(bytes: &[u8]) -> Self::Owned;
}

impl<K: Row> RowCode for K {
    const WIDTH: Option<usize> = <K as Row>::WIDTH;

    type Owned = K;

    #[inline(always)]
    fn put(owned: &K, out: &mut Vec<u8>) {
        owned.encode(Form::Column, out);
    }

    #[inline(always)]
    fn take(bytes: &[u8]) -> K {
        K::from_bytes(bytes)
    }
}

/// Returns the bytes of two parts together, if both have a fixed width.
pub const fn width_of_both(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        _ => None,
    }
}
