//! Tables of small inputs with their expected outputs.
//!
//! ```text
//! ## what the case shows
//! $ the verb and its options                for tables of one verb: its options
//! @ a name of an input                      without one: a.ndjson; .gz and .bz2 are packed; `@ NAME raw` has escapes
//! lines of the input
//! = header of the output, in CSV            or:  =j for NDJSON
//! lines of the output                       or:  ! the exit code, parts of the message | between bars
//! ? what is said of it
//! ```
//! Inputs not named by the options are appended to the verb, in their order.

use std::fs;
use std::io::Write;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;

use super::{Ran, Work};

/// One case of a table.
#[derive(Default)]
struct Case<'a> {
    name: &'a str,
    options: &'a str,
    inputs: Vec<(&'a str, String)>,
    output: Option<(&'static str, String)>,
    refused: Option<&'a str>,
    said: &'a str,
}

impl<'a> Case<'a> {
    fn of(text: &'a str) -> Self {
        let mut lines = text.trim_end().lines();
        let mut case = Self { name: lines.next().expect("a name"), ..Self::default() };
        for line in lines {
            match line.split_at_checked(2).unwrap_or((line, "")) {
                ("$ ", options) => case.options = options,
                ("@ ", name) => case.inputs.push((name, String::new())),
                ("! ", refused) => case.refused = Some(refused),
                ("? ", said) => case.said = said,
                ("= ", header) => case.output = Some(("csv", format!("{header}\n"))),
                ("=", _) => case.output = Some(("csv", String::new())),
                ("=j", "") => case.output = Some(("ndjson", String::new())),
                _ => {
                    if case.inputs.is_empty() {
                        case.inputs.push(("a.ndjson", String::new()));
                    }
                    let input = case.inputs.last_mut().map(|(_, text)| text);
                    let output = case.output.as_mut().map(|(_, text)| text);
                    let text = output.or(input).expect("an input");
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        case
    }

    fn run(&self, work: &Work, verb: &str) -> Ran {
        let line = format!("{verb} {}", self.options);
        let (verb, options) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let mut inputs = String::new();
        for (name, text) in &self.inputs {
            let (name, is_raw) = name.strip_suffix(" raw").map_or((*name, false), |n| (n, true));
            let path = format!("in/{name}");
            let directory = work.path(&path).parent().expect("a directory").to_owned();
            fs::create_dir_all(directory).expect("made");
            work.put(
                &path,
                packed(name, if is_raw { unescaped(text) } else { text.clone().into() }),
            );
            if !options.contains("in/") {
                inputs = format!("{inputs} {path}");
            }
        }
        let output = match (verb, &self.output) {
            ("check", _) => String::new(),
            (_, Some((extension, _))) => format!(" -o out/o.{extension}"),
            (_, None) => " -o out/o.csv".to_owned(),
        };
        let line = format!("{verb}{inputs} {options}{output}");
        match line.contains('\'') {
            true => work.shell(&format!("{{}} {line}")),
            false => work.run(&line),
        }
    }

    fn check(&self, verb: &str) {
        let work = Work::new();
        let ran = self.run(&work, verb);
        let name = self.name;
        if let Some(refused) = self.refused {
            let (code, parts) = refused.split_once(' ').unwrap_or((refused, ""));
            assert_eq!(ran.code, code.parse().ok(), "{name}: {}", ran.err);
            for part in parts.split(" | ") {
                assert!(ran.err.contains(part), "{name}: no {part:?} in: {}", ran.err);
            }
            work.holds_only(&[]);
            return;
        }
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
        if let Some((extension, expected)) = &self.output {
            assert_eq!(&work.text(&format!("out/o.{extension}")), expected, "{name}");
        }
        assert!(ran.err.contains(self.said), "{name}: {}", ran.err);
    }
}

/// Compresses `text` according to the extension of `name`.
fn packed(name: &str, text: Vec<u8>) -> Vec<u8> {
    if name.ends_with(".gz") {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&text).expect("written");
        return encoder.finish().expect("finished");
    }
    if name.ends_with(".bz2") {
        let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::default());
        encoder.write_all(&text).expect("written");
        return encoder.finish().expect("finished");
    }
    text
}

/// Decodes `\xNN`, `\t`, `\r`, `\n` and `\\` to bytes; removes line breaks.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut characters = text.bytes().filter(|&byte| byte != b'\n');
    while let Some(byte) = characters.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match characters.next() {
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b'x') => {
                let digits: Vec<u8> = characters.by_ref().take(2).collect();
                let digits = std::str::from_utf8(&digits).expect("two digits");
                u8::from_str_radix(digits, 16).expect("hexadecimal digits")
            }
            Some(other) => other,
            None => b'\\',
        });
    }
    bytes
}

/// Checks all cases of a table; the table must have at least `count` cases. All cases are of
/// `verb`, unless `verb` is empty.
#[track_caller]
pub(crate) fn check(verb: &str, table: &str, count: usize) {
    let cases: Vec<Case<'_>> = table.split("## ").skip(1).map(Case::of).collect();
    assert!(cases.len() >= count, "{} cases", cases.len());
    let fails = |case: &&Case<'_>| std::panic::catch_unwind(|| case.check(verb)).is_err();
    let failed: Vec<&str> = cases.iter().filter(fails).map(|case| case.name).collect();
    assert!(failed.is_empty(), "{} of {}: {failed:#?}", failed.len(), cases.len());
}
