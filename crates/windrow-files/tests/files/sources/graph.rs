//! The graph of a crate's files: an edge for each file that defines a name that another file uses.
//!
//! ```text
//!  a/b.rs: use super::{Item, c};      a/mod.rs: pub use d::Item;      edges of a/b.rs: a/d.rs, a/c.rs
//! ```
//! A name that a `mod.rs` imports leads to the file that defines it. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Source, code, sources};

/// Maximum files that use each other, directly or through other files.
const CIRCLE: usize = 3;

/// The path of a module or of an item, from the root of the crate.
type Names = Vec<String>;

/// The files of a crate without tests, by their modules.
struct Graph {
    files: BTreeMap<Names, File>,
}

#[derive(Default)]
struct File {
    /// Names that the file imports, and their paths.
    imports: BTreeMap<String, Names>,
    /// Paths that the file uses.
    used: Vec<Names>,
}

impl Graph {
    fn of(root: &str) -> Self {
        let mut sources = sources(&Path::new(root).join("src"));
        let of_tests: Vec<Names> = sources.iter().flat_map(test_modules).collect();
        let is_test = |names: &Names| of_tests.iter().any(|tests| names.starts_with(tests));
        sources.retain(|source| !is_test(&source.names));
        let modules: BTreeSet<Names> = sources.iter().map(|source| source.names.clone()).collect();
        let file = |source: Source| {
            let mut file = File::default();
            for (path, alias) in paths(&without_tests(&source.text)) {
                let Some(path) = absolute(&source.names, path, &modules) else { continue };
                if let Some(alias) = alias {
                    file.imports.insert(alias, path.clone());
                }
                file.used.push(path);
            }
            (source.names, file)
        };
        Self { files: sources.into_iter().map(file).collect() }
    }

    /// Returns the module of the file that defines `path`.
    fn home(&self, path: &[String], depth: usize) -> Option<&Names> {
        let known = |length: &usize| self.files.contains_key(&path[..*length]);
        let length = (0..=path.len()).rev().find(known)?;
        let (module, file) = self.files.get_key_value(&path[..length])?;
        let import = path.get(length).and_then(|name| file.imports.get(name));
        match import {
            Some(import) if depth > 0 => {
                let whole = [import, &path[length + 1..]].concat();
                self.home(&whole, depth - 1)
            }
            _ => Some(module),
        }
    }

    /// Returns the files that the file of `module` uses.
    fn edges(&self, module: &[String]) -> BTreeSet<&Names> {
        let used = self.files.get(module).into_iter().flat_map(|file| &file.used);
        let homes = used.filter_map(|path| self.home(path, 8));
        homes.filter(|home| !home.is_empty() && *home != module).collect()
    }

    /// Returns the files that the file of `module` uses, directly or through other files.
    fn reached<'a>(&'a self, module: &'a Names) -> BTreeSet<&'a Names> {
        let mut reached = BTreeSet::new();
        let mut next = vec![module];
        while let Some(module) = next.pop() {
            next.extend(self.edges(module).into_iter().filter(|module| reached.insert(*module)));
        }
        reached
    }
}

/// Returns the paths in `text`, with the names under which `use` imports them.
fn paths(text: &str) -> Vec<(Names, Option<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|c: char| is_word(c)) {
        let (before, rest) = text.split_at(at + start);
        let end = rest.find(|c: char| !is_word(c) && c != ':').unwrap_or(rest.len());
        let path = &rest[..end];
        at = before.len() + end;
        if path == "use" {
            let tree = rest[end..].split(';').next().unwrap_or_default();
            branches(&[], tree, &mut found);
            at += tree.len();
        } else if path.contains("::") && !before.ends_with("::") && !before.ends_with("pub(in ") {
            found.push((split(path), None));
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn split(path: &str) -> Names {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Adds the paths of a tree of `use` below `stem`.
fn branches(stem: &[String], tree: &str, found: &mut Vec<(Names, Option<String>)>) {
    let Some((path, list)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = [stem, &split(path)].concat();
        path.pop_if(|name| name == "self");
        let alias = split(alias).pop().or_else(|| path.last().cloned());
        found.extend((!tree.trim().is_empty()).then_some((path, alias)));
        return;
    };
    let stem = [stem, &split(path)].concat();
    let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches(&stem, &list[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns `path` from the root of the crate, as the file of `module` means it; `None` if it is of another crate.
fn absolute(module: &[String], path: Names, modules: &BTreeSet<Names>) -> Option<Names> {
    let first = path.first()?;
    let climbs = path.iter().take_while(|name| *name == "super").count();
    match first.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(climbs)?], &path[climbs..]].concat()),
        _ => {
            let child = [module, &path[..1]].concat();
            modules.contains(&child).then(|| [module, &path].concat())
        }
    }
}

/// Returns the code of `text` before its module of tests.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Returns the modules in files that exist for tests alone.
fn test_modules(source: &Source) -> Vec<Names> {
    let marked = source.text.split("#[cfg(test)]\n").skip(1);
    let names = marked.filter_map(|rest| {
        let line = rest.lines().next()?;
        line.split_once("mod ")?.1.strip_suffix(';')
    });
    names.map(|name| [&source.names[..], &[name.to_owned()]].concat()).collect()
}

/// Fails if more than [`CIRCLE`] files of the crate at `root` use each other.
pub(crate) fn check_circles(root: &str) {
    let graph = Graph::of(root);
    let reached: BTreeMap<&Names, BTreeSet<&Names>> =
        graph.files.keys().map(|module| (module, graph.reached(module))).collect();
    let circle = |module: &Names| -> BTreeSet<String> {
        let beyond = reached[module].iter().filter(|other| reached[*other].contains(module));
        beyond.map(|other| other.join("/")).collect()
    };
    let circles: BTreeSet<BTreeSet<String>> = graph.files.keys().map(circle).collect();
    let wrong: Vec<_> = circles.iter().filter(|circle| circle.len() > CIRCLE).collect();
    assert!(wrong.is_empty(), "files that use each other: {wrong:#?}");
}

/// Fails unless each folder and file of `module` uses only those before it in `floors`, and `floors` is complete.
/// None of them uses the `mod.rs` above them.
#[allow(dead_code, reason = "one of the crates has no module with floors")]
pub(crate) fn check_floors(root: &str, module: &str, floors: &[&str]) {
    let graph = Graph::of(root);
    let place = |names: &[String]| {
        let floor = names.get(1)?;
        let place = floors.iter().position(|known| known == floor);
        Some(place.unwrap_or_else(|| panic!("{module}/{floor} has no place")))
    };
    let files = graph.files.keys().filter(|names| names.len() > 1 && names[0] == module);
    let mut wrong = Vec::new();
    for names in files.clone() {
        let beyond = |home: &Names| {
            home[0] == module && place(home).is_none_or(|it| Some(it) > place(names))
        };
        let homes = graph.edges(names).into_iter().filter(|home| beyond(home));
        wrong.extend(homes.map(|home| format!("{} uses {}", names.join("/"), home.join("/"))));
    }
    let known: BTreeSet<&str> = files.map(|names| &*names[1]).collect();
    assert_eq!(known, floors.iter().copied().collect(), "the floors are those of the folder");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn paths_are_found() {
    let text = "pub use a::{b::{self, C as D}, e};\nlet x = super::super::f::g(h::I, k);\npub(in crate::z) l: M";
    let shown =
        |(path, alias): (Names, Option<String>)| (path.join("."), alias.unwrap_or_default());
    let found: Vec<(String, String)> = paths(text).into_iter().map(shown).collect();
    let expected =
        [("a.b", "b"), ("a.b.C", "D"), ("a.e", "e"), ("super.super.f.g", ""), ("h.I", "")];
    assert_eq!(found, expected.map(|(path, alias)| (path.to_owned(), alias.to_owned())));
}
