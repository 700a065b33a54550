//! The text of the help besides the options: the overview, examples, notes, recipes, exit codes.
//!
//! ```text
//!  # sort               a topic of texts/help.txt: a verb, or `overview`
//!  Examples:            headings get the style of clap's own headings
//!    windrow sort ...   examples
//!
//!  Numbers sort ...     notes: the other paragraphs, each without its line breaks
//! ```
//! Examples and recipes work as typed in a clone of the repository; a test runs them. The commands
//! below "More examples" name files of a user; a test parses them. Lines of examples have at most
//! 80 columns, so that no terminal breaks them. The overview has 24 lines of 80 columns.

/// The tool's description at the top of the overview.
pub(crate) const ABOUT: &str = "\
Windrow sorts, deduplicates and splits Parquet, Arrow, CSV and JSON files, and never uses more memory than you allow.";

/// The tool's description in the first line of the man page, after the name.
pub(crate) const NAME: &str =
    "sort, deduplicate and split Parquet, Arrow, CSV and JSON files inside a memory limit";

/// The description in the man page.
pub(crate) const DESCRIPTION: &str = "\
Windrow sorts, compacts, merges, compares, deduplicates, partitions and checks files. The memory limit is the peak \
resident memory of the process.

The formats are Parquet, Arrow IPC (file and stream), CSV and NDJSON; Avro is read and not written. The extension of a \
file names its format, or --input-format and --output-format do. An output appears complete or not at all, and may take \
the place of an input.";

/// The help of a verb: examples come before the usage.
pub(crate) const VERB: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// `windrow help examples`.
pub(crate) const RECIPES: &str = include_str!("texts/recipes.txt");

/// `windrow help exit-codes`.
pub(crate) const EXIT_CODES: &str = include_str!("texts/exit_codes.txt");

/// Returns the first paragraph of a topic, the examples of a verb, and all others, its notes.
pub(crate) fn of(topic: &str) -> (String, String) {
    let mut topics = include_str!("texts/help.txt").trim_end().split("\n\n# ");
    let text = topics
        .find_map(|text| text.trim_start_matches("# ").strip_prefix(topic)?.strip_prefix('\n'));
    let mut paragraphs = text.unwrap_or_default().split("\n\n").map(styled);
    (paragraphs.next().unwrap_or_default(), paragraphs.collect::<Vec<_>>().join("\n\n"))
}

fn styled(paragraph: &str) -> String {
    match paragraph.split_once(":\n") {
        Some((heading, lines)) if lines.starts_with([' ', '{']) => {
            format!("\x1b[1m\x1b[4m{heading}:\x1b[0m\n{lines}")
        }
        _ => paragraph.replace('\n', " "),
    }
}
