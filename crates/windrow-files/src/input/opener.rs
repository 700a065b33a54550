//! Opening of sources: detection of compression, character set and format.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::packing::{HEAD, Packing};
use crate::raw;
use crate::setting::Setting;

use super::expand::Source;
use super::logs::Logs;
use super::named::Named;
use super::origin::{Origin, Stream, Turn};
use super::{Opened, ReadOptions, SAMPLE_BYTES};
use super::{avro, csv, footers, guard, ipc, ndjson, parquet, reader, stream};

/// Refuses a head with the magic number of a binary format.
fn check_text(head: &[u8]) -> Result<(), String> {
    match Format::of_magic(head) {
        Some(format) => Err(format!("is no text; read it with {} {format}", Setting::InputFormat)),
        None => Ok(()),
    }
}

/// The state of the inputs opened before a source.
#[derive(Clone, Copy)]
pub(super) struct Like<'a> {
    /// The common schema of their files.
    pub(super) reference: Option<&'a Schema>,
    /// The places of the needed columns of a file with a schema; `None` if all are needed.
    pub(super) counted: &'a dyn Fn(&Schema) -> Option<Vec<usize>>,
}

/// Opens each source in its format.
pub(super) struct Opener<'a> {
    pub(super) options: &'a ReadOptions,
    pub(super) footers: Arc<footers::FooterCache>,
    pub(super) temp_left: u64,
    pub(super) named: Named,
    pub(super) logs: Logs,
}

impl Opener<'_> {
    pub(super) fn open_source(
        &mut self,
        source: &Source,
        ordinal: usize,
        like: Like<'_>,
        stdin: &mut Option<Stream>,
    ) -> Result<Opened> {
        match source {
            Source::Reader(reader) => reader::open(reader),
            Source::File(path) | Source::Found { path, .. } => {
                self.open(Some(path), Origin::of_path(path, self.options)?, ordinal, like)
            }
            Source::Stdin => self.open(None, Origin::of_stdin(stdin)?, ordinal, like),
        }
    }

    /// Converts `origin` to UTF-8.
    fn text(&self, origin: Origin) -> Result<Origin> {
        origin.in_utf8(self.options.charset)
    }

    /// Decompresses `origin`, and converts text to UTF-8.
    fn plain(&self, path: Option<&Path>, origin: Origin) -> Result<Origin> {
        // The name of a binary format suffices: a search for compression would read the head of
        // every file.
        let told = path.filter(|path| Packing::of_path(path).is_none()).and_then(Format::of_path);
        Ok(match told {
            Some(Format::Parquet | Format::ArrowFile | Format::ArrowStream | Format::Avro) => {
                origin
            }
            Some(Format::Csv | Format::Ndjson) => self.text(origin.unpacked()?)?,
            None => {
                let origin = origin.unpacked()?;
                match Format::of_magic(&origin.head(HEAD)?) {
                    Some(_) => origin,
                    None => self.text(origin)?,
                }
            }
        })
    }

    fn open(
        &mut self,
        path: Option<&Path>,
        origin: Origin,
        ordinal: usize,
        like: Like<'_>,
    ) -> Result<Opened> {
        let origin = self.plain(path, origin)?;
        let mut format = match self.options.format.or(path.and_then(Format::of_path)) {
            Some(format) => format,
            None => {
                let head = origin.head(SAMPLE_BYTES.min(4096))?;
                match Format::of_magic(&head) {
                    Some(format) => format,
                    None if origin.passes_once() => Format::of_stream(&head),
                    None => {
                        check_text(&head).map_err(|what| origin.error(what))?;
                        return Err(Error::usage(format!(
                            "{}: the extension is of no known format; \
                             name the format with {}",
                            origin.name(),
                            Setting::InputFormat
                        )));
                    }
                }
            }
        };
        // `.arrow`, `.ipc` and `.feather` stand for both Arrow formats: the content decides.
        if matches!(format, Format::ArrowFile | Format::ArrowStream) {
            let magic = Format::of_magic(&origin.head(8)?);
            if let Some(Format::ArrowFile | Format::ArrowStream) = magic {
                format = magic.unwrap_or(format);
            }
        }
        if matches!(format, Format::Csv | Format::Ndjson) {
            let head = origin.head(8)?;
            check_text(&head).map_err(|what| origin.error(what))?;
        }
        let origin = match format {
            Format::Ndjson if raw::is_array(&origin.head(SAMPLE_BYTES)?) => {
                origin.turned(Turn::Elements)
            }
            _ => origin,
        };
        let origin = self.logs.turned(origin, path, format, self.options)?;
        let origin = match format {
            Format::Ndjson if ndjson::mixes_extended(&origin)? => origin.turned(Turn::Extended),
            _ => origin,
        };
        let name = origin.name().clone();
        let faults = origin.faults();
        let temp_dir = self.options.temp_dir.as_deref();
        let (temp_left, named) = (&mut self.temp_left, &mut self.named);
        let raw = self.logs.raw().map(Arc::as_ref);
        let ReadOptions { cancel, ceiling, .. } = self.options;
        let opened = guard::no_panic(&name, || match format {
            Format::Parquet => {
                let origin = origin.spooled(temp_dir, temp_left, cancel)?;
                parquet::open(origin, ordinal, self.options, self.footers.clone(), like.counted)
            }
            // The heads of all record batches would take as many requests.
            Format::ArrowFile if origin.is_far() => stream::open(origin, format),
            Format::ArrowFile => {
                let origin = origin.spooled(temp_dir, temp_left, cancel)?;
                ipc::open(origin, *ceiling)
            }
            Format::ArrowStream => stream::open(origin, format),
            Format::Avro => avro::open(origin, self.options.batch_rows.max(1)),
            Format::Csv => csv::open(origin, path, self.options, like.reference),
            Format::Ndjson => ndjson::open(origin, self.options, like.reference, named, raw),
        });
        // The first ranges of all inputs would take too much memory until the inputs are read.
        faults.forget();
        opened.map_err(|error| faults.behind(error))
    }
}
