//! The folders are the architecture: a module uses only earlier modules, few files use each other,
//! and no part is too long to read. Of the engine's crates, all but `windrow-kernel` forbid `unsafe`.

#[path = "../../../windrow-files/tests/files/sources/mod.rs"]
mod sources;

/// The crates of the engine in the order of the data, each with its modules. A batcher seals
/// batches, so `batch` precedes `batcher`.
const CRATES: [(&str, &[&str]); 5] = [
    (
        "windrow-kernel",
        &[
            "allocator",
            "cpu",
            "prefetch",
            "compare",
            "prefix",
            "merge",
            "copy",
            "radix",
            "region",
            "strings",
            "values",
            "viewed",
            "views",
            "rows",
            "partition",
        ],
    ),
    ("windrow-rows", &["error", "time", "order", "rows", "argsort", "engine"]),
    (
        "windrow-pool",
        &[
            "sync",
            "lock",
            "budget",
            "system",
            "buffer",
            "codec",
            "policy",
            "options",
            "recycled",
            "spiller",
            "residents",
            "metrics",
            "store",
            "pool",
        ],
    ),
    ("windrow-partition", &["partition", "page"]),
    (
        "windrow",
        &["chunk", "merge", "batch", "cursor", "spine", "batcher", "table", "arrange", "groups"],
    ),
];

/// Returns the folders of the crates, with their modules.
fn crates() -> impl Iterator<Item = (String, &'static [&'static str])> {
    CRATES.iter().map(|(name, order)| (format!("{}/../{name}", env!("CARGO_MANIFEST_DIR")), *order))
}

#[test]
fn a_module_uses_only_those_before_it() {
    crates().for_each(|(root, order)| sources::check_order(&root, order));
}

#[test]
fn few_files_use_each_other() {
    crates().for_each(|(root, _)| sources::check_circles(&root));
}

#[test]
fn files_and_functions_are_short() {
    crates().for_each(|(root, _)| sources::check_lengths(&root));
}

/// Decision 042 says of each file with unsafe code why it needs it.
#[test]
fn unsafe_code_has_its_reason() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = format!("{root}/docs/decisions/042-the-engine-is-five-crates.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut folders = vec!["crates/windrow-kernel/src".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(format!("{root}/{folder}")).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(name);
            } else if !name.ends_with("/tests.rs") && !name.ends_with("/lib.rs") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let is_unsafe = text.split(|c: char| !c.is_alphabetic()).any(|w| w == "unsafe");
                assert_eq!(page.contains(&format!("`{name}`")), is_unsafe, "{name}");
            }
        }
    }
}
