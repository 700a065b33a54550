//! The formats of change logs by name, and the columns that each of them adds.

use std::str::FromStr;

use arrow::datatypes::Schema;

use super::COMMIT;
use crate::error::{Error, Result};

/// A format of change logs, as named by `--op-preset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// Plain rows and an operation column in one of the usual spellings
    #[default]
    Generic,
    /// Debezium change events: the row in `after`, of a delete in `before`
    Debezium,
    /// Delta Lake change data feed: plain rows and `_change_type`
    DeltaCdf,
    /// wal2json rows flattened to plain columns, and `action` (I U D)
    Wal2json,
    /// Apache Paimon changelog: plain rows and a row kind (+I -U +U -D, or 0 to 3)
    Paimon,
}

impl Preset {
    /// The columns that hold the operation when `--op-column` does not say, best first.
    pub(super) fn op_columns(self) -> &'static [&'static str] {
        match self {
            Self::Generic => &[],
            Self::Debezium => &["op"],
            Self::DeltaCdf => &["_change_type"],
            Self::Wal2json => &["action", "kind"],
            Self::Paimon => &["_ROW_KIND", "rowkind", "_VALUE_KIND"],
        }
    }

    /// Whether the format itself adds this column to the table's.
    pub(super) fn adds(self, name: &str, schema: &Schema) -> bool {
        match self {
            Self::DeltaCdf => matches!(name, COMMIT | "_commit_timestamp"),
            // Data files of a Paimon table repeat the key's columns under this prefix.
            Self::Paimon => match name.strip_prefix("_KEY_") {
                Some(of) => schema.column_with_name(of).is_some(),
                None => matches!(name, "_SEQUENCE_NUMBER" | "_LEVEL"),
            },
            Self::Generic | Self::Debezium | Self::Wal2json => false,
        }
    }

    /// Every preset.
    pub const ALL: [Self; 5] =
        [Self::Generic, Self::Debezium, Self::DeltaCdf, Self::Wal2json, Self::Paimon];

    /// Its name, as it is parsed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Debezium => "debezium",
            Self::DeltaCdf => "delta-cdf",
            Self::Wal2json => "wal2json",
            Self::Paimon => "paimon",
        }
    }

    /// What it reads, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Generic => "Plain rows and an operation column in one of the usual spellings",
            Self::Debezium => "Debezium change events: the row in `after`, of a delete in `before`",
            Self::DeltaCdf => "Delta Lake change data feed: plain rows and `_change_type`",
            Self::Wal2json => "wal2json rows flattened to plain columns, and `action` (I U D)",
            Self::Paimon => {
                "Apache Paimon changelog: plain rows and a row kind (+I -U +U -D, or 0 to 3)"
            }
        }
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::usage(format!("{text:?} is none of the presets: {names}"))
        })
    }
}
