//! The files that take the place of one file of a table.
//!
//! Names keep the order of the old names, and none is used twice: a reader with an old list of files
//! finds the old content or no file.
//!
//! ```text
//!  a.parquet --> a.v1.parquet --> a.v2.parquet --> a-00.v3.parquet, a-01.v3.parquet    if it grows too large
//! ```

use std::fs::{self, File};
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
    Appender, Compression, Destination, Encoder, OutputOptions, Part, make_within, open_like,
    takes_row_groups,
};

/// A file being written.
type Open = (Arc<dyn Encoder>, Box<dyn Appender>);

/// A sequence of new files, of which the last one is open.
pub(super) struct Outputs {
    folder: PathBuf,
    name: Versioned,
    schema: SchemaRef,
    sample: RecordBatch,
    options: OutputOptions,
    like: Option<Arc<RowGroups>>,
    open: Option<Open>,
    /// Bytes of the open file.
    bytes: u64,
    /// Rows and bytes of the finished files.
    finished: Vec<(u64, u64)>,
}

impl Outputs {
    /// Prepares files below `folder` that replace the file `names[ordinal]`, which has the row groups
    /// `like`.
    pub(super) fn open(
        folder: PathBuf,
        (names, ordinal): (&[PathBuf], usize),
        schema: &SchemaRef,
        sample: RecordBatch,
        mut options: OutputOptions,
        like: Option<Arc<RowGroups>>,
    ) -> Result<Self> {
        let mut schema = SchemaRef::clone(schema);
        if let Some(groups) = &like {
            let footer = groups.footer();
            options.bloom_filters = filtered(footer);
            options.compression = options.compression.or_else(|| Compression::of_footer(footer));
            if takes_row_groups(footer, &schema) {
                let pairs = facts::of_changed_rows(facts::kept(footer.schema(), &schema));
                schema = Arc::new(Schema::new_with_metadata(schema.fields().clone(), pairs));
            }
        }
        let like = like.filter(|groups| takes_row_groups(groups.footer(), &schema));
        // All row groups of a file have an index of pages, or none has.
        let has_index = |groups: &Arc<RowGroups>| {
            let metadata = groups.footer().metadata();
            metadata.num_row_groups() == 0 || metadata.offset_index().is_some()
        };
        options.page_index = like.as_ref().is_none_or(has_index);
        let name = Versioned::next(names, ordinal);
        make_within(&folder, &name.file(None))?;
        let (open, bytes, finished) = (None, 0, Vec::new());
        Ok(Self { folder, name, schema, sample, options, like, open, bytes, finished })
    }

    /// Returns the encoder of the open file.
    pub(super) fn encoder(&mut self) -> Result<Arc<dyn Encoder>> {
        Ok(Arc::clone(&self.file()?.0))
    }

    /// Writes a part, to a new file if the open one would become too large.
    pub(super) fn append(&mut self, part: Part) -> Result<()> {
        let bytes = part.bytes();
        let most = self.options.max_file_bytes.unwrap_or(u64::MAX);
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
                let path = self.folder.join(self.name.file(Some((self.finished.len(), WIDTH))));
                let like = self.like.as_ref().map(|groups| groups.footer());
                open_like(
                    &Destination::Within(path),
                    &self.schema,
                    &self.sample,
                    &self.options,
                    like,
                )?
            }
        };
        Ok(self.open.insert(open))
    }

    fn close(&mut self) -> Result<()> {
        if let Some((_, appender)) = self.open.take() {
            let written = appender.finish()?;
            self.finished.push((written.rows, written.bytes));
        }
        self.bytes = 0;
        Ok(())
    }

    /// Completes the files. A single file has no number.
    pub(super) fn finish(mut self) -> Result<Vec<AddedFile>> {
        self.close()?;
        let mut added = Vec::new();
        for (number, &(rows, bytes)) in self.finished.iter().enumerate() {
            let written = self.name.file(Some((number, WIDTH)));
            let path = match self.finished.len() {
                1 => self.name.file(None),
                _ => written.clone(),
            };
            let there = self.folder.join(&path);
            fs::rename(self.folder.join(written), &there)
                .map_err(|error| Error::within(&there, &error))?;
            added.push(AddedFile { columns: columns(&there)?, path, rows, bytes });
        }
        Ok(added)
    }

    /// Removes the files.
    pub(super) fn discard(mut self) -> Result<()> {
        self.close()?;
        for number in 0..self.finished.len() {
            let path = self.folder.join(self.name.file(Some((number, WIDTH))));
            fs::remove_file(&path).map_err(|error| Error::within(&path, &error))?;
        }
        Ok(())
    }
}

/// Digits of a number in names.
const WIDTH: usize = 4;

/// The name of a file, and how often it was replaced.
struct Versioned {
    directory: PathBuf,
    stem: String,
    version: u64,
    extension: String,
}

impl Versioned {
    /// Returns the name of the next version of the file `names[ordinal]`. Files of one name and of
    /// different versions get different new versions.
    fn next(names: &[PathBuf], ordinal: usize) -> Self {
        let mut next = Self::of(&names[ordinal]);
        let all = names.iter().map(|name| Self::of(name));
        let is_alike = |(_, other): &(usize, Self)| {
            (&other.directory, &other.stem) == (&next.directory, &next.stem)
        };
        let alike: Vec<(usize, u64)> =
            all.enumerate().filter(is_alike).map(|(place, other)| (place, other.version)).collect();
        let latest = alike.iter().map(|(_, version)| *version).max().unwrap_or(0);
        next.version = latest + 1;
        next.version += alike.iter().filter(|(place, _)| *place < ordinal).count() as u64;
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

    fn file(&self, number: Option<(usize, usize)>) -> PathBuf {
        let Self { stem, version, extension, .. } = self;
        let number = number.map(|(number, width)| format!("-{number:0width$}")).unwrap_or_default();
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
fn columns(path: &Path) -> Result<Vec<ColumnFigures>> {
    let file = File::open(path).map_err(|error| Error::within(path, &error))?;
    let footer = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
        .map_err(|error| Error::data(format!("{}: {error}", path.display())))?;
    let metadata = footer.metadata();
    let leaves = metadata.file_metadata().schema_descr().columns().iter().enumerate();
    let figures = leaves.map(|(leaf, column)| {
        let nulls = chunks(metadata, leaf).map(|chunk| chunk.statistics()?.null_count_opt());
        let (min, max) = range(&footer, leaf, usize::MAX).unwrap_or_default();
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
            let name = Versioned::next(&[PathBuf::from(name)], 0);
            let file = name.file(number.map(|number| (number, 2)));
            file.to_str().expect("UTF-8").to_owned()
        };
        assert_eq!(next("x/part-00000.parquet", None), "x/part-00000.v1.parquet");
        assert_eq!(next("part-00000.v1.parquet", None), "part-00000.v2.parquet");
        assert_eq!(next("part-00000.v2.parquet", Some(1)), "part-00000-01.v3.parquet");
        assert_eq!(next("a.very.parquet", None), "a.very.v1.parquet");
        let again = ["a.parquet", "a.v1.parquet", "b.parquet"].map(PathBuf::from);
        let versions = [0, 1, 2].map(|file| Versioned::next(&again, file).version);
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
