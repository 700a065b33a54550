//! Kinds of settings: what a value is, and how text stands for it.

use super::choices::Choice;

/// The kind of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// True or false, and false unless set.
    Off,
    /// True or false, and true unless set.
    On,
    /// One of several names.
    Choice(&'static [Choice]),
    /// A number from the first to the second.
    Number(u64, u64),
    /// Bytes: `4096`, `256MiB`.
    Size,
    /// A memory limit: bytes, a share, or `unlimited`.
    Limit,
    /// The name of a column.
    Column,
    /// Names of columns.
    Names,
    /// Columns of an order: `a,b:desc`.
    Columns,
    /// Columns of an order, with kinds of text: `a:lsn`.
    Order,
    /// A condition on rows.
    Filter,
    /// Names and types of columns: `id:int64`.
    Schema,
    /// An encoding of text.
    Charset,
    /// A codec, with its level.
    Compression,
    /// Words with their meanings: `I=insert`.
    Words,
    /// A character; the quote may be `none`.
    Character,
    /// A value of a column, as text.
    Value,
    /// Values of columns, as text; set for each.
    Values,
    /// Names; set for each.
    Texts,
    /// A file or a directory.
    Path,
    /// Directories; set for each.
    Paths,
    /// A name and a value, `region=eu-west-1`; set for each.
    Pairs,
}

impl Kind {
    /// Returns true if the setting holds all values that are set, and not the last.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Values | Self::Texts | Self::Paths | Self::Pairs)
    }
}
