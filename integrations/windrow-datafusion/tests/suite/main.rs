//! The operators inside DataFusion, in one program: linking DataFusion takes long.

mod common;
mod exchanges;
mod growth;
mod memory;
mod operators;
mod same_rows;
mod sqllogictests;
mod tpch;
