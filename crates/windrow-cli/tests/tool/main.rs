//! The command line tool, as a process. One program: each would be linked with all of Arrow and Parquet.

mod atomic;
mod bad_input;
mod change_logs;
mod cli;
mod common;
mod csv_options;
mod diff;
mod exact_values;
mod full_disk;
mod help;
mod hive;
mod inputs;
mod json_inputs;
mod killed;
mod messages;
mod modules;
mod names;
mod odd_inputs;
mod outputs;
mod packed;
mod parquet_types;
mod partition;
mod reference;
mod spilling;
mod union;
mod verbs;
