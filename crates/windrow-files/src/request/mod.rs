//! From settings to a request: values by name, checked against the rules of the verb, become the
//! specification and the options of a job.
//!
//! ```text
//!  Setting, text --set--> Value --build--> rules --> Request: Spec, ReadOptions, WriteOptions, Limits
//! ```
//! Rust programs that know their options at compile time use the specifications directly.

mod spec;
#[cfg(test)]
mod tests;
mod value;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use windrow::{Codec, SortColumn, SpillTo};

use crate::apply::ApplySpec;
use crate::columns::{Columns, Names, OrderBy};
use crate::error::{Error, Result};
use crate::input::{CsvOptions, ReadOptions};
use crate::limits::Limits;
use crate::output::WriteOptions;
use crate::settings::{Decimal, RULES, Rule, Setting, SpillCompression, SpillPlace, Verb};
use crate::size::Size;
use crate::store::Stores;
use crate::verbs::{
    CheckSpec, CompactSpec, DedupeSpec, DiffSpec, HeadSpec, MergeSpec, PartitionSpec, Partitions,
    SortSpec,
};

pub use spec::Spec;
pub use value::Value;

/// Settings of a verb, by name: the door for interfaces that take text.
///
/// ```
/// use windrow_files::{Setting, Settings, Verb};
///
/// let mut settings = Settings::new(Verb::Sort);
/// settings.set(Setting::By, "amount:desc")?.set(Setting::MemoryLimit, "256MiB")?;
/// let request = settings.build()?;
/// assert!(settings.set(Setting::Key, "id").is_err(), "sort has no key");
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    verb: Verb,
    given: Vec<(Setting, Value)>,
}

/// A job without its inputs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The specification of the verb.
    pub spec: Spec,
    /// How inputs are read. See [`Spec::reading`].
    pub read: ReadOptions,
    /// How the output is written.
    pub write: WriteOptions,
    /// The resources.
    pub limits: Limits,
    /// The output, if given.
    pub output: Option<PathBuf>,
}

impl Settings {
    /// Makes settings without values.
    pub fn new(verb: Verb) -> Self {
        Self { verb, given: Vec::new() }
    }

    /// Sets a value by its text. A list gets one value more.
    ///
    /// # Errors
    /// `Usage` for a setting that the verb does not take, and for text of another kind.
    pub fn set(&mut self, setting: Setting, text: &str) -> Result<&mut Self> {
        let value = Value::parse(setting.kind(), text);
        self.put(setting, value.map_err(|why| Error::usage(format!("{setting}: {why}")))?)
    }

    /// Sets a value. A list gets one value more.
    ///
    /// # Errors
    /// `Usage` for a setting that the verb does not take, and for a value of another kind.
    pub fn put(&mut self, setting: Setting, value: impl Into<Value>) -> Result<&mut Self> {
        let value = value.into();
        if !setting.is_of(self.verb) {
            return Err(Error::usage(format!("{} takes no {setting}", self.verb)));
        }
        if !value.is_of(setting.kind()) {
            return Err(Error::usage(format!("{setting} takes no {value:?}")));
        }
        if !setting.kind().is_list() {
            self.given.retain(|(other, _)| *other != setting);
        }
        self.given.push((setting, value));
        Ok(self)
    }

    /// Returns true if the setting has a value, and is not switched off.
    pub fn has(&self, setting: Setting) -> bool {
        self.values(setting).any(|value| !matches!(value, Value::Flag(false)))
    }

    fn values(&self, setting: Setting) -> impl Iterator<Item = &Value> {
        self.given.iter().filter(move |(given, _)| *given == setting).map(|(_, value)| value)
    }

    /// Returns the value of a setting, or the last of a list.
    pub fn get<'a, T: TryFrom<&'a Value>>(&'a self, setting: Setting) -> Option<T> {
        self.all(setting).pop()
    }

    fn all<'a, T: TryFrom<&'a Value>>(&'a self, setting: Setting) -> Vec<T> {
        self.values(setting).filter_map(|value| value.try_into().ok()).collect()
    }

    fn choice<T: FromStr>(&self, setting: Setting) -> Option<T> {
        self.get::<String>(setting)?.parse().ok()
    }

    fn flag(&self, setting: Setting, unless_given: bool) -> bool {
        self.get(setting).unwrap_or(unless_given)
    }

    fn columns(&self, setting: Setting) -> Vec<SortColumn> {
        self.get::<Columns>(setting).map(|columns| columns.0).unwrap_or_default()
    }

    fn bytes(&self, setting: Setting) -> Option<u64> {
        self.get::<Size>(setting).map(|size| size.0)
    }

    /// Checks the settings against each other, and makes the request.
    ///
    /// # Errors
    /// `Usage` for settings that are missing or exclude each other, and for options of CSV or of
    /// stores that are impossible.
    pub fn build(&self) -> Result<Request> {
        RULES
            .iter()
            .filter(|(verbs, _)| verbs.contains(&self.verb))
            .try_for_each(|(_, rule)| self.check(rule))?;
        let (read, output) = (self.read()?, self.get(Setting::Output));
        let (write, limits) = (self.write(), self.limits());
        Ok(Request { spec: self.spec(), read, write, limits, output })
    }

    fn check(&self, rule: &Rule) -> Result<()> {
        let message = match *rule {
            Rule::OneOf(needed) if !needed.iter().any(|setting| self.has(*setting)) => {
                let needed: Vec<String> = needed.iter().map(Setting::to_string).collect();
                format!("{} is missing", needed.join(" or "))
            }
            Rule::Needs(setting, other) if self.has(setting) && !self.has(other) => {
                let value = self.get::<String>(setting).map(|value| format!(" {value}"));
                format!("{setting}{} needs {other}", value.unwrap_or_default())
            }
            Rule::Alone(setting, others) if self.has(setting) => {
                match others.iter().find(|other| self.has(**other)) {
                    Some(other) => {
                        format!("{setting} and {other} exclude each other; give one of them")
                    }
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        Err(Error::usage(message))
    }

    fn spec(&self) -> Spec {
        let select = self.get::<Names>(Setting::Select).map(Vec::from);
        match self.verb {
            Verb::Sort => Spec::Sort(SortSpec {
                by: self.columns(Setting::By),
                select,
                limit: self.get(Setting::Limit),
                float_order: self.choice(Setting::FloatOrder).unwrap_or_default(),
            }),
            Verb::Compact => Spec::Compact(self.compact(select)),
            Verb::Apply => Spec::Apply(ApplySpec {
                changes: self.compact(select),
                lacking_is_null: self.flag(Setting::UnionByName, false),
                waits: self.flag(Setting::Wait, true),
                dry_run: self.flag(Setting::DryRun, false),
                ..ApplySpec::default()
            }),
            Verb::Merge => Spec::Merge(MergeSpec {
                by: self.columns(Setting::By),
                unique: self.flag(Setting::Unique, false),
                float_order: self.choice(Setting::FloatOrder).unwrap_or_default(),
                diff: self.get(Setting::Diff),
                time: self.get(Setting::Time),
                select,
            }),
            Verb::Partition => Spec::Partition(PartitionSpec {
                by: self.columns(Setting::By),
                partitions: self.partitions(),
                sort: self.columns(Setting::Sort),
                select,
            }),
            Verb::Dedupe => Spec::Dedupe(DedupeSpec {
                key: self.get::<Columns>(Setting::Key).map(|columns| columns.0),
                kept: self.choice(Setting::Keep).unwrap_or_default(),
                select,
            }),
            Verb::Diff => {
                let mut spec = DiffSpec::by_key(self.columns(Setting::Key));
                spec.shown = self.choice(Setting::Format).unwrap_or_default();
                spec.op_column = self.get(Setting::OpColumn).unwrap_or(spec.op_column);
                Spec::Diff(DiffSpec { select, ..spec })
            }
            Verb::Head => {
                let rows = Setting::Rows.default_of(Verb::Head).and_then(|rows| rows.parse().ok());
                let rows = self.get(Setting::Rows).or(rows).unwrap_or_default();
                Spec::Head(HeadSpec { rows, select })
            }
            Verb::Check => Spec::Check(
                CheckSpec::by(self.columns(Setting::By))
                    .unique(self.flag(Setting::Unique, false))
                    .float_order(self.choice(Setting::FloatOrder).unwrap_or_default()),
            ),
            Verb::Inspect => Spec::Inspect,
        }
    }

    fn compact(&self, select: Option<Vec<String>>) -> CompactSpec {
        let order = self.get::<OrderBy>(Setting::OrderBy).unwrap_or_default();
        CompactSpec {
            key: self.columns(Setting::Key),
            order_by: order.columns,
            order_texts: order.texts,
            op_column: self.get(Setting::OpColumn),
            op_preset: self.choice(Setting::OpPreset),
            op_map: self.get(Setting::OpMap),
            tables: self.all(Setting::Table),
            unchanged: self.choice(Setting::Unchanged).unwrap_or_default(),
            time: self.get(Setting::Time),
            diff: self.get(Setting::Diff),
            as_of: self.get(Setting::AsOf),
            mode: self.choice(Setting::Mode).unwrap_or_default(),
            keep_bookkeeping: self.flag(Setting::KeepBookkeeping, false),
            select,
        }
    }

    fn partitions(&self) -> Partitions {
        let into = self.get::<u64>(Setting::Into).and_then(|into| NonZeroU32::new(into as u32));
        match into {
            Some(into) if self.flag(Setting::Range, false) => Partitions::Ranges(into),
            Some(into) => Partitions::Hash(into),
            None if self.flag(Setting::Hive, false) => Partitions::Hive,
            None => Partitions::RangesAt(self.all(Setting::RangeAt)),
        }
    }

    fn read(&self) -> Result<ReadOptions> {
        let mut read = ReadOptions::default().csv(self.csv()?);
        read.format = self.choice(Setting::InputFormat);
        read.schema = self.get(Setting::Schema);
        read.hive_types = self.get(Setting::HiveTypes);
        read.union_by_name = self.flag(Setting::UnionByName, false);
        read.charset = self.get(Setting::Charset);
        read.filter = self.get(Setting::Where);
        Ok(read.stores(&Stores::with_options(self.all::<(String, String)>(Setting::StoreOption))?))
    }

    fn csv(&self) -> Result<CsvOptions> {
        let mut csv = CsvOptions::default();
        if let Some(quote) = self.get(Setting::CsvQuote) {
            csv = csv.quote(quote)?;
        }
        type Set = fn(CsvOptions, char) -> Result<CsvOptions>;
        let set: [(Setting, Set); 3] = [
            (Setting::CsvDelimiter, CsvOptions::delimiter),
            (Setting::CsvEscape, CsvOptions::escape),
            (Setting::CsvComment, CsvOptions::comment),
        ];
        for (setting, set) in set {
            match self.get(setting) {
                None => {}
                Some(Some(character)) => csv = set(csv, character)?,
                Some(None) => {
                    return Err(Error::usage(format!("{setting}: takes one character, not none")));
                }
            }
        }
        csv.nulls = self.all(Setting::CsvNull);
        csv.has_header = self.flag(Setting::CsvHeader, true);
        csv.decimal_comma = self.choice(Setting::CsvDecimal) == Some(Decimal::Comma);
        csv.skip_lines = self.get::<u64>(Setting::CsvSkipLines).unwrap_or_default() as usize;
        Ok(csv)
    }

    fn write(&self) -> WriteOptions {
        let usual = WriteOptions::default();
        WriteOptions {
            format: self.choice(Setting::OutputFormat),
            compression: self.get(Setting::Compression),
            row_group_bytes: self.bytes(Setting::RowGroupSize).unwrap_or(usual.row_group_bytes),
            page_bytes: self.bytes(Setting::PageSize).unwrap_or(usual.page_bytes),
            statistics: self.flag(Setting::Statistics, true),
            checksums: self.flag(Setting::Checksums, true),
            encodings: self.choice(Setting::Encoding).unwrap_or_default(),
            max_file_bytes: self.bytes(Setting::MaxFileSize),
            existing: self.choice(Setting::IfExists).unwrap_or_default(),
            ..usual
        }
    }

    /// Returns the resources that are given.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default().spill_direct(self.flag(Setting::SpillDirect, false));
        limits.memory = self.get(Setting::MemoryLimit).unwrap_or_default();
        limits.temp_dirs = self.all(Setting::TempDir);
        limits.max_temp_bytes = self.bytes(Setting::MaxTempSize);
        limits = limits.threads(self.get::<u64>(Setting::Threads).unwrap_or_default() as usize);
        limits.spill_codec = match self.choice(Setting::SpillCompression) {
            None => limits.spill_codec,
            Some(SpillCompression::None) => Codec::None,
            Some(SpillCompression::Lz4) => Codec::Lz4,
            Some(SpillCompression::Zstd) => Codec::Zstd,
        };
        limits.spill_to = match self.choice(Setting::SpillTo) {
            None => limits.spill_to,
            Some(SpillPlace::Disk) => SpillTo::Disk,
            Some(SpillPlace::Memory) => SpillTo::Memory,
        };
        limits
    }
}
