//! Jobs from stores and to them, and what goes wrong on the way.

mod common;
mod faults;
mod jobs;
