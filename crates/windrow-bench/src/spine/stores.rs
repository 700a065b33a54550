//! The rivals of `spine` that keep tables with a key.

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, TableDefinition};

use super::Store;
use crate::Result;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("table");

/// redb in memory, a transaction a call.
pub(super) struct Redb(Database);

impl Redb {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(Database::builder().create_with_backend(InMemoryBackend::new())?))
    }
}

impl Store for Redb {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in keys.iter().zip(values) {
                table.insert(key, &value[..])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, keys: &[u64]) -> Result<usize> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        let mut found = Vec::new();
        for key in keys {
            found.extend(table.get(key)?.map(|value| value.value().to_vec()));
        }
        Ok(found.iter().map(Vec::len).sum())
    }
}
