//! The help: the overview, the help of verbs, recipes, and a run of all examples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cli::VERBS;
use crate::common::{Ran, Work, ran};

/// Columns and lines of a terminal at its usual size.
const SCREEN: (usize, usize) = (80, 24);

/// Returns the output of `windrow LINE` without a terminal: 100 columns, without colours.
#[track_caller]
pub(crate) fn help(line: &str) -> String {
    let ran = printed(line, None);
    ran.succeeds();
    String::from_utf8(ran.out).expect("UTF-8")
}

fn printed(line: &str, columns: Option<usize>) -> Ran {
    let mut command = Work::new().command(line);
    command.current_dir("/").env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns.to_string());
    }
    ran(command.spawn().expect("started"))
}

/// Returns the commands of a text, with continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", "\\\0");
    let lines = text.lines().filter_map(|line| line.strip_prefix("  windrow "));
    lines.map(|line| format!("windrow {}", line.replace('\0', "\n"))).collect()
}

/// Returns the verbs listed by the overview.
pub(crate) fn verbs() -> Vec<String> {
    let overview = help("--help");
    let lines = overview.lines().skip_while(|line| *line != "Verbs:").skip(1);
    let names = lines.map_while(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Returns the examples at the beginning of a verb's help.
fn examples(verb: &str) -> Vec<String> {
    let help = help(&format!("help {verb}"));
    commands(help.split("\nUsage: ").next().expect("a text"))
}

/// Runs commands, one after the other, in a directory with the repository's example data.
#[track_caller]
fn run_all(commands: &[String]) {
    let work = Work::new();
    let data = Path::new("examples/data");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir_all(work.path("examples/data")).expect("created");
    let file = data.join("orders_log.parquet");
    fs::copy(root.join(&file), work.path("").join(&file)).expect("copied");
    let tool = PathBuf::from(env!("CARGO_BIN_EXE_windrow"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tool.parent().expect("a directory").to_owned())
        .chain(std::env::split_paths(&paths));
    let paths = std::env::join_paths(paths).expect("paths");
    for command in commands {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", command]).current_dir(work.path("")).env("PATH", &paths);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = ran(shell.spawn().expect("started"));
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.err);
    }
}

#[test]
fn the_overview_fits_one_screen() {
    let (columns, lines) = SCREEN;
    let overview = help("--help");
    for columns in [columns, 100] {
        for line in ["--help", "-h", "help"] {
            let ran = printed(line, Some(columns));
            ran.says(0, &[]);
            let text = String::from_utf8(ran.out).expect("UTF-8");
            assert!(text.lines().count() <= lines, "{line}: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        }
    }
    for verb in VERBS {
        assert!(overview.contains(&format!("\n  {verb} ")), "{verb}");
    }
    assert_eq!(commands(&overview).len(), 3, "{overview}");
    // An empty command line is a mistake, and the message is the overview.
    let ran = printed("", None);
    ran.says(2, &[overview.as_str()]);
    assert!(ran.out.is_empty());
}

#[test]
fn the_help_of_a_verb_begins_with_examples() {
    for verb in verbs() {
        let long = help(&format!("help {verb}"));
        assert_eq!(long, help(&format!("{verb} --help")), "{verb}");
        for text in [&long, &help(&format!("{verb} -h"))] {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[1..3], ["", "Examples:"], "{text}");
            let (before, _) = text.split_once("\nUsage: ").expect("usage");
            let own = commands(before);
            let own = own.iter().filter(|line| line.starts_with(&format!("windrow {verb} ")));
            assert_eq!(own.count(), 2, "{text}");
            assert!(before.lines().all(|line| line.chars().count() <= SCREEN.0), "{before}");
            assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
        }
    }
}

#[test]
fn there_are_eleven_recipes() {
    let recipes = help("help examples");
    assert_eq!(commands(&recipes).len(), 11, "{recipes}");
    assert!(recipes.lines().all(|line| line.chars().count() <= SCREEN.0), "{recipes}");
    for verb in VERBS.iter().filter(|verb| **verb != "head") {
        assert!(recipes.contains(&format!("\n  windrow {verb} ")), "{verb}");
    }
    run_all(&commands(&recipes));
}

#[test]
fn the_examples_of_the_overview_work() {
    run_all(&commands(&help("--help")));
}

#[test]
fn the_examples_of_the_verbs_work() {
    for verb in verbs() {
        run_all(&examples(&verb));
    }
}

#[test]
fn other_topics() {
    assert!(help("help exit-codes").contains("141"));
    printed("help srot", None).says(2, &["srot", "sort", "examples"]);
    help("--version");
}
