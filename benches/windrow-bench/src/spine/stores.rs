//! The key-value rivals of `spine`.

use fjall::{Database as FjallDatabase, Keyspace, KeyspaceCreateOptions};
use redb::backends::InMemoryBackend;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::table::Store;
use crate::Result;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("table");

/// redb in memory or in a file, with one unsynced transaction per call.
pub(super) struct Redb {
    database: Database,
    _directory: tempfile::TempDir,
}

impl Redb {
    /// Creates a database in memory, or in a file, with a cache of so many bytes.
    pub(super) fn new(cache: Option<u64>) -> Result<Self> {
        let (mut builder, directory) = (Database::builder(), tempfile::tempdir()?);
        let database = match cache {
            None => builder.create_with_backend(InMemoryBackend::new())?,
            Some(cache) => {
                builder.set_cache_size(cache as usize).create(directory.path().join("redb"))?
            }
        };
        Ok(Self { database, _directory: directory })
    }
}

impl Store for Redb {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::None)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in keys.iter().zip(values) {
                table.insert(key, &value[..])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, keys: &[u64]) -> Result<usize> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut found = Vec::new();
        for key in keys {
            found.extend(table.get(key)?.map(|value| value.value().to_vec()));
        }
        Ok(found.iter().map(Vec::len).sum())
    }
}

/// Bytes of fjall's write buffers when memory is ample: twice the default.
const MEMTABLE: u64 = 128 << 20;

/// fjall in files cached by the system, with a cache of its own, and one unsynced batch per call.
pub(super) struct Fjall {
    database: FjallDatabase,
    table: Keyspace,
    _directory: tempfile::TempDir,
}

impl Fjall {
    /// Creates a database with a cache of `cache` bytes, and at most half as many bytes of write
    /// buffers.
    pub(super) fn new(cache: u64) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let written = (cache / 2).min(MEMTABLE);
        let database = FjallDatabase::builder(directory.path())
            .cache_size(cache)
            .max_write_buffer_size(Some(written))
            .open()?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(written / 2);
        let table = database.keyspace("table", options)?;
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
