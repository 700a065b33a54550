//! The command line is thin: a module uses only modules before it in `ORDER`, and all modules
//! together are short.

#[path = "../../../windrow-files/tests/files/sources/mod.rs"]
mod sources;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Modules in the order of dependence.
const ORDER: [&str; 9] =
    ["texts", "args", "advice", "help", "bar", "stdout", "report", "signals", "run"];

#[test]
fn a_module_uses_only_those_before_it() {
    sources::check_order(ROOT, &ORDER);
    sources::check_circles(ROOT);
}

#[test]
fn files_and_functions_are_short_and_the_whole_is_thin() {
    sources::check_lengths(ROOT);
    let lines = sources::lines_of_code(ROOT);
    assert!(
        lines < 2500,
        "{lines} lines of code: what is no argument and no word is the library's"
    );
}
