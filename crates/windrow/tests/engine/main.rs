//! Tests of the engine from outside. Tests with a process of their own, or loom, are in files
//! beside this folder.

#[path = "../common/mod.rs"]
mod common;

mod budget_holds;
mod compat_is_arrow_row;
mod encoded_rows;
mod every_type;
mod groups;
mod mistakes_are_errors;
mod modules;
mod moves_between_threads;
mod oracle_consolidate;
mod oracle_last;
mod oracle_last_known;
mod oracle_merge;
mod oracle_sort;
mod pages;
mod pages_leave;
mod partition_builder;
mod partition_hash;
mod partition_model;
mod partition_rules;
mod rows_larger_than_memory;
mod seals_of_many_times;
mod slabs_do_not_show_the_memory;
