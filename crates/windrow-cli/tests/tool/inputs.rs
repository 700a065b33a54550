//! Various kinds of inputs: a table of [cases](crate::common::cases) in `inputs` for each kind.

use crate::common::cases::check;

#[test]
fn floats_as_keys() {
    check("", include_str!("inputs/floats.txt"), 40);
}

#[test]
fn compressed_text() {
    check("", include_str!("inputs/packed.txt"), 40);
}

#[test]
fn inputs_of_other_columns() {
    check("", include_str!("inputs/union.txt"), 40);
}

#[test]
fn paths_into_structs() {
    check("", include_str!("inputs/paths.txt"), 40);
}

#[test]
fn directories_that_are_values() {
    check("", include_str!("inputs/hive.txt"), 40);
}

#[test]
fn csv_of_all_sorts() {
    check("", include_str!("inputs/csv.txt"), 40);
}

#[test]
fn json_of_all_shapes() {
    check("", include_str!("inputs/json.txt"), 40);
}
