//! The formats of change logs: their names, the columns that each format adds, and meanings of
//! operations given by the caller.

use std::str::FromStr;

use arrow_schema::Schema;

use crate::error::{Error, Result};
use crate::settings::{Preset, Setting};

/// The columns of an Iceberg changelog beside the operation: the position of a change's snapshot in
/// the log, and the snapshot's id.
pub(crate) const ICEBERG: [&str; 2] = ["_change_ordinal", "_commit_snapshot_id"];

impl Preset {
    /// The operation columns of events flattened by Debezium's ExtractNewRecordState.
    pub(crate) const FLATTENED: [&str; 2] = ["__op", "__deleted"];

    /// Returns the default columns of the operation, best first; `op_column` overrides them.
    pub(crate) fn op_columns(self) -> &'static [&'static str] {
        match self {
            Self::Generic | Self::Auto => &[],
            Self::Debezium | Self::Cockroach => &["op"],
            Self::DeltaCdf | Self::Iceberg => &["_change_type"],
            Self::Wal2json => &["action", "kind"],
            Self::Paimon => &["_ROW_KIND", "rowkind", "_VALUE_KIND"],
            Self::Maxwell | Self::Canal => &["type"],
            Self::GoldenGate => &["op_type"],
            Self::SqlServer => &["__$operation"],
            Self::Dms => &["Op"],
            Self::Snowflake => &["METADATA$ACTION"],
            Self::Hudi => &["_hoodie_operation", "_hoodie_is_deleted"],
            Self::Airbyte => &["_ab_cdc_deleted_at"],
            Self::Qlik => &["header__change_oper", "header__operation"],
        }
    }

    /// Returns true if the format adds this column to the table's columns.
    pub(crate) fn adds(self, name: &str, schema: &Schema) -> bool {
        match self {
            Self::DeltaCdf => matches!(name, "_commit_version" | "_commit_timestamp"),
            Self::Iceberg => ICEBERG.contains(&name),
            // Data files of a Paimon table repeat the key columns under this prefix.
            Self::Paimon => match name.strip_prefix("_KEY_") {
                Some(of) => schema.column_with_name(of).is_some(),
                None => matches!(name, "_SEQUENCE_NUMBER" | "_LEVEL"),
            },
            // Flattening adds fields with this prefix; columns of the table never get the prefix.
            Self::Debezium => name.starts_with("__"),
            Self::Snowflake => name.starts_with("METADATA$"),
            Self::SqlServer => name.starts_with("__$"),
            Self::GoldenGate => {
                matches!(name, "table" | "op_ts" | "current_ts" | "pos" | "primary_keys" | "tokens")
            }
            Self::Hudi => name.starts_with("_hoodie_"),
            Self::Airbyte => name.starts_with("_ab_cdc_") || name.starts_with("_airbyte_"),
            Self::Qlik => name.starts_with("header__"),
            Self::Generic
            | Self::Auto
            | Self::Wal2json
            | Self::Maxwell
            | Self::Canal
            | Self::Cockroach
            | Self::Dms => false,
        }
    }

    /// Returns true if a column of this name holds the operation, or is added by the format.
    pub(crate) fn reads(self, name: &str) -> bool {
        let reads = |preset: Self| {
            preset.op_columns().contains(&name) || preset.adds(name, &Schema::empty())
        };
        match self {
            Self::Auto => Self::ALL.into_iter().any(reads),
            preset => reads(preset),
        }
    }

    /// Returns true if the producer writes JSON whose rows must be extracted.
    pub(crate) fn is_raw(self) -> bool {
        matches!(
            self,
            Self::Auto
                | Self::Debezium
                | Self::Wal2json
                | Self::Maxwell
                | Self::Canal
                | Self::GoldenGate
                | Self::Cockroach
        )
    }

    /// Returns the preset of plain rows with these columns, and the evidence.
    pub(crate) fn told_by(schema: &Schema) -> Result<(Self, String)> {
        Self::of_columns(schema).ok_or_else(|| {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            Error::usage(format!(
                "{} auto: the first records are of no format that it knows; name it, or the column of \
                 the operations with {} (the columns are {})",
                Setting::OpPreset,
                Setting::OpColumn,
                names.collect::<Vec<_>>().join(", ")
            ))
        })
    }

    fn of_columns(schema: &Schema) -> Option<(Self, String)> {
        let has = |name: &str| schema.index_of(name).is_ok();
        let nested = |name: &str| {
            schema.field_with_name(name).is_ok_and(|field| field.data_type().is_nested())
        };
        if nested("payload") || has("op") && (nested("after") || nested("before")) {
            return Some((Self::Debezium, "`op`, `after` and `before`".to_owned()));
        }
        if let Some(name) = Self::FLATTENED.into_iter().find(|name| has(name)) {
            return Some((Self::Debezium, format!("flattened, `{name}`")));
        }
        // Delta's operation column has the same name.
        if let Some(name) = ICEBERG.into_iter().find(|name| has(name) && has("_change_type")) {
            return Some((Self::Iceberg, format!("`_change_type` and `{name}`")));
        }
        if has("op_type") && has("op_ts") {
            return Some((Self::GoldenGate, "`op_type` and `op_ts`".to_owned()));
        }
        let plain = [
            Self::SqlServer,
            Self::DeltaCdf,
            Self::Paimon,
            Self::Snowflake,
            Self::Hudi,
            Self::Airbyte,
            Self::Qlik,
            Self::Dms,
        ];
        let found = plain.into_iter().find_map(|preset| {
            let name = preset.op_columns().iter().find(|name| has(name))?;
            Some((preset, format!("`{name}`")))
        });
        let flat = ["lsn", "nextlsn", "xid", "schema"].into_iter().find(|name| has(name));
        found.or_else(|| match flat {
            Some(other) if has("action") => {
                Some((Self::Wal2json, format!("flattened, `action` and `{other}`")))
            }
            _ => None,
        })
    }
}

/// The meaning of a word in the operation column, given by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// The row after the change: an insert, or the new side of an update
    Insert,
    /// The same as `Insert`
    Update,
    /// The row is gone
    Delete,
    /// A row from before the stream began: every other change takes precedence
    Snapshot,
    /// No change: the old side of an update, a marker
    Ignore,
}

/// Meanings of the words in an operation column: `I=insert,REFRESH=snapshot,=insert`. The empty
/// word stands for null, `*` for any other value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpMap(pub Vec<(String, Meaning)>);

/// The word for every value without a meaning of its own.
const ANY: &str = "*";

impl OpMap {
    /// Returns the given meaning of `word`; the empty word stands for null.
    pub(crate) fn meaning(&self, word: &str) -> Option<Meaning> {
        let of = |other: &str| {
            let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(other));
            found.map(|(_, meaning)| *meaning)
        };
        of(word).or_else(|| of(ANY).filter(|_| !word.is_empty()))
    }

    /// Returns the meaning of values without a meaning of their own.
    pub(crate) fn any(&self) -> Option<Meaning> {
        self.meaning(ANY)
    }

    /// Returns true if the map only separates null from other values; the values are then no words.
    pub(crate) fn is_of_presence(&self) -> bool {
        self.any().is_some() && self.0.iter().all(|(word, _)| word.is_empty() || word == ANY)
    }
}

impl FromStr for OpMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words: Vec<(String, Meaning)> = Vec::new();
        for part in text.split(',') {
            let (word, meaning) = part
                .rsplit_once('=')
                .ok_or_else(|| format!("{part:?} is no WORD=MEANING, such as I=insert"))?;
            let meaning = match meaning.trim().to_ascii_lowercase().as_str() {
                "insert" | "upsert" => Meaning::Insert,
                "update" => Meaning::Update,
                "delete" => Meaning::Delete,
                "snapshot" => Meaning::Snapshot,
                "ignore" => Meaning::Ignore,
                other => {
                    return Err(format!(
                        "{other:?} in {part:?} is none of insert, update, delete, snapshot, ignore"
                    ));
                }
            };
            let word = word.trim().to_owned();
            if words.iter().any(|(known, _)| known.eq_ignore_ascii_case(&word)) {
                return Err(format!("{word:?} has two meanings; case does not matter"));
            }
            words.push((word, meaning));
        }
        Ok(Self(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_parsed_by_name() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse::<Preset>().unwrap(), preset);
            assert!(!preset.about().is_empty() && !preset.about().starts_with(' '));
        }
        assert!("debezum".parse::<Preset>().unwrap_err().to_string().contains("debezium"));
    }

    #[test]
    fn words_are_mapped_as_they_are_said() {
        let map: OpMap = "I=insert, REFRESH = snapshot,a=b=delete,=insert".parse().unwrap();
        let said = [
            ("I", Meaning::Insert),
            ("REFRESH", Meaning::Snapshot),
            ("a=b", Meaning::Delete),
            ("", Meaning::Insert),
        ];
        assert_eq!(map.0, said.map(|(word, meaning)| (word.to_owned(), meaning)));
        assert_eq!(map.meaning("i"), Some(Meaning::Insert));
        assert_eq!((map.meaning("x"), map.any()), (None, None));
        let map: OpMap = "=delete,*=insert".parse().unwrap();
        assert_eq!(
            [map.meaning(""), map.meaning("d")],
            [Meaning::Delete, Meaning::Insert].map(Some)
        );
        assert!(
            map.is_of_presence() && !"D=delete,*=insert".parse::<OpMap>().unwrap().is_of_presence()
        );
        for text in ["", "I", "I=inserted", "I=insert,i=delete"] {
            assert!(text.parse::<OpMap>().is_err(), "{text}");
        }
    }
}
