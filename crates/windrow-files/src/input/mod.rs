//! Inputs: files of any format as one list of units of work with one schema.
//!
//! ```text
//!  arguments --expand--> Source --Origin::of--> Origin --parquet/ipc/csv/ndjson--> Opened
//!                                                                                    |
//!             Inputs { schema, files, units }  <------------unify-------------------+
//!                         |
//!                      Unit::read --> RecordBatch, at most batch_rows, exactly of the schema
//! ```
//! Opening reads the data for planning: footers, headers, a sample of text. An open input holds no
//! descriptor (except streams) and little memory, so ten thousand inputs are no special case. A
//! unit opens its file for reading, and closes the file at the end.
//!
//! Any bytes yield batches or an error: the libraries underneath panic on some damaged files, and
//! these panics end here (see [`guard`]).

mod annotations;
mod avro;
mod blocks;
mod charset;
mod chosen;
mod content;
mod copied;
mod csv;
mod csv_options;
mod csv_values;
mod dialect;
mod dictionaries;
mod estimate;
mod exact;
mod expand;
mod filter;
mod footer_depth;
mod footers;
mod frame;
mod guard;
mod hive;
mod info;
mod int96;
mod ipc;
mod json_plain;
mod json_text;
mod json_walk;
mod leaf;
mod lengths;
mod logs;
mod named;
mod ndjson;
mod null_lines;
mod opener;
mod options;
mod origin;
mod overlaps;
mod pages;
mod parquet;
mod pattern;
mod preamble;
mod profile;
mod quoted_nulls;
mod quotes;
mod random;
mod reader;
mod records;
mod row_groups;
mod schema_text;
mod segments;
mod shapes;
mod sniff;
mod stream;
mod tables;
mod text;
mod text_faults;
mod told;
mod turns;
mod unify;
mod wanted;
pub(crate) mod widen;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::format::Format;
use crate::packing::Packing;
use crate::store::{Stores, is_far};
use crate::watch::Watch;

use content::{Content, File, Needs, Opened, Span};
use hive::Hive;
use logs::Logs;
use named::Named;
use opener::{Like, Opener};
use origin::Stream;
use told::{advised, agreed};
use wanted::Common;

pub(crate) use annotations::annotated;
pub use charset::Charset;
pub(crate) use content::Batches;
pub use csv_options::CsvOptions;
pub(crate) use dictionaries::readable;
pub(crate) use exact::{one_value, widened};
pub use expand::{Source, expand, expand_with};
pub use filter::Filter;
pub(crate) use filter::chosen;
pub use guard::panics_are_caught;
pub(crate) use hive::NULL as HIVE_NULL;
pub use info::{DeclaredColumn, FileInfo};
pub(crate) use lengths::long_values;
pub(crate) use logs::Log;
pub use options::ReadOptions;
pub(crate) use parquet::{Footer, common_order, declared_order};
pub use reader::Reader;
pub(crate) use row_groups::RowGroups;
pub use schema_text::parse_schema;
pub(crate) use turns::{OpenUnit, Step, UnitReader};

/// Bytes of a stream or text for detection of the format and inference of the schema.
const SAMPLE_BYTES: usize = 1 << 20;

/// All inputs, opened.
pub struct Inputs {
    schema: SchemaRef,
    files: Vec<FileInfo>,
    units: Vec<Unit>,
    needs: Needs,
    temp_bytes: u64,
    contents: Arc<[File]>,
    csv: CsvOptions,
    log: Option<Log>,
    filter: Option<filter::Bound>,
    /// For a pair, the ordinal of the first file of the new side.
    first_of_new: Option<usize>,
    stores: Stores,
}

/// A part of a file that is read separately.
#[derive(Clone)]
pub(crate) struct Unit {
    /// The ordinal of the file.
    pub(crate) file: usize,
    /// Number of the unit's first row within the file.
    pub(crate) first_row: u64,
    /// Rows of the unit, if the format stores the number.
    pub(crate) rows: Option<u64>,
    part: Range<usize>,
    /// Rows of the unit that can pass the filter, if not all.
    kept: Option<Arc<[Range<u64>]>>,
    schema: SchemaRef,
    batch_rows: usize,
    files: Arc<[File]>,
}

impl Inputs {
    /// Opens `sources` as far as planning requires.
    ///
    /// # Errors
    /// `Data` with the name of the file: missing, unreadable, damaged, or of another schema than
    /// the first. `Usage` if the command line must state the format or the schema.
    pub fn open(sources: &[Source], options: &ReadOptions) -> Result<Self> {
        Self::open_with(sources, options, Box::new(std::io::stdin()))
    }

    /// Opens two sides for a comparison, with one schema as for the inputs of [`open`](Self::open).
    ///
    /// # Errors
    /// As [`open`](Self::open). Also `Usage` for a side without inputs, and for standard input on
    /// both sides.
    pub fn open_pair(old: &[Source], new: &[Source], options: &ReadOptions) -> Result<Self> {
        if old.is_empty() || new.is_empty() {
            return Err(Error::usage("differences are of two sides: name inputs of both"));
        }
        if old.contains(&Source::Stdin) && new.contains(&Source::Stdin) {
            return Err(Error::usage("standard input (-) can be read only once"));
        }
        let inputs = Self::open(&[old, new].concat(), options)?;
        Ok(Self { first_of_new: Some(old.len()), ..inputs })
    }

    /// Opens inputs as [`Inputs::open`], with another stream for standard input.
    fn open_with(sources: &[Source], options: &ReadOptions, stdin: Stream) -> Result<Self> {
        let mut hive = Hive::of(sources, options.hive_types.as_deref())?;
        let options = &*options.of(sources, &hive);
        let mut stdin = Some(stdin);
        let footers = Arc::new(footers::FooterCache::default());
        let named = Named::of(options.schema.as_deref());
        let temp_left = options.temp_bytes;
        let logs = Logs::of(sources, options)?;
        let mut opener = Opener { options, footers, temp_left, named, logs };
        let batch_rows = options.batch_rows.max(1);
        let mut common = Common::new(options);
        let mut files = Vec::with_capacity(sources.len());
        let mut spans = Vec::new();
        let mut contents = Vec::with_capacity(sources.len());
        let mut needs = Needs::default();
        let mut empty = None;
        for (ordinal, source) in sources.iter().enumerate() {
            let reference = common.so_far().map(|schema| hive.without(&schema));
            let counted = |schema: &Schema| common.counted(schema, &hive);
            let like = Like { reference: reference.as_deref(), counted: &counted };
            let opened = opener.open_source(source, ordinal, like, &mut stdin)?;
            let lacks = opened.lacks();
            let opened = match lacks {
                Some(_) => opened,
                None => hive.append(source, opened, batch_rows)?,
            };
            let order = match lacks {
                // Other files determine the columns.
                Some(lacks) => {
                    empty = empty.or(Some(lacks));
                    None
                }
                None => common.fit(&opened, &hive)?,
            };
            needs.take_in(&opened);
            files.push(opened.info(source));
            spans.extend(opened.spans.into_iter().map(|span| (ordinal, span)));
            if opened.format != Format::Ndjson {
                opener.named.see(opened.schema.fields().iter().map(|field| &**field.name()));
            }
            contents.push(File { content: opened.content, order });
        }
        let nothing = || Error::usage("no input; name files, or - for stdin");
        let none = || opener.logs.check().err().or(empty).unwrap_or_else(nothing);
        let schema = agreed(common.so_far().ok_or_else(none)?, &files);
        opener.named.check(&schema)?;
        let contents: Arc<[File]> = contents.into();
        let filter = options.filter.as_ref().map(|filter| filter.bind(&schema)).transpose();
        let filter = filter.map_err(|error| advised(error, &contents))?;
        let unit = |(file, span): (usize, Span)| Unit {
            file,
            first_row: span.first_row,
            rows: span.rows,
            part: span.part,
            kept: None,
            schema: schema.clone(),
            batch_rows,
            files: contents.clone(),
        };
        let units = spans.into_iter().map(unit).collect();
        let log = opener.logs.found(&schema)?;
        let mut inputs = Self {
            schema,
            files,
            units,
            needs,
            temp_bytes: options.temp_bytes - opener.temp_left,
            contents,
            csv: options.csv.clone(),
            log,
            filter,
            first_of_new: None,
            stores: options.stores.clone(),
        };
        inputs.prune()?;
        Ok(inputs)
    }

    /// Removes files and row groups without rows for the filter, by directory names and statistics.
    fn prune(&mut self) -> Result<()> {
        let Some(filter) = &self.filter else { return Ok(()) };
        // For each file, the row groups that can have rows; `None` for all.
        let mut kept = Vec::with_capacity(self.contents.len());
        for file in 0..self.contents.len() {
            let content = &self.contents[file].content;
            kept.push(match filter.excludes(&self.schema, |column| content.value(column)) {
                true => Some(Vec::new()),
                false => {
                    let footer = self.parquet_footer(file)?;
                    footer.map(|footer| filter::groups(filter, &footer, &self.schema))
                }
            });
        }
        self.units.retain(|unit| {
            let groups = kept[unit.file].as_ref();
            groups.is_none_or(|kept| unit.part.clone().any(|group| kept.get(group) == Some(&true)))
        });
        self.prune_pages()
    }

    /// Removes pages from the remaining units, for Parquet.
    fn prune_pages(&mut self) -> Result<()> {
        let Some(filter) = &self.filter else { return Ok(()) };
        let mut rows: Option<(usize, Vec<filter::Kept>)> = None;
        for unit in &mut self.units {
            if rows.as_ref().is_none_or(|(file, _)| *file != unit.file) {
                let footer = self.contents[unit.file].content.page_index().transpose()?;
                let kept = footer.map(|footer| filter::rows(filter, &footer, &self.schema));
                rows = Some((unit.file, kept.unwrap_or_default()));
            }
            let of_file = rows.as_mut().map(|(_, rows)| rows);
            let of_unit = of_file.and_then(|rows| rows.get_mut(unit.part.start)?.take());
            unit.kept = of_unit.map(Arc::from);
        }
        self.units.retain(|unit| unit.kept.as_ref().is_none_or(|kept| !kept.is_empty()));
        Ok(())
    }

    /// Returns a mask of the rows of `batch` that pass the filter; `None` if all rows pass.
    pub(crate) fn mask(&self, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        self.filter.as_ref().map_or(Ok(None), |filter| filter.mask(batch))
    }

    /// Returns whether a filter removes rows.
    pub(crate) fn are_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns the schema of all inputs. Its metadata is the part of the first input's metadata
    /// that is true of all inputs.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the inputs in order.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    /// Returns the rows of all inputs, if every format stores the number.
    pub fn rows(&self) -> Option<u64> {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// Returns the dialect of CSV, as far as set by the caller.
    pub(crate) fn csv(&self) -> &CsvOptions {
        &self.csv
    }

    /// Returns the format of the change log, if the caller declared the inputs as a change log.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// Returns the approximate text bytes of all inputs; `None` if an input is a stream. Compressed
    /// text is assumed to expand eightfold.
    pub(crate) fn text_bytes(&self) -> Option<u64> {
        let bytes = |file: &FileInfo| {
            let packed = file.path().is_some_and(|path| Packing::of_path(path).is_some());
            file.bytes.map(|bytes| if packed { bytes.saturating_mul(8) } else { bytes })
        };
        self.files.iter().map(bytes).sum()
    }

    /// Returns the length of all inputs; `None` if an input is a stream.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the units of work, in input order: a row group, a range of record batches, or a
    /// whole file.
    pub(crate) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Returns an estimate of the heap for reading any one unit, including a batch.
    pub(crate) fn reader_bytes(&self) -> usize {
        self.needs.reader_bytes
    }

    /// Returns the mean bytes of a row, as far as known without reading, in the row group, the
    /// record batches or the sample with the longest rows.
    pub(crate) fn row_bytes(&self) -> usize {
        self.needs.row_bytes
    }

    /// Returns the bytes of the longest row, as far as known without reading; included in
    /// [`Inputs::reader_bytes`].
    pub(crate) fn longest_row(&self) -> usize {
        self.needs.longest_row
    }

    /// Returns the number of copies of a longer row in memory while the row is read.
    pub(crate) fn copies_of_a_long_row(&self) -> usize {
        self.needs.copies
    }

    /// Returns the bytes of temporary files with copies of streams.
    pub(crate) fn temp_bytes(&self) -> u64 {
        self.temp_bytes
    }

    /// Returns the ordinal of the first file of the new side, for a pair.
    pub(crate) fn first_of_new(&self) -> Option<usize> {
        self.first_of_new
    }

    /// Returns the stores for the addresses of inputs and of the output.
    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Returns whether any input has Bloom filters.
    pub(crate) fn have_bloom_filters(&self) -> bool {
        self.contents.iter().any(|file| file.content.has_bloom_filters())
    }

    /// Returns whether the input `file` can be read again.
    pub(crate) fn is_there_again(&self, file: usize) -> bool {
        self.files[file].bytes.is_some()
    }

    /// Refuses an output found among the inputs, because each run would read the output of the last
    /// run. An output that the user names among the inputs is intended.
    ///
    /// # Errors
    /// `Usage` if a pattern or a directory includes `output`, or a file in the directory `output`.
    pub(crate) fn refuse_output(&self, output: &Path, is_directory: bool) -> Result<()> {
        let whole = |path: &Path| match (path.canonicalize(), path.parent(), path.file_name()) {
            (Ok(whole), _, _) => Some(whole),
            (Err(_), Some(parent), Some(name)) => {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                parent.canonicalize().ok().map(|parent| parent.join(name))
            }
            _ => None,
        };
        if is_far(output) {
            return self.refuse_object(output, is_directory);
        }
        let Some(place) = whole(output) else { return Ok(()) };
        for file in &self.files {
            let Source::Found { path, by } = &file.source else { continue };
            let (by, shown) = (Path::new(by), output.display());
            if is_directory && by.is_dir() && whole(by).is_some_and(|by| place.starts_with(by)) {
                return Err(Error::usage(format!(
                    "{shown}: is in {}, which is an input; write it elsewhere, or name the files",
                    by.display()
                )));
            }
            let Some(input) = whole(path) else { continue };
            if input == place || is_directory && input.starts_with(&place) {
                return Err(Error::usage(format!(
                    "{shown}: {} stands for it, too, so that each run would read what the one before \
                     it wrote; write it elsewhere, or name the inputs",
                    by.display()
                )));
            }
        }
        Ok(())
    }

    /// Refuses an address as output in the same way. The next run would find files below an input
    /// directory.
    fn refuse_object(&self, output: &Path, is_directory: bool) -> Result<()> {
        for file in &self.files {
            let Source::Found { path, by } = &file.source else { continue };
            let by = Path::new(by);
            let is_prefix = is_far(by) && path.starts_with(by);
            let is_found = path == output || is_directory && path.starts_with(output);
            if is_found || is_directory && is_prefix && output.starts_with(by) {
                return Err(Error::usage(format!(
                    "{}: {} stands for it, too, so that each run would read what the one before it wrote; write \
                     it elsewhere, or name the inputs",
                    output.display(),
                    by.display()
                )));
            }
        }
        Ok(())
    }

    /// Returns the row groups of a Parquet input for an unchanged copy, from a new read of the
    /// footer. Returns `None` for other formats, for objects, and for files without a small page
    /// index or whose footer, here without statistics, is not `wanted`.
    pub(crate) fn row_groups(
        &self,
        file: usize,
        wanted: &dyn Fn(&Footer) -> bool,
    ) -> Result<Option<RowGroups>> {
        self.contents[file].content.row_groups(wanted)
    }

    /// Reads the footer of a Parquet input, with statistics; `None` for other formats.
    pub(crate) fn parquet_footer(&self, file: usize) -> Result<Option<parquet::Footer>> {
        self.contents[file].content.footer().transpose()
    }
}

impl Unit {
    /// Reads the unit: batches of at most `batch_rows` rows, exactly of [`Inputs::schema`].
    ///
    /// The file is open while the iterator lives. After an error the iterator ends.
    pub(crate) fn read(&self, watch: &Watch) -> Result<Batches> {
        self.open(watch).map(|unit| turns::batches(&unit))
    }

    /// Opens the unit for any number of threads. The batches are the same as from [`Unit::read`].
    ///
    /// The file is open while any thread reads.
    pub(crate) fn open(&self, watch: &Watch) -> Result<Arc<OpenUnit>> {
        OpenUnit::new(self, watch)
    }

    /// Prefetches the bytes of the unit.
    pub(crate) fn ask_for(&self) {
        self.files[self.file].content.ask_for(self.part.clone());
    }
}
