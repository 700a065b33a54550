//! Checks of a crate's sources: dependencies between modules and between files, and lengths of files
//! and functions.

mod graph;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[allow(unused_imports, reason = "one of the crates has no module with floors")]
pub(crate) use graph::{check_circles, check_floors};

/// Maximum lines of code in a file: lines other than comments and blank lines, tests included.
const FILE: usize = 400;
/// Maximum lines of code in a function.
const FUNCTION: usize = 80;
/// Maximum types of one name.
const NAMESAKES: usize = 3;

/// A file of a crate.
struct Source {
    /// The top-level module of the file; empty for `lib.rs` and `main.rs`.
    module: String,
    path: PathBuf,
    /// The path of the module from the crate's root; empty for `lib.rs` and `main.rs`.
    names: Vec<String>,
    text: String,
}

fn sources(folder: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let within = path.strip_prefix(folder).expect("in it").with_extension("");
            let names: Vec<String> = within
                .iter()
                .filter_map(|part| part.to_str())
                .filter(|part| !["mod", "lib", "main"].contains(part))
                .map(str::to_owned)
                .collect();
            let module = names.first().cloned().unwrap_or_default();
            let text = std::fs::read_to_string(&path).expect("text");
            found.push(Source { module, path, names, text });
        }
    }
    found
}

/// Returns a line without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default().trim_end()
}

fn is_code(line: &&str) -> bool {
    !code(line).trim().is_empty()
}

/// Fails unless every module of the crate at `root` uses only modules before it in `order`, and
/// `order` is complete.
pub(crate) fn check_order(root: &str, order: &[&str]) {
    let folder = Path::new(root).join("src");
    let (mut wrong, mut declared) = (Vec::new(), Vec::new());
    for source in sources(&folder) {
        if source.module.is_empty() {
            let modules = source
                .text
                .lines()
                .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "))
                .map(|name| name.trim_end_matches(';').to_owned());
            declared.extend(modules);
            continue;
        }
        let place = order.iter().position(|name| *name == source.module);
        let place = place.unwrap_or_else(|| panic!("{} has no place", source.module));
        let mut inline = 0;
        for (number, line) in (1..).zip(source.text.lines().map(code)) {
            if line.starts_with("mod ") && line.ends_with('{') {
                inline += 1;
            } else if inline > 0 && line.starts_with('}') {
                inline -= 1;
            }
            let used = line.split("crate::").skip(1);
            let used = used
                .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
            for name in used.filter(|name| !order[..=place].contains(name)) {
                let (path, module) = (source.path.display(), &source.module);
                wrong.push(format!("{path}:{number}: {module} uses {name}"));
            }
            if line.contains(&"super::".repeat(source.names.len() + inline)) {
                wrong.push(format!("{}:{number}: climbs to the top", source.path.display()));
            }
        }
    }
    let mut ordered = order.to_vec();
    declared.sort_unstable();
    ordered.sort_unstable();
    assert_eq!(declared, ordered, "the order is that of the crate");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Fails if a file of the crate at `root` has more than 400 lines of code, or a function more than 80.
pub(crate) fn check_lengths(root: &str) {
    let mut wrong = Vec::new();
    for source in sources(&Path::new(root).join("src")) {
        let length = source.text.lines().filter(is_code).count();
        if length > FILE {
            wrong.push(format!("{}: {length} lines of code", source.path.display()));
        }
        let lines: Vec<&str> = source.text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            if let Some(length) = function(line, &lines[start..])
                && length > FUNCTION
            {
                let path = source.path.display();
                wrong.push(format!("{path}:{}: {length} lines of code in a function", start + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Fails if the crate at `root` has more than [`NAMESAKES`] types of one name.
#[allow(dead_code, reason = "one of the crates is small")]
pub(crate) fn check_names(root: &str) {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources(&Path::new(root).join("src")) {
        for line in source.text.lines() {
            if let Some(name) = type_name(line) {
                places.entry(name.to_owned()).or_default().push(source.names.join("/"));
            }
        }
    }
    places.retain(|_, places| places.len() > NAMESAKES);
    assert!(places.is_empty(), "types of one name: {places:#?}");
}

/// Returns the name of the type that `line` defines outside of functions and traits, if it defines one.
fn type_name(line: &str) -> Option<&str> {
    let item = line.strip_prefix("pub(").and_then(|rest| rest.split_once(") "));
    let item = item.map_or(line, |(_, item)| item).trim_start_matches("pub ");
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

/// Returns the number of lines of code of the crate at `root`.
#[allow(dead_code, reason = "one of the crates is held to a sum")]
pub(crate) fn lines_of_code(root: &str) -> usize {
    let sources = sources(&Path::new(root).join("src"));
    sources.iter().map(|source| source.text.lines().filter(is_code).count()).sum()
}

/// Counts the lines of code of the function that begins with `line`, if one does. In rustfmt's
/// layout, a function ends with a brace below its first letter.
fn function(line: &str, lines: &[&str]) -> Option<usize> {
    let words = line.trim_start();
    let indent = &line[..line.len() - words.len()];
    let visible = words.strip_prefix("pub ").or_else(|| {
        words.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map(|(_, rest)| rest)
    });
    let named = visible.unwrap_or(words).trim_start_matches("const ").trim_start_matches("unsafe ");
    if !named.starts_with("fn ") {
        return None;
    }
    let ends = |line: &str| {
        line.strip_prefix(indent).is_some_and(|rest| {
            rest.starts_with('}') || !rest.starts_with(' ') && rest.ends_with([';', '}'])
        })
    };
    let end = lines.iter().position(|line| ends(line))?;
    Some(lines[..=end].iter().filter(|line| is_code(line)).count())
}

#[test]
fn lines_of_functions_are_counted() {
    let lines = [
        "    pub(crate) fn long(",
        "        of: u8,",
        "    ) -> u8 {",
        "        // Said, not done.",
        "",
        "        of",
        "    }",
        "    fn short() {}",
        "    fn declared(",
        "    );",
    ];
    let lengths = (0..lines.len()).filter_map(|start| function(lines[start], &lines[start..]));
    assert_eq!(lengths.collect::<Vec<_>>(), [5, 1, 2]);
    assert_eq!(function("let fn_is = 1;", &["let fn_is = 1;"]), None);
}
