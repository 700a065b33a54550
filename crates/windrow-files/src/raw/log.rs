//! A log: who wrote it, what the caller says of it, and what its records declare.

use std::collections::HashMap;

use arrow_schema::DataType;

use super::decimals::LastDecimals;
use super::declared::Declared;
use super::event::What;
use super::tables::Tables;
use crate::error::Result;
use crate::preset::{Meaning, OpMap};
use crate::settings::{Preset, Setting};

/// Settings of the caller in addition to the preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Names and patterns of the wanted tables.
    pub(crate) tables: Vec<String>,
    /// Meanings of operation words.
    pub(crate) words: OpMap,
    /// The column of operations, if it differs from the format's.
    pub(crate) op_column: Option<String>,
    /// The columns of the key.
    pub(crate) key: Vec<String>,
}

impl Asked {
    /// Returns true if a producer other than Debezium writes Debezium's event form; such events may
    /// lack columns.
    pub(super) fn is_foreign(&self) -> bool {
        let is_known = |word: &str| DEBEZIUM.iter().any(|known| known.eq_ignore_ascii_case(word));
        let rows = [Meaning::Insert, Meaning::Update];
        let mut words = self.words.0.iter().filter(|(_, meaning)| rows.contains(meaning));
        self.op_column.as_ref().is_some_and(|name| name != "op")
            || words.any(|(word, _)| !is_known(word))
    }
}

/// The operation words of Debezium and of tools in its ecosystem.
pub(super) const DEBEZIUM: [&str; 6] = ["c", "r", "u", "d", "true", "false"];

/// Converts records to events.
pub(crate) struct Raw {
    /// The format of the records. `None`: MongoDB's extended JSON, which is no log.
    pub(super) format: Option<Preset>,
    pub(super) asked: Asked,
    pub(super) tables: Tables,
    pub(super) declared: Declared,
    pub(super) decimals: LastDecimals,
}

impl Raw {
    pub(super) fn new(format: Option<Preset>, asked: &Asked) -> Self {
        let (tables, asked) = (Tables::new(asked.tables.clone()), asked.clone());
        let (declared, decimals) = Default::default();
        Self { format, asked, tables, declared, decimals }
    }

    /// Returns a converter for records in MongoDB's extended JSON, which are no log.
    pub(crate) fn extended() -> Self {
        Self::new(None, &Asked::default())
    }

    /// Returns the column types declared by the records read so far.
    pub(crate) fn declared(&self) -> HashMap<String, DataType> {
        self.declared.types()
    }

    /// Stops collecting declared types, once the types of all inputs are known.
    pub(crate) fn settle(&self) {
        self.declared.settle();
    }

    /// Returns an error if a wanted table had no record. To be called after the last record.
    pub(crate) fn check(&self) -> Result<()> {
        self.tables.check()
    }

    /// Returns the caller's meaning of an operation word.
    pub(super) fn said(&self, word: &str) -> Option<Meaning> {
        self.asked.words.meaning(word)
    }

    /// Returns the effect of an operation word in `column`. `known` has groups of the words that
    /// `producer` writes.
    pub(super) fn what(
        &self,
        word: &str,
        column: &str,
        producer: &str,
        known: &[(&str, What)],
    ) -> Result<What, String> {
        let is_in = |words: &str| words.split(' ').any(|known| known.eq_ignore_ascii_case(word));
        let known = || known.iter().find(|(words, _)| is_in(words)).map(|(_, what)| *what);
        self.said(word).map(Some).or_else(known).ok_or_else(|| {
            let map = Setting::OpMap;
            format!("`{column}` is {word:?}, which {producer} does not write; say what it means with {map}")
        })
    }
}
