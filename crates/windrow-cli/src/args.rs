//! The command line: arguments made from the library's table of settings, and parsed into settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use windrow_files::{Choice, Group, Kind, Result, Setting, Settings, Verb};

use crate::texts;

/// Further topics of `help`.
pub(crate) const EXAMPLES: &str = "examples";
pub(crate) const EXIT_CODES: &str = "exit-codes";
/// The possible outputs of `completions`.
const COMPLETIONS: [&str; 6] = ["bash", "elvish", "fish", "powershell", "zsh", "man"];
/// The argument with the inputs.
const FILES: &str = "files";
/// The argument with the table of `apply`.
const DIRECTORY: &str = "directory";

/// Returns the command line.
pub(crate) fn command() -> Command {
    let completions = Command::new("completions")
        .about("Print shell completions or the man page")
        .before_help(texts::of("completions").0)
        .arg(
            Arg::new("shell")
                .required(true)
                .help("The shell, or `man` for a man page in roff")
                .value_parser(PossibleValuesParser::new(COMPLETIONS)),
        );
    let topics = Verb::ALL.map(Verb::name).into_iter();
    let topics = topics.chain(["completions", "help", EXAMPLES, EXIT_CODES]);
    let help = Command::new("help")
        .about("Explain a verb, `examples` (ten recipes) or `exit-codes`")
        .before_help(texts::of("help").0)
        .arg(
            Arg::new("topic")
                .value_name("TOPIC")
                .help("The topic; the overview unless given")
                .value_parser(PossibleValuesParser::new(topics)),
        );
    let verbs = Verb::ALL.into_iter().map(verb).chain([completions, help]);
    let (about, overview) = texts::of("overview");
    Command::new("windrow")
        .version(env!("CARGO_PKG_VERSION"))
        .about(texts::ABOUT)
        .max_term_width(100)
        .disable_help_subcommand(true)
        .subcommand_value_name("VERB")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .help_template(format!("{about}\n\n{overview}"))
        .subcommands(verbs.map(|verb| verb.help_template(texts::VERB)))
}

fn verb(verb: Verb) -> Command {
    let (examples, notes) = texts::of(verb.name());
    let json = switch("json", "One JSON object per file");
    let quiet = switch("quiet", "Say nothing; the exit code tells").short('q');
    Command::new(verb.name())
        .about(verb.about())
        .before_help(examples)
        .after_help(notes)
        .args((verb == Verb::Apply).then(directory))
        .args(verb.settings().map(|setting| argument(setting, verb)))
        .arg(inputs(verb))
        .args((verb == Verb::Inspect).then_some(json))
        .args((verb == Verb::Check).then_some(quiet))
        .args(verb.writes().then(report).into_iter().flatten())
}

/// Returns the long option of a setting, without dashes.
pub(crate) fn long(setting: Setting) -> String {
    let name = setting.name().replace('_', "-");
    match (setting.kind(), name.strip_prefix("csv-")) {
        (Kind::On, Some(name)) => format!("csv-no-{name}"),
        (Kind::On, None) => format!("no-{name}"),
        _ => name,
    }
}

/// Returns the option of a setting, for messages.
pub(crate) fn flag(setting: Setting) -> String {
    format!("--{}", long(setting))
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn argument(setting: Setting, verb: Verb) -> Arg {
    let kind = setting.kind();
    let about = setting.about(verb, &flag);
    let about = match kind {
        Kind::On => format!("No {}{}", about[..1].to_lowercase(), &about[1..]),
        Kind::Path if verb != Verb::Partition => format!("{about} - is standard output."),
        _ if kind.is_list() => format!("{about} Repeat the option for several."),
        _ => about,
    };
    let about = if about.ends_with("...") { &about } else { about.trim_end_matches('.') };
    let arg = Arg::new(setting.name()).long(long(setting)).help(about.to_owned());
    let arg = match setting.group() {
        Group::Own => arg,
        group => arg.help_heading(group.name()),
    };
    let arg = match setting {
        Setting::Output => arg.short('o').required(true),
        Setting::Rows => arg.short('n'),
        Setting::Range => arg.alias("by-range"),
        _ => arg.required(setting.is_required(verb)),
    };
    let arg = match kind {
        Kind::Off | Kind::On => return arg.action(ArgAction::SetTrue),
        Kind::Choice(choices) => arg.value_parser(names(choices)),
        Kind::Path | Kind::Paths => arg.value_parser(value_parser!(PathBuf)),
        Kind::Value | Kind::Values => arg.allow_hyphen_values(true),
        _ => arg,
    };
    let arg = arg.value_name(match (kind, verb) {
        (Kind::Choice(_), _) => "NAME",
        (Kind::Number(..), _) => "N",
        (Kind::Size, _) => "SIZE",
        (Kind::Limit, _) => "SIZE|PERCENT",
        (Kind::Column, _) => "COL",
        (Kind::Names | Kind::Columns | Kind::Order, _) => "COLS",
        (Kind::Filter, _) => "CONDITION",
        (Kind::Schema, _) => "NAME:TYPE,...",
        (Kind::Compression, _) => "CODEC",
        (Kind::Words, _) => "WORD=MEANING,...",
        (Kind::Character, _) => "CHAR",
        (Kind::Value | Kind::Values, _) => "VALUE",
        (Kind::Path, Verb::Partition) | (Kind::Paths, _) => "DIR",
        (Kind::Path, _) => "OUT",
        (Kind::Pairs, _) => "KEY=VALUE",
        _ => "NAME",
    });
    let arg = if kind.is_list() { arg.action(ArgAction::Append) } else { arg };
    // The library's refusal says why.
    let arg = arg.hide(verb == Verb::Partition && setting == Setting::MaxFileSize);
    arg.default_values(setting.default_of(verb))
}

fn names(choices: &'static [Choice]) -> PossibleValuesParser {
    let about = |choice: &Choice| windrow_files::worded(choice.about, &flag);
    let values = choices.iter().map(|choice| PossibleValue::new(choice.name).help(about(choice)));
    PossibleValuesParser::new(values)
}

fn inputs(verb: Verb) -> Arg {
    let files = Arg::new(FILES).required(true).value_parser(value_parser!(OsString));
    let files = files.help_heading(Group::Input.name());
    match verb {
        Verb::Diff => files.num_args(2).action(ArgAction::Set).value_names(["OLD", "NEW"]).help(
            "The two sides: each a file, a directory, a glob in quotes, or - for standard input",
        ),
        _ => files.num_args(1..).action(ArgAction::Append).value_name("FILES").help(
            "Files, directories, globs, or - for standard input. In builds with the feature `cloud` also addresses \
             of objects and globs of them: s3://, gs://, az://, abfss://, https://; a directory of objects ends \
             with a slash",
        ),
    }
}

fn directory() -> Arg {
    Arg::new(DIRECTORY)
        .required(true)
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("The directory of Parquet files to change")
}

fn report() -> [Arg; 4] {
    let stats = "Write figures of the run as JSON: `json` to standard error, anything else to that file. A file that \
                 ends in .prom gets gauges for Prometheus";
    [
        switch("quiet", "Say nothing but errors").short('q').conflicts_with("progress"),
        switch("progress", "Show progress even if standard error is no terminal"),
        Arg::new("stats").long("stats").value_name("json|FILE").help(stats),
        switch("explain", "Print the plan - key, workers, memory, limits - and do nothing"),
    ]
    .map(|arg| arg.help_heading("Report"))
}

/// What the tool says about a job.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Only errors are printed.
    pub(crate) quiet: bool,
    /// Progress is shown without a terminal, too.
    pub(crate) progress: bool,
    /// The place of the figures.
    pub(crate) stats: Option<String>,
    /// The plan is printed in place of a run.
    pub(crate) explain: bool,
    /// The output of `inspect` is JSON.
    pub(crate) json: bool,
    /// The table of `apply`.
    pub(crate) directory: Option<PathBuf>,
}

impl Report {
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let is_set = |name| matches!(matches.try_get_one(name), Ok(Some(true)));
        Self {
            quiet: is_set("quiet"),
            progress: is_set("progress"),
            stats: matches.try_get_one("stats").ok().flatten().cloned(),
            explain: is_set("explain"),
            json: is_set("json"),
            directory: matches.try_get_one(DIRECTORY).ok().flatten().cloned(),
        }
    }
}

/// Returns the inputs.
pub(crate) fn files(matches: &ArgMatches) -> Vec<OsString> {
    matches.get_many(FILES).into_iter().flatten().cloned().collect()
}

/// Returns the settings of the options that are on the command line.
pub(crate) fn settings(verb: Verb, matches: &ArgMatches) -> Result<Settings> {
    let mut settings = Settings::new(verb);
    for setting in verb.settings() {
        let name = setting.name();
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        match setting.kind() {
            kind @ (Kind::Off | Kind::On) => {
                settings.put(setting, kind == Kind::Off)?;
            }
            Kind::Path | Kind::Paths => {
                for path in matches.get_many::<PathBuf>(name).into_iter().flatten() {
                    settings.put(setting, path.clone())?;
                }
            }
            _ => {
                for text in matches.get_many::<String>(name).into_iter().flatten() {
                    settings.set(setting, text)?;
                }
            }
        }
    }
    Ok(settings)
}
