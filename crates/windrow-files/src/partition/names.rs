//! File names of partitions.
//!
//! ```text
//!  numbered   part-00000.parquet   part-00001.parquet ...       five digits, or as many as needed
//!  hive       country=nl/city=Den%20Haag/part-0.parquet         nulls: __HIVE_DEFAULT_PARTITION__
//! ```
//!
//! Invariant: different partitions have different names. A hive name percent-encodes every byte,
//! except letters, digits, `-_.~`, and bytes of characters outside of ASCII. If a value equals the
//! name for nulls, its first byte is encoded. An instant in a zone is written with its offset, or
//! in UTC if the offset has seconds.

use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};

use crate::equality::plain_type;
use crate::error::{Error, Result};
use crate::input::HIVE_NULL as NULL;
use crate::offset::first_with_seconds;

/// Maximum bytes of a name on common file systems.
const LONGEST: usize = 255;

/// The file of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Number of a numbered partition.
    pub(crate) number: Option<u32>,
    /// Path within the output directory.
    pub(crate) path: PathBuf,
}

/// Rule for file names.
#[derive(Clone, Debug)]
pub(crate) enum Names {
    /// By the number of the partition, out of `partitions`.
    Numbered { partitions: u32 },
    /// By values of these columns.
    Hive { columns: Vec<String> },
}

impl Names {
    /// Returns the file of the partition with this number.
    pub(crate) fn numbered(&self, number: u32, extension: &str) -> Name {
        numbered(number, self.partitions().unwrap_or(1), extension)
    }

    /// Returns the file of the partition with the key in `row` of `keys`.
    ///
    /// # Errors
    /// `Data` if a value has no textual form, or its text is too long for a name.
    pub(crate) fn of(&self, keys: &RecordBatch, row: usize, extension: &str) -> Result<Name> {
        let Self::Hive { columns } = self else {
            let numbers: &UInt32Array = keys.column(0).as_primitive::<UInt32Type>();
            return Ok(self.numbered(numbers.value(row), extension));
        };
        let mut path = PathBuf::new();
        for (name, values) in columns.iter().zip(keys.columns()) {
            let value = text(values, row).map_err(|error| {
                Error::data(format!("`hive`: a value of {name:?} has no text: {error}"))
            })?;
            let directory =
                format!("{}={}", encode(name), value.map_or(NULL.into(), |v| value_name(&v)));
            if directory.len() > LONGEST {
                return Err(Error::data(format!(
                    "`hive`: a value of {name:?} makes a name of {} bytes, and names have at most \
                     {LONGEST}: {}...; use `into`",
                    directory.len(),
                    directory.chars().take(60).collect::<String>(),
                )));
            }
            path.push(directory);
        }
        path.push(format!("part-0.{extension}"));
        Ok(Name { number: None, path })
    }

    /// Returns the number of files, if it does not depend on the rows.
    pub(crate) fn partitions(&self) -> Option<u32> {
        match self {
            Self::Numbered { partitions, .. } => Some(*partitions),
            Self::Hive { .. } => None,
        }
    }
}

/// Returns the name of file `number` out of `files` or more. Numbers have five digits, or as many
/// as the last of `files` numbers.
pub(crate) fn numbered(number: u32, files: u32, extension: &str) -> Name {
    let digits = files.saturating_sub(1).to_string().len().max(5);
    let path = format!("part-{number:0digits$}.{extension}").into();
    Name { number: Some(number), path }
}

/// Returns a value as text; `None` for a null.
pub(crate) fn text(
    values: &ArrayRef,
    row: usize,
) -> Result<Option<String>, arrow_schema::ArrowError> {
    let mut value = values.slice(row, 1);
    if value.logical_null_count() > 0 {
        return Ok(None);
    }
    let kind = plain_type(values.data_type());
    if let DataType::Timestamp(unit, Some(_)) = kind {
        value = cast(&value, kind)?;
        if first_with_seconds(&value).is_some() {
            value = cast(&value, &DataType::Timestamp(*unit, Some("UTC".into())))?;
        }
    }
    let options = FormatOptions::new().with_display_error(false);
    let formatter = ArrayFormatter::try_new(value.as_ref(), &options)?;
    let text = formatter.value(0).try_to_string()?;
    // The formatter's text for a duration without a textual form.
    if text == "<invalid>" && !kind.is_string() {
        return Err(ArrowError::CastError("out of range".into()));
    }
    Ok(Some(text))
}

fn value_name(value: &str) -> String {
    match value.strip_prefix('_') {
        Some(rest) if value == NULL => format!("%5F{rest}"),
        _ => encode(value),
    }
}

fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => encoded.push(c),
            _ if c.is_ascii() => encoded.push_str(&format!("%{:02X}", c as u32)),
            _ => encoded.push(c),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Date32Array, StringArray, TimestampSecondArray};

    use super::*;

    fn hive(column: ArrayRef, row: usize) -> Result<Name> {
        let names = Names::Hive { columns: vec!["a b".into()] };
        names.of(&RecordBatch::try_from_iter([("a b", column)]).expect("a column"), row, "csv")
    }

    #[test]
    fn values_become_directories() {
        let texts = [
            (Some("nl"), "nl"),
            (Some("Den Haag"), "Den%20Haag"),
            (Some("a/b=c%\n"), "a%2Fb%3Dc%25%0A"),
            (Some("z\u{fc}rich"), "z\u{fc}rich"),
            (Some(".."), ".."),
            (Some(""), ""),
            (Some(NULL), "%5F_HIVE_DEFAULT_PARTITION__"),
            (None, NULL),
        ];
        let values: ArrayRef = Arc::new(texts.iter().map(|(v, _)| *v).collect::<StringArray>());
        for (row, (_, expected)) in texts.iter().enumerate() {
            let name = hive(Arc::clone(&values), row).expect("a name");
            assert_eq!(name.path, PathBuf::from(format!("a%20b={expected}/part-0.csv")));
        }
        let text = |column: ArrayRef| hive(column, 0).expect("a name").path;
        assert_eq!(
            text(Arc::new(Date32Array::from(vec![1]))).iter().next().unwrap(),
            "a%20b=1970-01-02"
        );
        assert_eq!(
            text(Arc::new(BooleanArray::from(vec![true]))).iter().next().unwrap(),
            "a%20b=true"
        );
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(300)]));
        assert!(hive(long, 0).is_err());
    }

    #[test]
    fn instants_of_offsets_with_seconds_have_names_of_their_own() {
        let instants = TimestampSecondArray::from_iter_values(-3_645_237_220..-3_645_237_196);
        let instants: ArrayRef = Arc::new(instants.with_timezone("Asia/Kolkata"));
        let kind = instants.data_type().clone();
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(kind));
        for column in [cast(&instants, &dictionary).expect("encoded"), instants] {
            let names: HashSet<_> =
                (0..24).map(|row| hive(column.clone(), row).expect("a name").path).collect();
            assert_eq!(names.len(), 24);
            assert!(names.contains(Path::new("a%20b=1854-06-27T18%3A06%3A31Z/part-0.csv")));
        }
        let now = TimestampSecondArray::from(vec![0]).with_timezone("Asia/Kolkata");
        let name = hive(Arc::new(now), 0).expect("a name");
        assert_eq!(name.path, PathBuf::from("a%20b=1970-01-01T05%3A30%3A00%2B05%3A30/part-0.csv"));
    }

    #[test]
    fn numbers_have_five_digits_or_more() {
        let name = |partitions, number| {
            let names = Names::Numbered { partitions };
            names.numbered(number, "parquet").path.display().to_string()
        };
        assert_eq!(name(1, 0), "part-00000.parquet");
        assert_eq!(name(100_000, 99_999), "part-99999.parquet");
        assert_eq!(name(100_001, 7), "part-000007.parquet");
    }
}
