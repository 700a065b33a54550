//! Lanes: columns of fixed width into rows and back.
//!
//! Adjacent columns of one width form a block. A kernel loads a block column by column and stores
//! it row by row, or the reverse, and converts between values and codes on the way:
//!
//! ```text
//! values            codes                            rows
//! a0 a1 a2 a3       xor, null, big-endian            | a0 | b0 | c0 | d0 |   place(0)
//! b0 b1 b2 b3  -->  in registers            -->      | a1 | b1 | c1 | d1 |   place(1)
//! c0 c1 c2 c3       turned: 4 x 4                    | a2 | b2 | c2 | d2 |   place(2)
//! d0 d1 d2 d3                                        | a3 | b3 | c3 | d3 |   place(3)
//! ```
//!
//! [`put`] and [`take`] are one loop each over any [`Vector`](vector::Vector); [`cells`] has a
//! marker before each value.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod cells;
mod lane;
mod level;
mod places;
mod portable;
mod put;
mod take;
mod take_cells;
#[cfg(test)]
mod tests;
mod vector;

pub use cells::{Cells, put_cells};
pub use lane::{Bits, Code, Lane, LaneOut, Word};
pub(super) use places::check_bounds;
pub use places::{Places, Scattered, Strided, set_lengths};
pub use put::{Lanes, put};
pub use take::take;
pub use take_cells::{Cell, Held, take_cell};
