//! Rows: values of Rust as bytes that compare as the values do.
//!
//! ```text
//! #[derive(Row)] struct Item { user: u64, name: String }
//!
//! columns    UInt64               Utf8                  what the engine knows of it
//! bytes      user, big-endian     name + 2, then 01     as docs/row-format.md draws a row without nulls
//! ```
//! A struct or a tuple is a column for each of its parts, one behind the other, however deep they are nested. An enum, an
//! `Option` or a list is one column of a nested type, inside of which every value but enums has a marker in front.
//!
//! Invariant: `a.cmp(b) == bytes(a).cmp(bytes(b))`, and no value's bytes begin with another's.

mod compound;
mod plain;

use std::fmt::Debug;

pub use windrow::arrow_schema::DataType;

pub use compound::{enum_of, put_variant, struct_of, take_variant};

/// The marker in front of a value inside of a nested one.
const MARKER: u8 = 1;

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In columns of its own.
    Column,
    /// Inside of a value of a nested type, behind a marker.
    Nested,
}

impl Form {
    /// Writes the marker of a value, if it has one.
    #[inline(always)]
    pub fn put_marker(self, out: &mut Vec<u8>) {
        if self == Self::Nested {
            out.push(MARKER);
        }
    }

    /// Goes behind the marker of a value, if it has one.
    #[inline(always)]
    pub fn take_marker(self, bytes: &mut &[u8]) {
        if self == Self::Nested {
            *bytes = &bytes[1..];
        }
    }
}

/// A value that can be a key or a value of an arrangement.
///
/// The law: `a.cmp(b)` is how the bytes of `a` and `b` compare. `#[derive(Row)]` keeps it for structs and enums whose
/// order is derived, too, and whose parts keep it.
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
/// What reads bytes panics if they are not those of a value: bytes of rows come from rows, and a page that is damaged is
/// found before it is read.
pub trait Row: Clone + Ord + Debug + 'static {
    /// Bytes of every value in columns of its own, if they are the same for all.
    const WIDTH: Option<usize>;

    /// The type of a column of such values.
    fn data_type() -> DataType;

    /// Adds the types of the columns that a value takes: one, if it is not made of parts.
    fn columns(columns: &mut Vec<DataType>) {
        columns.push(Self::data_type());
    }

    /// Adds the bytes of the value.
    fn encode(&self, form: Form, out: &mut Vec<u8>);

    /// Takes a value from the front of `bytes`.
    fn decode(form: Form, bytes: &mut &[u8]) -> Self;

    /// The bytes of the value in columns of its own.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(Form::Column, &mut out);
        out
    }

    /// The value of [`Row::to_bytes`].
    fn from_bytes(mut bytes: &[u8]) -> Self {
        Self::decode(Form::Column, &mut bytes)
    }
}

/// What keys and values of a batch are: values of Rust, each a [`Row`], or columns that are known when the program runs
/// ([`Columns`](crate::Columns)). Batches, traces, joins and reductions know no more of them.
pub trait RowCode: 'static {
    /// Bytes of all of them, if they are the same, whatever the layout.
    const WIDTH: Option<usize>;

    /// What of them can be held on its own.
    type Owned: Clone + Ord + 'static;

    /// Adds the bytes.
    fn put(owned: &Self::Owned, out: &mut Vec<u8>);

    /// The same of its bytes.
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

/// Bytes of two parts together, if both are the same for all values.
pub const fn width_of_both(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        _ => None,
    }
}
