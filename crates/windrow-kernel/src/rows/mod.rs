//! Kernels of rows: columns into rows and back.
//!
//! ```text
//! lanes      numbers of 4, 8 and 16 bytes: transposed in registers in any mix, or with markers
//! bytes      one byte of each row: Booleans, markers, bytes of small numbers
//! each, raw  values of any width, column by column
//! text ..    strings of any Arrow layout, in any form of rows
//! ```
//!
//! Each kernel has a portable path, and a path for an instruction set where it pays; a test runs
//! both on the same data.

#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod block;
pub mod blocks;
mod bytes;
mod each;
pub mod exact;
mod lanes;
pub mod lengths;
mod raw;
pub mod take_blocks;
pub mod take_text;
#[cfg(test)]
mod tests;
pub mod text;
mod texts;

pub use bytes::{ByteLane, Source, put_bytes};
pub use each::{Read, take_each, take_flags, take_some};
pub use lanes::{
    Bits, Cell, Cells, Code, Held, Lane, LaneOut, Lanes, Places, Scattered, Strided, Word, put,
    put_cells, set_lengths, take, take_cell,
};
pub use raw::{Raw, put_raw, take_raw};
