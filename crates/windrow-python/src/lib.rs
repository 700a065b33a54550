//! The Python package `windrow`: paths and Arrow streams in, files and Arrow streams out.
//!
//! ```text
//! python/windrow --> verbs --> options, inputs --> task: a thread --> windrow_files::Job
//!                                   |                     |  the caller polls: signals, progress
//!                                memory                errors, reader --> Python
//! ```
//!
//! The crate is thin: it converts arguments, calls the library, and converts the results. While a
//! job runs, only the polling thread touches Python objects. Inputs produced by Python attach to
//! the interpreter themselves, and are therefore read only while this crate is detached.
//!
//! Left out: the crate does not own the host process. It sets no signal handler and no allocator
//! option, starts no thread before a job, and prints nothing. The exception is the console script,
//! whose process belongs to the tool.

mod errors;
mod inputs;
mod keys;
mod memory;
mod options;
mod reader;
mod table;
mod task;
mod verbs;

/// The native half of the package `windrow`. Needs no GIL: objects are frozen, and what changes is
/// behind locks (tests/python/test_threads.py).
#[pyo3::pymodule(gil_used = false)]
mod _windrow {
    #[pymodule_export]
    use crate::options::{Column, col};
    #[pymodule_export]
    use crate::reader::{Reader, RecordBatch, Schema};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::verbs::{apply, check, described, explain, inspect, main, put_new, run};

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
