//! Tests of jobs in a program. `modules` notices changes of the folder.

mod checksums;
mod diffs;
mod examples;
mod jobs;
mod modules;
mod passing;
