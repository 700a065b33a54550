//! Option values given by name. The library parses most values, and the help lists all values.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windrow_files::{Format, Preset};

/// The possible outputs of `completions`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Completion {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    Man,
}

/// The topics of `help`: every verb, and further topics.
pub(crate) const TOPICS: [&str; 14] = [
    "sort",
    "compact",
    "apply",
    "merge",
    "partition",
    "dedupe",
    "diff",
    "head",
    "check",
    "inspect",
    "completions",
    "help",
    EXAMPLES,
    EXIT_CODES,
];
pub(crate) const EXAMPLES: &str = "examples";
pub(crate) const EXIT_CODES: &str = "exit-codes";

/// Parses a format by name.
pub(crate) fn format() -> impl TypedValueParser<Value = Format> {
    named(Format::ALL.map(|format| (format.name(), format.about())))
}

/// Parses an output format by name.
pub(crate) fn output_format() -> impl TypedValueParser<Value = Format> {
    named(Format::WRITTEN.map(|format| (format.name(), format.about())))
}

/// Parses a preset of change logs by name.
pub(crate) fn preset() -> impl TypedValueParser<Value = Preset> {
    named(Preset::ALL.map(|preset| (preset.name(), preset.about())))
}

fn named<T, const N: usize>(
    names: [(&'static str, &'static str); N],
) -> impl TypedValueParser<Value = T>
where
    T: std::str::FromStr<Err: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let values = names.map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).try_map(|name: String| name.parse::<T>())
}
