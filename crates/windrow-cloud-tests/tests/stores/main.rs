//! Jobs from and to stores, with and without faults.

mod common;
mod faults;
mod jobs;
