//! The reference of the command line holds the help of every verb, as the tool prints it.

use crate::help::{help, verbs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/site/reference/cli.md");
const BLESS: &str = "WINDROW_BLESS=1 cargo test -p windrow-cli --test tool reference";

const END: &str = "<!-- end -->";

fn start(verb: &str) -> String {
    format!("<!-- generated: {verb} -->\n")
}

/// Returns the page with `text` in place of the block of `verb`; `None` without such a block.
fn replaced(page: &str, verb: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&start(verb))?;
    let (_, after) = rest.split_once(END)?;
    let lines = text.trim_end().lines().map(|line| format!("{}\n", line.trim_end()));
    let lines = lines.collect::<String>();
    Some(format!("{before}{}```text\n{lines}```\n{END}{after}", start(verb)))
}

/// With `WINDROW_BLESS=1`, writes the help into the page.
#[test]
fn the_reference_holds_the_help_of_every_verb() {
    let page = std::fs::read_to_string(PAGE).unwrap_or_else(|error| {
        panic!("{PAGE}: {error}; write it with a block \"{}{END}\" for every verb", start("VERB"))
    });
    let verbs: Vec<String> = verbs().into_iter().filter(|verb| verb != "help").collect();
    let (mut blessed, mut stale) = (page.clone(), Vec::new());
    for verb in &verbs {
        let text = help(&format!("help {verb}"));
        let next = replaced(&blessed, verb, &text).unwrap_or_else(|| {
            panic!("{PAGE} has no block for {verb}: add \"{}{END}\", then {BLESS}", start(verb))
        });
        if next != blessed {
            stale.push(verb.as_str());
        }
        blessed = next;
    }
    let blocks = page.matches("<!-- generated: ").count();
    assert_eq!(blocks, verbs.len(), "{PAGE} has a block that is of no verb");
    if std::env::var_os("WINDROW_BLESS").is_some() {
        return std::fs::write(PAGE, blessed).expect("written");
    }
    assert!(stale.is_empty(), "{PAGE} is not what the tool says of {stale:?}; write it: {BLESS}");
}
