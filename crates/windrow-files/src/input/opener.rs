//! Opening of sources: detection of compression, character set and format.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::error::{Error, Result};
use crate::input::formats::opening::{Like, Opening};
use crate::input::formats::parquet::footers::FooterCache;
use crate::input::formats::{self, handed, json};
use crate::input::logs::Logs;
use crate::input::opened::Opened;
use crate::input::options::ReadOptions;
use crate::input::source::expand::Source;
use crate::input::source::head::Head;
use crate::input::source::origin::{Origin, SAMPLE_BYTES, Stream, Turn};
use crate::input::text::named::Named;
use crate::input::units::guard;
use crate::packing::{Decompressors, HEAD, Packing};
use crate::raw;
use crate::settings::{Format, Setting};

/// Bytes that tell the format of an input without a name.
const SNIFFED: usize = 4096;

/// Opens each source in its format.
pub(super) struct Opener<'a> {
    pub(super) options: &'a ReadOptions,
    /// Resources for decompressing one input.
    pub(super) decompressors: Decompressors,
    pub(super) footers: Arc<FooterCache>,
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
            Source::Reader(reader) => handed::open(reader),
            Source::Stdin => self.open(None, Origin::of_stdin(stdin)?, ordinal, like),
            Source::File(path) | Source::Found { path, .. } | Source::Partition { path, .. } => {
                self.open(Some(path), Origin::of_path(path, self.options)?, ordinal, like)
            }
        }
    }

    /// Returns `origin` without compression around it, and its text in UTF-8.
    fn plain(&self, path: Option<&Path>, origin: Origin) -> Result<Origin> {
        // The name of a binary format suffices: a search for compression would read the head of
        // every file.
        let told = path.filter(|path| Packing::of_path(path).is_none()).and_then(Format::of_path);
        let is_text = told.map(|format| formats::of(format).is_text());
        match is_text {
            Some(false) => return Ok(origin),
            // One look serves all that tells something by the first bytes.
            Some(true) => drop(origin.head(SAMPLE_BYTES)?),
            None => {}
        }
        let origin = origin.unpacked(self.decompressors)?;
        if is_text.is_none() && formats::of_magic(&origin.head(HEAD)?).is_some() {
            return Ok(origin);
        }
        origin.in_utf8(self.options.charset)
    }

    /// Returns the format of `origin`: the caller's, that of its name, or that of its first bytes.
    fn format(&self, path: Option<&Path>, origin: &Origin) -> Result<Format> {
        if let Some(format) = self.options.format.or(path.and_then(Format::of_path)) {
            return Ok(format);
        }
        let head = origin.head(SNIFFED)?;
        match formats::of_magic(&head) {
            Some(format) => Ok(format),
            None if origin.passes_once() => Ok(formats::of_stream(&head)),
            None => Err(Error::usage(format!(
                "{}: the extension is of no known format; name the format with {}",
                origin.name(),
                Setting::InputFormat
            ))),
        }
    }

    fn open(
        &mut self,
        path: Option<&Path>,
        origin: Origin,
        ordinal: usize,
        like: Like<'_>,
    ) -> Result<Opened> {
        let mut origin = self.plain(path, origin)?;
        let format = self.format(path, &origin)?;
        if formats::of(format).is_text()
            && let Some(other) = formats::of_magic(&origin.head(8)?)
        {
            let what = format!("is no text; read it with {} {other}", Setting::InputFormat);
            return Err(origin.error(what));
        }
        let is_json = format == Format::Ndjson;
        if is_json && raw::is_array(&origin.head(SAMPLE_BYTES)?) {
            origin = origin.turned(Turn::Elements);
        }
        origin = self.logs.turned(origin, path, format, self.options)?;
        if is_json && json::mixes_extended(&origin)? {
            origin = origin.turned(Turn::Extended);
        }
        let (name, faults, look) = (origin.name().clone(), origin.faults(), origin.look());
        let mut opening = Opening {
            options: self.options,
            path,
            ordinal,
            like,
            named: &mut self.named,
            raw: self.logs.raw().map(Arc::as_ref),
            footers: &self.footers,
            temp_left: &mut self.temp_left,
        };
        let open = || formats::of(format).open(origin, &mut opening);
        let opened = guard::no_panic(&name, open);
        // The first ranges of all inputs would take too much memory until the inputs are read.
        faults.forget();
        *look.lock().unwrap_or_else(PoisonError::into_inner) = Head::default();
        let mut opened = opened.map_err(|error| faults.behind(error))?;
        (opened.about.name, opened.about.faults) = (name, faults);
        Ok(opened)
    }
}
