//! The files that take the place of one file of a table.
//!
//! Names keep the order of the old names, and none is used twice: a reader with an old list of files
//! finds the old content or no file.
//!
//! ```text
//!  a.parquet --> a.v1.parquet --> a.v2.parquet --> a-0000.v3.parquet, a-0001.v3.parquet    if it grows too large
//! ```

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::RowGroupMetaData;

use super::figures::{AddedFile, ColumnFigures};
use crate::error::{Error, Result};
use crate::facts;
use crate::input::{Footer, RowGroups};
use crate::inspect::{chunks, range};
use crate::output::{
    Appender, Compression, Destination, Encoder, OutputOptions, Part, Written, make_within,
    open_like, take_over, takes_row_groups,
};

/// A file being written.
type Open = (Arc<dyn Encoder>, Box<dyn Appender>);

/// A sequence of new files, of which the last one is open. Dropping the value removes the files.
pub(super) struct Outputs {
    folder: PathBuf,
    name: Versioned,
    schema: SchemaRef,
    sample: RecordBatch,
    options: OutputOptions,
    like: Arc<RowGroups>,
    /// The metadata of the old file, unless it is an object.
    old: Option<Metadata>,
    open: Option<Open>,
    /// Whether the row groups of the old file can stand beside new ones.
    pub(super) takes_row_groups: bool,
    /// Bytes of the open file.
    bytes: u64,
    /// Rows and bytes of the finished files.
    finished: Vec<Written>,
}

impl Outputs {
    /// Prepares files below `folder` that replace the file with the row groups `like` and the metadata
    /// `old`.
    pub(super) fn open(
        folder: &Path,
        name: Versioned,
        schema: &SchemaRef,
        sample: RecordBatch,
        mut options: OutputOptions,
        like: Arc<RowGroups>,
        old: Option<Metadata>,
    ) -> Result<Self> {
        let (mut schema, footer) = (SchemaRef::clone(schema), &like.footer);
        options.bloom_filters = filtered(footer);
        options.write.compression =
            options.write.compression.or_else(|| Compression::of_footer(footer));
        let takes = takes_row_groups(footer, &schema);
        if takes {
            let pairs = facts::of_changed_rows(facts::kept(footer.schema(), &schema));
            schema = Arc::new(Schema::new_with_metadata(schema.fields().clone(), pairs));
        }
        // All row groups of a file have an index of pages, or none has.
        let metadata = footer.metadata();
        options.page_index =
            !takes || metadata.num_row_groups() == 0 || metadata.offset_index().is_some();
        make_within(folder, &name.file(None))?;
        Ok(Self {
            folder: folder.to_owned(),
            name,
            schema,
            sample,
            options,
            like,
            old,
            open: None,
            takes_row_groups: takes,
            bytes: 0,
            finished: Vec::new(),
        })
    }

    /// Returns the encoder of the open file.
    pub(super) fn encoder(&mut self) -> Result<Arc<dyn Encoder>> {
        Ok(Arc::clone(&self.file()?.0))
    }

    /// Copies a row group of the old file.
    pub(super) fn copy(&mut self, group: usize) -> Result<()> {
        self.append(Part::of_row_group(&self.like, group))
    }

    /// Writes a part, to a new file if the open one would become too large.
    pub(super) fn append(&mut self, part: Part) -> Result<()> {
        let bytes = part.bytes();
        let most = self.options.write.max_file_bytes.unwrap_or(u64::MAX);
        if self.bytes > 0 && self.bytes.saturating_add(bytes) > most {
            self.close()?;
        }
        self.bytes += bytes;
        self.file()?.1.append(part)
    }

    fn file(&mut self) -> Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let path = Destination::Within(self.numbered(self.finished.len()));
                let like = self.takes_row_groups.then(|| &self.like.footer);
                open_like(&path, &self.schema, &self.sample, &self.options, like)?
            }
        };
        Ok(self.open.insert(open))
    }

    fn numbered(&self, number: usize) -> PathBuf {
        self.folder.join(self.name.file(Some(number)))
    }

    fn close(&mut self) -> Result<()> {
        if let Some((_, appender)) = self.open.take() {
            self.finished.push(appender.finish()?);
        }
        self.bytes = 0;
        Ok(())
    }

    /// Completes the files. A single file has no number.
    pub(super) fn finish(mut self) -> Result<Vec<AddedFile>> {
        self.close()?;
        let (mut added, count) = (Vec::new(), self.finished.len());
        for (number, Written { rows, bytes }) in self.finished.iter().copied().enumerate() {
            let path = self.name.file((count > 1).then_some(number));
            let there = self.folder.join(&path);
            let failed = |error| Error::within(&there, &error);
            fs::rename(self.numbered(number), &there).map_err(failed)?;
            let file = File::open(&there).map_err(failed)?;
            if let Some(old) = &self.old {
                take_over(&file, old, &there)?;
            }
            let columns = columns(&file, &there)?;
            added.push(AddedFile { path, rows, bytes, columns, partition: Vec::new() });
        }
        self.finished.clear();
        Ok(added)
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        let unfinished = usize::from(self.open.take().is_some());
        for number in 0..self.finished.len() + unfinished {
            // The directory is removed as well if the job fails.
            let _ = fs::remove_file(self.numbered(number));
        }
    }
}

/// Digits of a number in names.
const WIDTH: usize = 4;

/// The name of a file, and how often it was replaced.
pub(super) struct Versioned {
    directory: PathBuf,
    stem: String,
    version: u64,
    extension: String,
}

impl Versioned {
    /// Returns the name of the file in the place of `names[ordinal]`: of `version`, or else of the next
    /// one. Files of one name and of different versions get different new versions.
    pub(super) fn next(names: &[PathBuf], ordinal: usize, version: Option<u64>) -> Self {
        Self::beside(names, &names[ordinal], &names[..ordinal], version)
    }

    /// Returns the name of a file that is called `name` and stands beside `names`, after those of
    /// `before`.
    pub(super) fn beside(
        names: &[PathBuf],
        name: &Path,
        before: &[PathBuf],
        version: Option<u64>,
    ) -> Self {
        let mut next = Self::of(name);
        let alike = |name: &PathBuf| {
            let other = Self::of(name);
            let is_alike = (&other.directory, &other.stem) == (&next.directory, &next.stem);
            is_alike.then_some(other.version)
        };
        let latest = names.iter().filter_map(alike).max().unwrap_or(0);
        let before = before.iter().filter_map(alike).count();
        let first = version.unwrap_or(latest.saturating_add(1));
        next.version = first.saturating_add(before as u64);
        next
    }

    /// Parses a name.
    fn of(path: &Path) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        let (name, extension) = (text(path.file_stem()), text(path.extension()));
        let found = name
            .rsplit_once(".v")
            .and_then(|(stem, version)| Some((stem.to_owned(), version.parse::<u64>().ok()?)));
        let (stem, version) = found.unwrap_or((name, 0));
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Self { directory, stem, version, extension }
    }

    fn file(&self, number: Option<usize>) -> PathBuf {
        let Self { stem, version, extension, .. } = self;
        let number = number.map(|number| format!("-{number:0WIDTH$}")).unwrap_or_default();
        self.directory.join(format!("{stem}{number}.v{version}.{extension}"))
    }
}

/// Returns the paths of the columns with Bloom filters.
fn filtered(footer: &Footer) -> Vec<String> {
    let groups = footer.metadata().row_groups().iter();
    let columns = groups.flat_map(RowGroupMetaData::columns);
    let mut names: Vec<String> = columns
        .filter(|column| column.bloom_filter_offset().is_some())
        .map(|column| column.column_path().string())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Reads the figures of the columns from the footer of a new file.
fn columns(file: &File, path: &Path) -> Result<Vec<ColumnFigures>> {
    let footer = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())
        .map_err(|error| Error::data(format!("{}: {error}", path.display())))?;
    let metadata = footer.metadata();
    let leaves = metadata.file_metadata().schema_descr().columns().iter().enumerate();
    let figures = leaves.map(|(leaf, column)| {
        let nulls = chunks(metadata, leaf).map(|chunk| chunk.statistics()?.null_count_opt());
        let (min, max) = range(&footer, leaf).unwrap_or_default();
        let [min, max] = [min, max].map(|bound| bound.map(|(text, _)| text));
        ColumnFigures { name: column.path().string(), nulls: nulls.sum(), min, max }
    });
    Ok(figures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_are_new() {
        let next = |name: &str, number: Option<usize>| {
            let name = Versioned::next(&[PathBuf::from(name)], 0, None);
            let file = name.file(number);
            file.to_str().expect("UTF-8").to_owned()
        };
        assert_eq!(next("x/part-00000.parquet", None), "x/part-00000.v1.parquet");
        assert_eq!(next("part-00000.v1.parquet", None), "part-00000.v2.parquet");
        assert_eq!(next("part-00000.v2.parquet", Some(1)), "part-00000-0001.v3.parquet");
        assert_eq!(next("a.very.parquet", None), "a.very.v1.parquet");
        let again = ["a.parquet", "a.v1.parquet", "b.parquet"].map(PathBuf::from);
        let versions = [0, 1, 2].map(|file| Versioned::next(&again, file, None).version);
        assert_eq!(versions, [2, 3, 1], "the first file was written again by its first writer");
        let names = ["a-00.v3.parquet", "a-01.v2.parquet", "a-01-00.v3.parquet", "b.v1.parquet"];
        let mut sorted = names;
        sorted.sort_unstable();
        assert_eq!(
            sorted,
            ["a-00.v3.parquet", "a-01-00.v3.parquet", "a-01.v2.parquet", "b.v1.parquet"]
        );
    }
}
