//! `cargo run --release -- TABLE COLUMN,COLUMN... [MIB]`: rewrites a Delta table on this machine in Z-order.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use deltalake_core::datafusion::execution::memory_pool::FairSpillPool;
use deltalake_core::{ensure_table_uri, open_table};
use windrow_delta_example::{session, z_order};

/// Default memory of the sort in MiB.
const MEMORY: usize = 256;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        [table, columns] => run(table, columns, MEMORY).await,
        [table, columns, memory] => match memory.parse() {
            Ok(memory) => run(table, columns, memory).await,
            Err(_) => Err(format!("{memory} is no number of MiB").into()),
        },
        _ => Err("TABLE COLUMN,COLUMN... [MIB]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("z-order: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(table: &str, columns: &str, memory: usize) -> Result<(), Box<dyn Error>> {
    let bytes = memory.checked_mul(1 << 20).ok_or("more memory than there are addresses")?;
    let table = open_table(ensure_table_uri(table)?).await?;
    let columns = columns.split(',').map(str::to_owned).collect();
    let session = session(Arc::new(FairSpillPool::new(bytes)))?;
    let (table, metrics) = z_order(table, columns, session).await?;
    println!(
        "version {}: {} files became {}",
        table.version().unwrap_or(0),
        metrics.num_files_removed,
        metrics.num_files_added
    );
    Ok(())
}
