//! The output of `windrow help` and `windrow completions`: help by topic, completions, the man
//! page.

use std::io::{self, Write};

use clap_complete::Shell;
use clap_mangen::Man;

use crate::advice::{Failure, Result};
use crate::args::{self, EXAMPLES, EXIT_CODES};
use crate::texts;

/// Prints the help of a topic, or the overview.
pub(crate) fn show(topic: Option<&str>) -> io::Result<()> {
    let text = match topic {
        Some(EXAMPLES) => texts::RECIPES,
        Some(EXIT_CODES) => texts::EXIT_CODES,
        verb => {
            let arguments = ["windrow"].into_iter().chain(verb).chain(["--help"]);
            // The parser returns help as an error.
            return args::command()
                .try_get_matches_from(arguments)
                .map_or_else(|help| help.print(), |_| Ok(()));
        }
    };
    io::stdout().lock().write_all(text.as_bytes())
}

/// Returns the completions of a shell, or the man page.
pub(crate) fn completions(shell: &str) -> Result<Vec<u8>> {
    let mut command = args::command();
    let mut text = Vec::new();
    match shell.parse::<Shell>() {
        Ok(shell) => clap_complete::generate(shell, &mut command, "windrow", &mut text),
        Err(_) => man_page(command, &mut text)
            .map_err(|error| Failure::Report(format!("man page: {error}")))?,
    }
    Ok(text)
}

/// Writes a single man page for all verbs, because no other pages are installed.
fn man_page(command: clap::Command, out: &mut Vec<u8>) -> io::Result<()> {
    let mut command = command.about(texts::NAME).long_about(texts::DESCRIPTION);
    command.build();
    let page = Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        writeln!(out, ".SH \"WINDROW {}\"", verb.get_name().to_uppercase())?;
        let (page, mut part) = (Man::new(verb.clone()), Vec::new());
        page.render_description_section(&mut part)?;
        if let Some(examples) = verb.get_before_help() {
            paragraphs(&examples.to_string(), &mut part)?;
        }
        page.render_synopsis_section(&mut part)?;
        page.render_options_section(&mut part)?;
        if let Some(notes) = verb.get_after_help() {
            writeln!(part, ".SH NOTES")?;
            paragraphs(&notes.to_string(), &mut part)?;
        }
        let part = String::from_utf8_lossy(&part).replace(".SH DESCRIPTION\n", "");
        out.extend_from_slice(part.replace("\n.SH ", "\n.SS ").as_bytes());
    }
    writeln!(out, ".SH EXAMPLES")?;
    paragraphs(texts::RECIPES, out)?;
    writeln!(out, ".SH \"EXIT STATUS\"")?;
    paragraphs(texts::EXIT_CODES, out)?;
    page.render_version_section(out)
}

/// Writes text in roff: indented lines verbatim, other lines as paragraphs.
fn paragraphs(text: &str, out: &mut impl Write) -> io::Result<()> {
    let mut literal = false;
    writeln!(out, ".PP")?;
    for line in text.lines() {
        if literal != line.starts_with("  ") {
            literal = !literal;
            writeln!(out, "{}", if literal { ".nf" } else { ".fi" })?;
        }
        match line {
            "" => writeln!(out, ".PP")?,
            line => writeln!(out, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?,
        }
    }
    if literal {
        writeln!(out, ".fi")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn every_example_parses() {
        let command = args::command();
        let texts = [texts::of("overview").1, texts::RECIPES.to_owned()].into_iter();
        let texts = texts.chain(command.get_subcommands().flat_map(|verb| {
            let texts = [verb.get_before_help(), verb.get_after_help()];
            texts.into_iter().flatten().map(ToString::to_string)
        }));
        let mut parsed = 0;
        for text in texts {
            let mut indented = text.lines().filter(|line| line.starts_with("  "));
            assert!(indented.all(|line| line.chars().count() <= 80), "{text}");
            let text = text.replace("\\\n", " ");
            for line in text.lines().filter(|line| line.starts_with("  windrow ")) {
                let arguments = words(line.split(" > ").next().unwrap_or_default());
                let matches = args::command().try_get_matches_from(arguments);
                let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
                let (name, matches) = matches.subcommand().unwrap();
                if let Ok(verb) = name.parse() {
                    let settings = args::settings(verb, matches);
                    settings
                        .and_then(|settings| settings.build())
                        .unwrap_or_else(|error| panic!("{line}: {error}"));
                }
                parsed += 1;
            }
        }
        assert!(parsed > 50, "{parsed}");
    }

    /// Splits a line into words as a shell does, with quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for letter in line.chars().chain([' ']) {
            match (letter, quote) {
                (' ', None) if word.is_empty() => {}
                (' ', None) => words.push(std::mem::take(&mut word)),
                ('\'' | '"', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                _ => word.push(letter),
            }
        }
        words
    }
}
