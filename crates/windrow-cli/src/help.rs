//! Completions and the man page.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::advice::{Failure, Result};
use crate::args::Cli;
use crate::values::Completion;

impl Completion {
    /// The shell; `None` for the man page.
    fn shell(self) -> Option<Shell> {
        Some(match self {
            Self::Bash => Shell::Bash,
            Self::Elvish => Shell::Elvish,
            Self::Fish => Shell::Fish,
            Self::Powershell => Shell::PowerShell,
            Self::Zsh => Shell::Zsh,
            Self::Man => return None,
        })
    }

    /// The text of it.
    pub(crate) fn text(self) -> Result<Vec<u8>> {
        let mut command = Cli::command();
        let mut text = Vec::new();
        match self.shell() {
            Some(shell) => clap_complete::generate(shell, &mut command, "windrow", &mut text),
            None => man_page(command, &mut text)
                .map_err(|error| Failure::Report(format!("man page: {error}")))?,
        }
        Ok(text)
    }
}

/// One page for all verbs: there are no others for it to refer to.
fn man_page(mut command: clap::Command, out: &mut Vec<u8>) -> io::Result<()> {
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
        page.render_synopsis_section(&mut part)?;
        page.render_options_section(&mut part)?;
        page.render_extra_section(&mut part)?;
        let part = String::from_utf8_lossy(&part).replace(".SH DESCRIPTION\n", "");
        out.extend_from_slice(part.replace("\n.SH ", "\n.SS ").as_bytes());
    }
    page.render_extra_section(out)?;
    page.render_version_section(out)
}
