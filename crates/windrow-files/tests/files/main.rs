//! Jobs, from a program. Changes of the folder are seen by `modules`.

mod checksums;
mod diffs;
mod examples;
mod jobs;
mod modules;
mod passing;
