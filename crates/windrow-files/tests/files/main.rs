//! Tests of jobs in a program. The module `modules` checks the crate's own sources.

mod checksums;
mod diffs;
mod examples;
mod jobs;
mod modules;
mod passing;
