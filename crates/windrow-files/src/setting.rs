//! Names of all settings, for messages that blame one.
//!
//! Messages are worded once, but reach users through several interfaces: the memory limit is
//! `--memory-limit` on the command line, and `memory=` in Python. Messages therefore contain a
//! setting's name in this library, in back quotes, and [`Error::worded`](crate::Error::worded)
//! replaces it by the name in the interface.

use std::fmt;

macro_rules! settings {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// A setting of a job, of its inputs or of its output.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Setting {
            $($(#[$doc])* $variant,)+
        }

        impl Setting {
            /// Every setting.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the setting's name in this library.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

settings! {
    /// The format of the inputs: [`ReadOptions::format`](crate::ReadOptions::format).
    InputFormat = "input_format",
    /// The types of columns of text: [`ReadOptions::schema`](crate::ReadOptions::schema).
    Schema = "schema",
    /// The types of columns in names of directories:
    /// [`ReadOptions::hive_types`](crate::ReadOptions::hive_types).
    HiveTypes = "hive_types",
    /// Whether inputs may differ in their columns:
    /// [`ReadOptions::union_by_name`](crate::ReadOptions::union_by_name).
    UnionByName = "union_by_name",
    /// The byte between fields: [`CsvOptions::delimiter`](crate::CsvOptions::delimiter).
    CsvDelimiter = "csv_delimiter",
    /// The byte around fields: [`CsvOptions::quote`](crate::CsvOptions::quote).
    CsvQuote = "csv_quote",
    /// The byte in front of quotes: [`CsvOptions::escape`](crate::CsvOptions::escape).
    CsvEscape = "csv_escape",
    /// The byte in front of comments: [`CsvOptions::comment`](crate::CsvOptions::comment).
    CsvComment = "csv_comment",
    /// Lines in front of CSV: [`CsvOptions::skip_lines`](crate::CsvOptions::skip_lines).
    CsvSkipLines = "csv_skip_lines",
    /// The text of a null in CSV: [`CsvOptions::null`](crate::CsvOptions::null).
    CsvNull = "csv_null",
    /// The decimal separator: [`CsvOptions::decimal_comma`](crate::CsvOptions::decimal_comma).
    CsvDecimal = "csv_decimal",
    /// The encoding of text: [`ReadOptions::charset`](crate::ReadOptions::charset).
    Charset = "charset",
    /// The format of the output: [`WriteOptions::format`](crate::WriteOptions::format).
    OutputFormat = "output_format",
    /// The filter of rows: [`ReadOptions::filter`](crate::ReadOptions::filter).
    Where = "where",
    /// The columns to write.
    Select = "select",
    /// The codec of the output: [`WriteOptions::compression`](crate::WriteOptions::compression).
    Compression = "compression",
    /// Bytes of a Parquet row group:
    /// [`WriteOptions::row_group_bytes`](crate::WriteOptions::row_group_bytes).
    RowGroupSize = "row_group_size",
    /// Bytes of a Parquet page: [`WriteOptions::page_bytes`](crate::WriteOptions::page_bytes).
    PageSize = "page_size",
    /// Maximum bytes of a file of sorted output:
    /// [`WriteOptions::max_file_bytes`](crate::WriteOptions::max_file_bytes).
    MaxFileSize = "max_file_size",
    /// Options of object stores: [`Stores::with_options`](crate::Stores::with_options).
    StoreOption = "store_option",
    /// The memory limit: [`Limits::memory`](crate::Limits::memory).
    MemoryLimit = "memory_limit",
    /// A directory for temporary files: [`Limits::temp_dirs`](crate::Limits::temp_dirs).
    TempDir = "temp_dir",
    /// Bytes of temporary files: [`Limits::max_temp_bytes`](crate::Limits::max_temp_bytes).
    MaxTempSize = "max_temp_size",
    /// The columns of the order, or of partitions.
    By = "by",
    /// The order of floats: total, or as in SQL.
    FloatOrder = "float_order",
    /// The columns of a row's key.
    Key = "key",
    /// The columns that determine the latest change of a key.
    OrderBy = "order_by",
    /// The column with the operation of a change.
    OpColumn = "op_column",
    /// The format of a change log.
    OpPreset = "op_preset",
    /// The words for operations.
    OpMap = "op_map",
    /// The selected table of a change log with several tables.
    Table = "table",
    /// The treatment of updates without values for all columns.
    Unchanged = "unchanged",
    /// The column with the time of a change.
    Time = "time",
    /// The column with the number of times that a row was added.
    Diff = "diff",
    /// The time of the last change to apply.
    AsOf = "as_of",
    /// The number of partitions.
    Into = "into",
    /// Partitions by sampled ranges.
    Range = "range",
    /// The values at which ranges start.
    RangeAt = "range_at",
    /// A directory for each value.
    Hive = "hive",
}

/// Defines methods that set the field of their name, to the argument or to the value behind `=>`.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $kind:ty $(=> $value:expr)?;)+) => {
        $($(#[$doc])*
        pub fn $field(mut self, $field: $kind) -> Self {
            $(let $field = $value;)?
            self.$field = $field;
            self
        })+
    };
}
pub(crate) use setters;

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// Replaces the names of settings in `message` by an interface's names.
pub(crate) fn worded(message: &str, word: &dyn Fn(Setting) -> String) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, behind)) = rest.split_once('`') {
        text.push_str(before);
        let named = behind.split_once('`').and_then(|(name, behind)| {
            Some((Setting::ALL.iter().find(|setting| setting.name() == name)?, behind))
        });
        match named {
            Some((setting, behind)) => {
                text.push_str(&word(*setting));
                rest = behind;
            }
            None => {
                text.push('`');
                rest = behind;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_worded_and_other_quotes_stay() {
        let flag = |setting: Setting| format!("--{}", setting.name().replace('_', "-"));
        let message = format!("{} or {}: `after` is no `x", Setting::Select, Setting::MemoryLimit);
        assert_eq!(worded(&message, &flag), "--select or --memory-limit: `after` is no `x");
        assert_eq!(worded("`x``by`", &flag), "`x`--by");
        assert_eq!(worded("", &flag), "");
    }
}
