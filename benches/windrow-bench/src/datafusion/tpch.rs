//! TPC-H: the eight tables as Parquet, and the 22 queries published with DataFusion's tests.
//!
//! ```text
//! tpchgen --text--> DataFusion, published CREATE EXTERNAL TABLE --> tpch-SCALE/TABLE.parquet
//! published answers --the text of their queries--> tpch-SCALE/q1.sql ... q22.sql
//! ```

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::prelude::{ParquetReadOptions, SessionContext};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::Result;

const TABLES: [&str; 8] =
    ["supplier", "part", "partsupp", "customer", "orders", "lineitem", "nation", "region"];
const QUERIES: usize = 22;
/// The data directory in the published statements.
const PUBLISHED_DATA: &str = "test_files/tpch/data";

/// Generates the tables and the queries if missing.
pub(super) fn make(data: &Path, scale: f64) -> Result<()> {
    let whole = directory(data, scale);
    if whole.exists() {
        return Ok(());
    }
    let part = whole.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    std::fs::create_dir_all(&part)?;
    let published = published()?;
    for number in 1..=QUERIES {
        let answer = published.join(format!("tpch/answers/q{number}.slt.part"));
        let answer = std::fs::read_to_string(answer)?;
        let query = statements(&answer, "query ").next().ok_or("no query before an answer")?;
        std::fs::write(part.join(format!("q{number}.sql")), query)?;
    }
    text(&part, scale)?;
    let created = std::fs::read_to_string(published.join("tpch/create_tables.slt.part"))?;
    let created = created.replace(PUBLISHED_DATA, part.to_str().ok_or("a path that is text")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let context = SessionContext::new();
        for statement in statements(&created, "statement ") {
            context.sql(&statement).await?.collect().await?;
        }
        for table in TABLES {
            let path = part.join(format!("{table}.parquet"));
            let sql = format!("COPY {table} TO '{}'", path.display());
            context.sql(&sql).await?.collect().await?;
            std::fs::remove_file(part.join(format!("{table}.tbl")))?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    std::fs::rename(part, whole)?;
    Ok(())
}

/// Returns the queries in order.
pub(super) fn queries(data: &Path, scale: f64) -> Result<Vec<String>> {
    let file = |number| directory(data, scale).join(format!("q{number}.sql"));
    (1..=QUERIES).map(|number| Ok(std::fs::read_to_string(file(number))?)).collect()
}

/// Registers the tables.
pub(super) async fn register(context: &SessionContext, data: &Path, scale: f64) -> Result<()> {
    for table in TABLES {
        let path = directory(data, scale).join(format!("{table}.parquet"));
        let path = path.to_str().ok_or("a path that is text")?;
        context.register_parquet(table, path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}

fn directory(data: &Path, scale: f64) -> PathBuf {
    data.join(format!("tpch-{scale}"))
}

/// Returns the directory of the files published with DataFusion's tests.
fn published() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
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

/// Writes the tables in the format of their original generator.
fn text(directory: &Path, scale: f64) -> Result<()> {
    let file = |table: &str| directory.join(format!("{table}.tbl"));
    rows(&file("supplier"), SupplierGenerator::new(scale, 1, 1).iter())?;
    rows(&file("part"), PartGenerator::new(scale, 1, 1).iter())?;
    rows(&file("partsupp"), PartSuppGenerator::new(scale, 1, 1).iter())?;
    rows(&file("customer"), CustomerGenerator::new(scale, 1, 1).iter())?;
    rows(&file("orders"), OrderGenerator::new(scale, 1, 1).iter())?;
    rows(&file("lineitem"), LineItemGenerator::new(scale, 1, 1).iter())?;
    rows(&file("nation"), NationGenerator::new(scale, 1, 1).iter())?;
    rows(&file("region"), RegionGenerator::new(scale, 1, 1).iter())
}

fn rows(path: &Path, rows: impl Iterator<Item: Display>) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in rows {
        writeln!(file, "{row}")?;
    }
    Ok(file.flush()?)
}
