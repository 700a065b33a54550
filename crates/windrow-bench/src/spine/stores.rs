//! The rivals of `spine` that keep tables with a key.

use fjall::{Database as FjallDatabase, Keyspace, KeyspaceCreateOptions};
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

/// fjall in files that the system caches, with a cache of its own for all of it; a batch a call, nothing synced.
pub(super) struct Fjall {
    database: FjallDatabase,
    table: Keyspace,
    _directory: tempfile::TempDir,
}

/// Bytes of fjall's own cache.
const CACHE: u64 = 4 << 30;

impl Fjall {
    pub(super) fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let database = FjallDatabase::builder(directory.path()).cache_size(CACHE).open()?;
        let table = database.keyspace("table", KeyspaceCreateOptions::default)?;
        Ok(Self { database, table, _directory: directory })
    }
}

impl Store for Fjall {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()> {
        let mut batch = self.database.batch();
        for (key, value) in keys.iter().zip(values) {
            batch.insert(&self.table, &key.to_be_bytes()[..], &value[..]);
        }
        Ok(batch.commit()?)
    }

    fn read(&mut self, keys: &[u64]) -> Result<usize> {
        let mut found = Vec::new();
        for key in keys {
            found.extend(self.table.get(key.to_be_bytes())?.map(|value| value.to_vec()));
        }
        Ok(found.iter().map(Vec::len).sum())
    }
}
