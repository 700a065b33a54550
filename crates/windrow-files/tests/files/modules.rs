//! The folder is the architecture: a module uses only modules before it, and no file or function is
//! too long to read.

#[path = "sources/mod.rs"]
mod sources;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Modules in the order of the data.
const ORDER: [&str; 34] = [
    "lock",
    "settings",
    "error",
    "size",
    "columns",
    "names",
    "nested",
    "paths",
    "equality",
    "derived",
    "facts",
    "packing",
    "rewrite",
    "format",
    "offset",
    "preset",
    "raw",
    "thrift",
    "system",
    "longest",
    "watch",
    "limits",
    "progress",
    "stats",
    "store",
    "input",
    "output",
    "changelog",
    "partition",
    "verbs",
    "job",
    "inspect",
    "apply",
    "request",
];

/// The floors of `input`, in the order of the data.
const INPUT: [&str; 12] = [
    "charset",
    "options",
    "source",
    "row_groups",
    "opened",
    "text",
    "formats",
    "schema",
    "filter",
    "units",
    "logs",
    "opener",
];

/// The floors of `apply`, in the order of the data.
const APPLY: [&str; 18] = [
    "figures",
    "keys",
    "transform",
    "partitions",
    "homes",
    "hidden",
    "table",
    "changes",
    "extents",
    "plan",
    "find",
    "positions",
    "merge",
    "segment",
    "outputs",
    "rewrite",
    "prepared",
    "directory",
];

#[test]
fn a_module_uses_only_those_before_it() {
    sources::check_order(ROOT, &ORDER);
    sources::check_floors(ROOT, "input", &INPUT);
    sources::check_floors(ROOT, "apply", &APPLY);
}

#[test]
fn few_files_use_each_other() {
    sources::check_circles(ROOT);
}

#[test]
fn files_and_functions_are_short() {
    sources::check_lengths(ROOT);
}

#[test]
fn few_types_have_one_name() {
    sources::check_names(ROOT);
}
