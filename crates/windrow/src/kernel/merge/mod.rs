//! Two-way merges of rows: of one length, with kernels of their own, and of any.
//!
//! ```text
//! two     a | | | | |  and  b | | | |   -->   out | | | | | | | | |      block by block
//! steps   how one row, one run, one block of rows is moved
//! sum     neighbours in out that are equal become one
//! varying the same for rows of any length, in one loop
//! ```
//!
//! Rows compare by their first `body` bytes; what stands behind is a diff of eight bytes, or nothing.

mod shape;
mod steps;
mod sum;
mod two;
mod varying;

pub(crate) use shape::Strided;
pub(crate) use two::{ascends, merge};
pub(crate) use varying::{Target, Varying, merge_varying};
