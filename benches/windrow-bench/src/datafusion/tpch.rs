//! TPC-H: the eight tables as Parquet, and the 22 queries published with DataFusion's tests.
//!
//! ```text
//! tpchgen --text--> DataFusion, published CREATE EXTERNAL TABLE --> tpch-SCALE/TABLE.parquet
//! published answers --the text of their queries--> tpch-SCALE/q1.sql ... q22.sql
//! ```

#[path = "../../../../integrations/windrow-datafusion/tests/suite/tpch.rs"]
mod generated;

use std::fs::{create_dir_all, read_to_string, remove_dir_all, remove_file, rename, write};
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::prelude::{ParquetReadOptions, SessionContext};
use generated::TABLES;

use crate::Result;
use crate::process::answer;

const QUERIES: usize = 22;
/// The data directory in the published statements.
const PUBLISHED_DATA: &str = "test_files/tpch/data";
/// The workspace whose tests need the published files.
const INTEGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/Cargo.toml");
/// Row groups as the jobs of files have them.
const WRITTEN: &str = "STORED AS PARQUET OPTIONS ('format.compression' 'zstd(1)', \
    'format.max_row_group_size' '122880')";

/// Generates the tables and the queries if missing.
pub(super) fn make(data: &Path, scale: f64) -> Result<()> {
    let whole = directory(data, scale);
    if whole.exists() {
        return Ok(());
    }
    let part = data.join(format!("tpch-{scale}.part"));
    // It may be there from a run that was ended.
    remove_dir_all(&part).ok();
    create_dir_all(&part)?;
    let published = published()?;
    for number in 1..=QUERIES {
        let answer = read_to_string(published.join(format!("tpch/answers/q{number}.slt.part")))?;
        let query = statements(&answer, "query ").next().ok_or("no query before an answer")?;
        write(part.join(format!("q{number}.sql")), query)?;
    }
    generated::write(&part, scale)?;
    let created = read_to_string(published.join("tpch/create_tables.slt.part"))?;
    let created = created.replace(PUBLISHED_DATA, part.to_str().ok_or("a path that is text")?);
    super::runtime(2)?.block_on(async {
        let context = SessionContext::new();
        for statement in statements(&created, "statement ") {
            context.sql(&statement).await?.collect().await?;
        }
        for table in TABLES {
            let path = part.join(format!("{table}.parquet"));
            let sql = format!("COPY {table} TO '{}' {WRITTEN}", path.display());
            context.sql(&sql).await?.collect().await?;
            remove_file(part.join(format!("{table}.tbl")))?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    Ok(rename(part, whole)?)
}

/// Returns the queries in order.
pub(super) fn queries(data: &Path, scale: f64) -> Result<Vec<String>> {
    let file = |number| directory(data, scale).join(format!("q{number}.sql"));
    (1..=QUERIES).map(|number| Ok(read_to_string(file(number))?)).collect()
}

/// Registers the tables.
pub(super) async fn register(context: &SessionContext, data: &Path, scale: f64) -> Result<()> {
    for table in TABLES {
        register_file(context, table, &directory(data, scale).join(format!("{table}.parquet")))
            .await?;
    }
    Ok(())
}

/// Registers a Parquet file as a table.
pub(crate) async fn register_file(
    context: &SessionContext,
    table: &str,
    path: &Path,
) -> Result<()> {
    let path = path.to_str().ok_or("a path that is text")?;
    Ok(context.register_parquet(table, path, ParquetReadOptions::default()).await?)
}

fn directory(data: &Path, scale: f64) -> PathBuf {
    data.join(format!("tpch-{scale}"))
}

/// Returns the directory of the files published with DataFusion's tests.
fn published() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version=1", "--locked", "--manifest-path", INTEGRATIONS];
    let metadata: serde_json::Value = answer(Command::new(cargo).args(arguments))?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let package = packages.iter().find(|package| package["name"] == "datafusion-sqllogictest");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.ok_or("datafusion-sqllogictest is no dependency")?);
    Ok(manifest.with_file_name("test_files"))
}

/// Returns the statements of a test file: lines after a line with prefix `kind`, up to the results
/// or an empty line.
fn statements<'a>(file: &'a str, kind: &'a str) -> impl Iterator<Item = String> + 'a {
    let mut lines = file.lines();
    std::iter::from_fn(move || {
        lines.find(|line| line.starts_with(kind))?;
        let of_it = |line: &&str| !line.is_empty() && *line != "----";
        Some(lines.by_ref().take_while(of_it).collect::<Vec<_>>().join("\n"))
    })
}
