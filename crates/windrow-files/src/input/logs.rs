//! Change logs among the inputs: detection of the format, and conversion of text to rows.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;

use crate::error::{Error, Result};
use crate::input::formats::csv::sniff;
use crate::input::options::ReadOptions;
use crate::input::source::expand::Source;
use crate::input::source::origin::{Origin, SAMPLE_BYTES, Turn};
use crate::raw;
use crate::raw::{Asked, Raw, Told};
use crate::settings::{Format, Preset, Setting};

/// The format of the change logs among the inputs.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) preset: Preset,
    /// Evidence for the format, in words.
    pub(crate) by: String,
    /// The column of operations, if the format does not name the column.
    pub(crate) op_column: Option<String>,
    /// The conversion of the text to rows.
    pub(crate) raw: Option<Arc<Raw>>,
}

impl Log {
    /// Refuses a table that the caller selected and no record names. All of the log must have been
    /// read.
    pub(crate) fn check(&self) -> Result<()> {
        self.raw.as_ref().map_or(Ok(()), |raw| raw.check())
    }
}

/// Facts about change logs, collected while inputs are opened.
pub(super) struct Logs {
    preset: Option<Preset>,
    asked: Asked,
    told: Option<Told>,
    /// For AWS DMS without header lines: fields of a row of changes, if an input has such rows.
    changes: Option<usize>,
}

impl Logs {
    /// Inspects the inputs of AWS DMS without header lines. Only all of them together tell changes
    /// from full loads.
    pub(super) fn of(sources: &[Source], options: &ReadOptions) -> Result<Self> {
        let (preset, asked) = (options.op_preset, options.asked.clone());
        if !asked.tables.is_empty() && !preset.is_some_and(Preset::is_raw) {
            return Err(Error::usage(format!(
                "{} is for {} wal2json, debezium, maxwell, canal, goldengate and cockroach, whose logs name the table \
                 of a change",
                Setting::Table,
                Setting::OpPreset
            )));
        }
        let mut logs = Self { preset, asked, told: None, changes: None };
        if preset == Some(Preset::Dms) && !options.csv.has_header {
            let paths = sources.iter().filter_map(Source::path);
            let format = |path| options.format.or_else(|| Format::of_path(path));
            for path in paths.filter(|path| format(path) == Some(Format::Csv)) {
                // Opening the file reports its faults later.
                let Ok(origin) = Origin::of_path(path, options) else { continue };
                if origin.passes_once() {
                    continue;
                }
                let head = origin.head(SAMPLE_BYTES)?;
                let delimiter = delimiter_of(options, Some(path), &head);
                if let Some((first, fields)) = raw::first_fields(&head, delimiter)
                    && is_op(&first)
                {
                    logs.changes = logs.changes.max(Some(fields));
                }
            }
        }
        Ok(logs)
    }

    /// Converts `origin`, of a known format, to rows.
    pub(super) fn turned(
        &mut self,
        origin: Origin,
        path: Option<&Path>,
        format: Format,
        options: &ReadOptions,
    ) -> Result<Origin> {
        match (self.preset, format) {
            (Some(preset), Format::Ndjson) if preset.is_raw() => self.events(preset, origin),
            (Some(Preset::Dms), Format::Csv) => {
                let Some(changes) = self.changes else { return Ok(origin) };
                let head = origin.head(SAMPLE_BYTES)?;
                let delimiter = delimiter_of(options, path, &head);
                match raw::first_fields(&head, delimiter) {
                    Some((first, fields)) if fields + 1 == changes && !is_op(&first) => {
                        Ok(origin.turned(Turn::FullLoad(delimiter)))
                    }
                    _ => Ok(origin),
                }
            }
            _ => Ok(origin),
        }
    }

    fn events(&mut self, preset: Preset, origin: Origin) -> Result<Origin> {
        if self.told.is_none() {
            let head = origin.head(SAMPLE_BYTES)?;
            self.told = raw::tell(preset, &self.asked, &head);
        }
        match self.raw() {
            Some(raw) => Ok(origin.turned(Turn::Events(raw.clone()))),
            None => Ok(origin),
        }
    }

    /// Returns the conversion of text to events, if needed.
    pub(super) fn raw(&self) -> Option<&Arc<Raw>> {
        self.told.as_ref()?.raw.as_ref()
    }

    /// Refuses a table that the caller selected and no record names, for inputs without events.
    pub(super) fn check(&self) -> Result<()> {
        self.raw().map_or(Ok(()), |raw| raw.check())
    }

    /// Returns the format, once the columns of all inputs are known.
    pub(super) fn found(self, schema: &Schema) -> Result<Option<Log>> {
        let Some(preset) = self.preset else { return Ok(None) };
        let op_column = self.changes.and_then(|_| Some(schema.fields().first()?.name().clone()));
        let raw = self.raw().cloned();
        raw.iter().for_each(|raw| raw.settle());
        let log = |preset, by| Log { preset, by, op_column: op_column.clone(), raw: raw.clone() };
        if !self.asked.tables.is_empty() && self.told.as_ref().is_none_or(|told| told.raw.is_none())
        {
            return Err(Error::usage(format!(
                "{} is for change logs in NDJSON; keep the rows of one table before",
                Setting::Table
            )));
        }
        match (preset, self.told) {
            (_, Some(told)) => Ok(Some(log(told.preset, told.by))),
            (Preset::Auto, None) => {
                let (preset, by) = Preset::told_by(schema)?;
                Ok(Some(log(preset, by)))
            }
            (preset, None) => Ok(Some(log(preset, "its name".to_owned()))),
        }
    }
}

/// Returns the delimiter of a CSV file that starts with `head`.
fn delimiter_of(options: &ReadOptions, path: Option<&Path>, head: &[u8]) -> u8 {
    let csv = options.csv.clone().known_of(path);
    sniff::told(csv, head, head.len() < SAMPLE_BYTES).separator()
}

fn is_op(field: &str) -> bool {
    matches!(field.trim_matches('"'), "I" | "U" | "D")
}
