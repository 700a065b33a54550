//! Change logs among the inputs: which format they are in, and how their text is turned into rows.

use std::path::Path;

use arrow_schema::Schema;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::preset::Preset;
use crate::raw::{self, Told};
use crate::setting::Setting;

use super::origin::{Origin, Turn};
use super::{ReadOptions, SAMPLE_BYTES, Source, sniff};

/// The format of change logs that inputs are in.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) preset: Preset,
    /// What it was told by, for people.
    pub(crate) by: String,
    /// The column of operations, where the format does not give it a name.
    pub(crate) op_column: Option<String>,
}

/// What is known of it while inputs are opened.
pub(super) struct Logs {
    preset: Option<Preset>,
    table: Option<String>,
    told: Option<Told>,
    /// Of AWS DMS without header lines: the fields of a row of changes, if any input has such rows.
    changes: Option<usize>,
}

impl Logs {
    /// Looks at those inputs of which only all together tell the format.
    pub(super) fn of(sources: &[Source], options: &ReadOptions) -> Result<Self> {
        let (preset, table) = (options.op_preset, options.table.clone());
        if table.is_some() && !preset.is_some_and(Preset::is_raw) {
            return Err(Error::usage(format!(
                "{} is for {} wal2json, debezium, maxwell and canal, whose logs name the table of a change",
                Setting::Table,
                Setting::OpPreset
            )));
        }
        let mut logs = Self { preset, table, told: None, changes: None };
        if preset == Some(Preset::Dms) && !options.csv.has_header {
            let paths = sources.iter().filter_map(Source::path);
            for path in paths.filter(|path| is_csv(path, options)) {
                // Whatever is wrong with it is told when it is opened.
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

    /// The rows of `origin`, whose format is known.
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
            self.told = raw::tell(preset, self.table.as_deref(), &head);
        }
        match self.told.as_ref().and_then(|told| told.raw.as_ref()) {
            Some(raw) => Ok(origin.turned(Turn::Events(raw.clone()))),
            None => Ok(origin),
        }
    }

    /// The format, now that the columns of all inputs are known.
    pub(super) fn found(self, schema: &Schema) -> Result<Option<Log>> {
        let Some(preset) = self.preset else { return Ok(None) };
        let op_column = self.changes.and_then(|_| Some(schema.fields().first()?.name().clone()));
        let log = |preset, by| Log { preset, by, op_column: op_column.clone() };
        if self.table.is_some() && self.told.as_ref().is_none_or(|told| told.raw.is_none()) {
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

fn is_csv(path: &Path, options: &ReadOptions) -> bool {
    options.format.or_else(|| Format::of_path(path)) == Some(Format::Csv)
}

/// The byte between the fields of a file of CSV with this head.
fn delimiter_of(options: &ReadOptions, path: Option<&Path>, head: &[u8]) -> u8 {
    let csv = options.csv.clone().known_of(path);
    sniff::told(csv, head, head.len() < SAMPLE_BYTES).separator()
}

fn is_op(field: &str) -> bool {
    matches!(field.trim_matches('"'), "I" | "U" | "D")
}
