//! Ordered codes of nested types: lists, structs, maps, unions, of any depth.
//!
//! ```text
//! value      = null     00 if nulls are low, 02 if they are high
//!            | 01 body
//! body       = the ordered code of the type, as in a slot
//!            | (01 value)* 00                    List, ListView, Large-, Map
//!            | value * size                      FixedSizeList
//!            | value of each field               Struct; the entries of a Map
//!            | type id + 1, value                Union, which has no marker
//! nothing:     Null
//! ```
//!
//! Module `tree` writes the codes, and the readers of `rows/value` read them, both column by
//! column. This module contains the shared parts, and skips values. Columns that take no part in
//! the order have the same codes, in [`Form::STORED`].
//!
//! Invariant: codes have the order of the values: element by element, the shorter list first, nulls
//! at every level on the column's side. No code is a prefix of another. `flip` complements all
//! bytes.

mod codes;
mod form;
mod framing;
mod tree;

pub(super) use codes::stored;
pub(super) use form::{
    END, Form, MORE, Marked, VALUE, child, cut_off, end_of, null_id, null_marker, other_node,
};
pub(super) use framing::{Frame, Framing, ListFrame, Ordered};
pub(super) use tree::Tree;
