//! The folder is the architecture: a module uses only earlier modules, and all `unsafe` code is in
//! `kernel`.

use std::path::{Path, PathBuf};

/// Modules in the order of the data. A batcher seals batches, so `batch` precedes `batcher`.
const ORDER: [&str; 17] = [
    "error",
    "kernel",
    "time",
    "order",
    "rows",
    "argsort",
    "pool",
    "partition",
    "page",
    "chunk",
    "merge",
    "batch",
    "cursor",
    "spine",
    "batcher",
    "table",
    "arrange",
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => out.extend(files(&path)),
            false => out.push(path),
        }
    }
    out
}

/// A line of code: its number, the depth of its module, its text without comments.
type Line = (usize, usize, String);

/// Returns the top-level module of each file, and its lines.
fn sources() -> Vec<(String, PathBuf, Vec<Line>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut out = Vec::new();
    for path in files(&root) {
        let inside: Vec<String> = path
            .strip_prefix(&root)
            .unwrap()
            .with_extension("")
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .filter(|part| part != "mod" && part != "lib")
            .collect();
        let Some(module) = inside.first().cloned() else { continue };
        let mut inline = 0;
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(std::fs::read_to_string(&path).unwrap().lines()) {
            let code = line.split("//").next().unwrap_or_default().to_owned();
            if code.starts_with("mod ") && code.trim_end().ends_with('{') {
                inline += 1;
            } else if inline > 0 && code.starts_with('}') {
                inline -= 1;
            }
            lines.push((number, inside.len() + inline, code));
        }
        out.push((module, path, lines));
    }
    out
}

/// Returns the first name of each path after `crate::` in `code`.
fn used(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        // Empty for a list of names, which the test refuses: one line, one module.
        names.extend(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    }
    names
}

/// Returns the length of the longest chain of `super::` in `code`.
fn climbs(code: &str) -> usize {
    (1..9).take_while(|&count| code.contains(&"super::".repeat(count))).count()
}

#[test]
fn a_module_uses_only_those_before_it() {
    let mut wrong = Vec::new();
    for (module, path, lines) in sources() {
        let place = ORDER.iter().position(|name| *name == module);
        let place = place.unwrap_or_else(|| panic!("{module} has no place in the order"));
        for (number, depth, code) in lines {
            for name in used(&code) {
                let before = ORDER[..=place].contains(&name);
                // Names at the top are for users: inside the crate they hide the module of origin.
                if !before {
                    wrong.push(format!("{}:{number}: {module} uses {name}", path.display()));
                }
            }
            if climbs(&code) >= depth {
                wrong.push(format!("{}:{number}: {module} climbs to the top", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_is_in_the_kernel() {
    for (module, path, lines) in sources() {
        for (number, _, code) in lines {
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let found = words.into_iter().any(|word| word == "unsafe");
            assert!(!found || module == "kernel", "{}:{number}: unsafe", path.display());
        }
    }
}

#[test]
fn the_order_is_that_of_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let lib = std::fs::read_to_string(root).unwrap();
    let mut declared: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "))
        .map(|name| name.trim_end_matches(';'))
        .collect();
    declared.sort_unstable();
    let mut order = ORDER;
    order.sort_unstable();
    assert_eq!(declared, order);
}
