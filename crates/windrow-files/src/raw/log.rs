//! A log: who wrote it, what the caller says of it, and what its records declare.

use std::collections::HashMap;

use arrow_schema::DataType;

use super::decimals::LastDecimals;
use super::declared::Declared;
use super::tables::Tables;
use crate::error::Result;
use crate::preset::{Meaning, OpMap};

/// Who wrote the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Producer {
    /// Of either format, or flattened.
    Wal2json,
    Maxwell,
    Canal,
    /// With rows as text, or of tables some of which are not wanted.
    Debezium,
    GoldenGate,
    Cockroach,
    /// No log at all: records in MongoDB's extended JSON.
    Extended,
}

/// What the caller says of a log beside its preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The tables that are wanted: names and patterns.
    pub(crate) tables: Vec<String>,
    /// What words of operations mean.
    pub(crate) words: OpMap,
    /// The column of operations, if not that of the format.
    pub(crate) op_column: Option<String>,
    /// The columns of the key.
    pub(crate) key: Vec<String>,
}

impl Asked {
    /// Whether events as Debezium has them are of another producer, who may leave out columns.
    pub(super) fn is_foreign(&self) -> bool {
        let is_known = |word: &str| DEBEZIUM.iter().any(|known| known.eq_ignore_ascii_case(word));
        let rows = [Meaning::Insert, Meaning::Update];
        let mut words = self.words.0.iter().filter(|(_, meaning)| rows.contains(meaning));
        self.op_column.as_ref().is_some_and(|name| name != "op")
            || words.any(|(word, _)| !is_known(word))
    }
}

/// The words of Debezium, and of those who read its events.
pub(super) const DEBEZIUM: [&str; 6] = ["c", "r", "u", "d", "true", "false"];

/// How records are turned into events.
pub(crate) struct Raw {
    pub(super) producer: Producer,
    pub(super) asked: Asked,
    pub(super) tables: Tables,
    pub(super) declared: Declared,
    pub(super) decimals: LastDecimals,
}

impl Raw {
    pub(super) fn new(producer: Producer, asked: &Asked) -> Self {
        let (tables, asked) = (Tables::new(asked.tables.clone()), asked.clone());
        Self {
            producer,
            asked,
            tables,
            declared: Declared::new(),
            decimals: LastDecimals::default(),
        }
    }

    /// Of records in MongoDB's extended JSON, which are no log.
    pub(crate) fn extended() -> Self {
        Self::new(Producer::Extended, &Asked::default())
    }

    /// The types of the row's columns, as far as the records that were read declare them.
    pub(crate) fn declared(&self) -> HashMap<String, DataType> {
        self.declared.types()
    }

    /// The types of all inputs are known.
    pub(crate) fn settle(&self) {
        self.declared.settle();
    }

    /// Refuses a table that is wanted and was not there, once all records were.
    pub(crate) fn check(&self) -> Result<()> {
        self.tables.check()
    }

    /// What the caller says of a word of operations.
    pub(super) fn said(&self, word: &str) -> Option<Meaning> {
        self.asked.words.meaning(word)
    }
}
