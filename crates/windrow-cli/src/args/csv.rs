//! Options for the dialect of CSV.

use clap::{Args, ValueEnum};

/// The heading of these options.
const CSV: &str = "CSV";

#[derive(Debug, Args)]
pub(crate) struct Csv {
    /// Separator, in and out: a character, or `tab`. A tab for files that end in .tsv; told by looking
    /// at the first records otherwise.
    #[arg(long = "csv-delimiter", help_heading = CSV, value_name = "CHAR", value_parser = character)]
    pub(crate) delimiter: Option<char>,
    /// No header line, neither in inputs nor in the output.
    #[arg(long = "csv-no-header", help_heading = CSV)]
    pub(crate) no_header: bool,
    /// What stands for null, in and out, as \N; repeat it for several, of which the first is written.
    /// An empty field is then an empty string in columns of text, and null in others. In quotes the text
    /// is no null. Without this option an empty field is null, and "" an empty string.
    #[arg(long = "csv-null", help_heading = CSV, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) nulls: Vec<String>,
    /// Sign in front of fractions, in and out.
    #[arg(long = "csv-decimal", help_heading = CSV, value_enum, default_value_t = Decimal::Point)]
    pub(crate) decimal: Decimal,
    /// Quote around fields, in and out: a character, or `none`.
    #[arg(long = "csv-quote", help_heading = CSV, value_name = "CHAR|none", default_value = "\"")]
    #[arg(value_parser = quote)]
    pub(crate) quote: Quote,
    /// Character in front of quotes within quotes, of inputs; doubled quotes are known anyway.
    #[arg(long = "csv-escape", help_heading = CSV, value_name = "CHAR", value_parser = character)]
    pub(crate) escape: Option<char>,
    /// Character in front of lines of inputs that are comments.
    #[arg(long = "csv-comment", help_heading = CSV, value_name = "CHAR", value_parser = character)]
    pub(crate) comment: Option<char>,
    /// Lines of inputs to leave out, in front of all else.
    #[arg(long = "csv-skip-lines", help_heading = CSV, value_name = "N", default_value_t = 0)]
    pub(crate) skip_lines: usize,
}

/// The decimal separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decimal {
    /// 1.5
    Point,
    /// 1,5
    Comma,
}

/// The quote character of fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote(pub(crate) Option<char>);

fn quote(text: &str) -> Result<Quote, String> {
    match text {
        "none" => Ok(Quote(None)),
        text => character(text).map(|quote| Quote(Some(quote))),
    }
}

fn character(text: &str) -> Result<char, String> {
    let mut letters = match text {
        "tab" | "\\t" => "\t",
        text => text,
    }
    .chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(letter),
        _ => Err("takes one character".to_owned()),
    }
}
