//! The tables of TPC-H at scale factor 0.1, as the files of the generator that is its own.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

const SCALE: f64 = 0.1;

pub(crate) const TABLES: [&str; 8] =
    ["supplier", "part", "partsupp", "customer", "orders", "lineitem", "nation", "region"];

/// Writes `TABLE.tbl` for each of them.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let one = |table: &str| directory.join(format!("{table}.tbl"));
    rows(&one("supplier"), SupplierGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("part"), PartGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("partsupp"), PartSuppGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("customer"), CustomerGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("orders"), OrderGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("lineitem"), LineItemGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("nation"), NationGenerator::new(SCALE, 1, 1).iter())?;
    rows(&one("region"), RegionGenerator::new(SCALE, 1, 1).iter())
}

fn rows(path: &Path, rows: impl Iterator<Item: Display>) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in rows {
        writeln!(file, "{row}")?;
    }
    file.flush()
}
