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
//! these panics end here (see [`guard`](units::guard)).

mod charset;
mod filter;
mod formats;
mod logs;
mod opened;
mod opener;
mod options;
mod row_groups;
mod schema;
mod source;
mod text;
mod units;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::nested::with_type;
use crate::packing::Packing;
use crate::settings::{Format, Preset};
use crate::store::{Stores, is_far};

use formats::opening::Like;
use formats::parquet::footers::FooterCache;
use logs::Logs;
use opened::{Content, Needs, Span};
use opener::Opener;
use schema::hive::Hive;
use schema::wanted::Common;
use source::origin::Stream;
use text::named::Named;
use units::unit::File;

pub use charset::Charset;
pub(crate) use filter::{Statistics, is_of_the_first_form, literal};
pub(crate) use formats::parquet::annotations::annotated;
pub(crate) use formats::parquet::dictionaries::readable;
pub(crate) use formats::parquet::{common_order, declared_order};
pub(crate) use logs::Log;
pub use options::ReadOptions;
pub use options::csv::CsvOptions;
pub use options::filter::Filter;
pub use options::schema::parse_schema;
pub(crate) use options::schema::parsed as parsed_schema;
pub(crate) use row_groups::{Footer, RowGroups};
pub(crate) use schema::hive::NULL as HIVE_NULL;
pub(crate) use schema::unify::conform;
pub(crate) use schema::widen;
pub use source::expand::{Source, expand, expand_with};
pub use source::info::{DeclaredColumn, FileInfo};
pub use source::reader::Reader;
pub(crate) use text::exact::{exact, widened};
pub use units::guard::silence_caught_panics;
pub(crate) use units::lengths::long_values;
pub(crate) use units::turns::{OpenUnit, Step, UnitReader};
pub(crate) use units::unit::Unit;

/// All inputs, opened.
pub struct Inputs {
    schema: SchemaRef,
    files: Vec<FileInfo>,
    /// The units of work, in input order: a row group, a range of record batches, or a
    /// whole file.
    pub(crate) units: Vec<Unit>,
    /// The memory that reading takes.
    pub(crate) needs: Needs,
    /// The bytes of temporary files with copies of streams.
    pub(crate) temp_bytes: u64,
    contents: Arc<[File]>,
    /// The dialect of CSV, as far as set by the caller.
    pub(crate) csv: CsvOptions,
    log: Option<Log>,
    filter: Option<filter::Bound>,
    /// For a pair, the ordinal of the first file of the new side.
    pub(crate) first_of_new: Option<usize>,
    /// The stores for the addresses of inputs and of the output.
    pub(crate) stores: Stores,
    /// The time that opening took.
    pub(crate) opening: Duration,
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
        let start = Instant::now();
        let mut hive = Hive::of(sources, options.hive_types.as_deref())?;
        let options = &*hive.carried(sources, options);
        let mut stdin = Some(stdin);
        let footers = Arc::new(FooterCache::default());
        let named = Named::of(options.schema.as_deref());
        let temp_left = options.temp_bytes.unwrap_or(u64::MAX);
        let logs = Logs::of(sources, options)?;
        let decompressors = options.decompressors.shared_by(sources.len());
        let mut opener = Opener { options, decompressors, footers, temp_left, named, logs };
        let batch_rows = options.batch_rows();
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
            let mut opened = opener.open_source(source, ordinal, like, &mut stdin)?;
            let (order, appendix) = match opened.lacks() {
                // Other files determine the columns.
                Some(lacks) => {
                    empty = empty.or(Some(lacks));
                    (None, None)
                }
                None => {
                    let appendix = hive.append(source, &mut opened, batch_rows)?;
                    (common.fit(&opened, &hive)?, appendix)
                }
            };
            needs.take_in(&opened);
            files.push(opened.info(source));
            spans.extend(opened.spans.into_iter().map(|span| (ordinal, span)));
            if opened.format != Format::Ndjson {
                opener.named.see(opened.schema.fields().iter().map(|field| &**field.name()));
            }
            contents.push(File { content: opened.content, order, about: opened.about, appendix });
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
            temp_bytes: temp_left - opener.temp_left,
            contents,
            csv: options.csv.clone(),
            log,
            filter,
            first_of_new: None,
            stores: options.stores.clone(),
            opening: Duration::ZERO,
        };
        inputs.prune()?;
        inputs.opening = start.elapsed();
        Ok(inputs)
    }

    /// Removes files and row groups without rows for the filter, by directory names and statistics.
    fn prune(&mut self) -> Result<()> {
        let Some(filter) = &self.filter else { return Ok(()) };
        // For each file, the row groups that can have rows; `None` for all.
        let mut kept = Vec::with_capacity(self.contents.len());
        for file in 0..self.contents.len() {
            let appendix = self.contents[file].appendix.as_ref();
            kept.push(match filter.excludes(&self.schema, |column| appendix?.value(column)) {
                true => Some(Vec::new()),
                false => {
                    let footer = self.content(file).footer()?;
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
        let mut rows: Option<(usize, Vec<filter::KeptRows>)> = None;
        for unit in &mut self.units {
            if rows.as_ref().is_none_or(|(file, _)| *file != unit.file) {
                let footer = self.contents[unit.file].content.page_index()?;
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

    /// Returns the rows of `batch` that pass the filter, with their mask; `None` if all rows pass.
    pub(crate) fn selected(
        &self,
        batch: RecordBatch,
    ) -> Result<(RecordBatch, Option<BooleanBuffer>)> {
        match self.filter.as_ref().map_or(Ok(None), |filter| filter.mask(&batch))? {
            Some(mask) => Ok((filter::chosen(&batch, &mask)?, Some(mask))),
            None => Ok((batch, None)),
        }
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

    /// Returns whether any input has Bloom filters.
    pub(crate) fn have_bloom_filters(&self) -> bool {
        self.contents.iter().any(|file| file.about.has_bloom_filters)
    }

    /// Iterates over the notes: facts about readable inputs that a user may want to know.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.contents.iter().flat_map(|file| &file.about.notes).map(String::as_str)
    }

    /// Adds advice from the inputs to `error`, if `error` is about a missing column.
    pub(crate) fn advised(&self, error: Error) -> Error {
        advised(error, &self.contents)
    }

    /// Returns the delimiter of the first CSV input whose delimiter was detected: neither the
    /// caller nor the file name gives it.
    pub(crate) fn told_delimiter(&self) -> Option<u8> {
        let mut files = self.files.iter().zip(&self.contents[..]);
        files.find_map(|(file, content)| {
            let told = content.about.csv.as_ref()?.delimiter;
            told.filter(|_| self.csv.clone().known_of(file.path()).delimiter.is_none())
        })
    }

    /// Returns the format of the change log in the inputs, and the evidence for the format.
    pub fn change_log(&self) -> Option<(Preset, &str)> {
        self.log.as_ref().map(|log| (log.preset, &*log.by))
    }

    /// Refuses an output found among the inputs, because each run would read the output of the last
    /// run. An output that the user names among the inputs is intended.
    ///
    /// # Errors
    /// `Usage` if a pattern or a directory includes `output`, or a file in the directory `output`.
    pub(crate) fn refuse_output(&self, output: &Path, is_directory: bool) -> Result<()> {
        let is_object = is_far(output);
        let whole = |path: &Path| match (path.canonicalize(), path.parent(), path.file_name()) {
            _ if is_object => Some(path.to_owned()),
            (Ok(whole), _, _) => Some(whole),
            (Err(_), Some(parent), Some(name)) => {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                parent.canonicalize().ok().map(|parent| parent.join(name))
            }
            _ => None,
        };
        let Some(place) = whole(output) else { return Ok(()) };
        for file in &self.files {
            let Source::Found { path, by } = &file.source else { continue };
            let (by, shown) = (Path::new(by), output.display());
            let is_within = is_directory && whole(by).is_some_and(|by| place.starts_with(by));
            if is_within && !is_object && by.is_dir() {
                return Err(Error::usage(format!(
                    "{shown}: is in {}, which is an input; write it elsewhere, or name the files",
                    by.display()
                )));
            }
            // An object below a directory that is an input is found among them the next time.
            let is_below = is_within && is_object && is_far(by) && path.starts_with(by);
            let is_output =
                |input: PathBuf| input == place || is_directory && input.starts_with(&place);
            if is_below || whole(path).is_some_and(is_output) {
                return Err(Error::usage(format!(
                    "{shown}: {} stands for it, too, so that each run would read what the one before \
                     it wrote; write it elsewhere, or name the inputs",
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
        let File { content, appendix, .. } = &self.contents[file];
        if appendix.is_some() { Ok(None) } else { content.row_groups(wanted) }
    }

    /// Returns the columns of an input that its directories have, and not the file.
    pub(crate) fn directory_columns(&self, file: usize) -> &[FieldRef] {
        self.contents[file].appendix.as_ref().map_or(&[], |appendix| appendix.fields())
    }

    /// Returns the content of an input.
    pub(crate) fn content(&self, file: usize) -> &dyn Content {
        &*self.contents[file].content
    }
}

/// Adds the number of lines that seem to precede the column names, if `error` is about a missing
/// column.
fn advised(error: Error, contents: &[File]) -> Error {
    match contents.iter().find_map(|file| file.about.preamble) {
        Some(lines) => error.behind_lines(lines),
        None => error,
    }
}

/// Returns the final schema of all files. A column of the type `Null`, in CSV files without rows,
/// is text.
fn agreed(schema: SchemaRef, files: &[FileInfo]) -> SchemaRef {
    if files.iter().any(|file| file.format != Format::Csv) {
        return schema;
    }
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => with_type(field, DataType::Utf8),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}
