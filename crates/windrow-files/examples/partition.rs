//! Splits a file by a hash of columns: `partition IN COLUMNS N DIRECTORY`.

use windrow_files::{
    Columns, Format, Inputs, Job, Limits, PartitionSpec, Partitions, ReadOptions, Target,
    WriteOptions, expand,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, columns, into, directory] = args.as_slice() else {
        return Err("usage: partition IN COLUMNS N DIRECTORY".into());
    };
    let inputs = Inputs::open(&expand([input])?, &ReadOptions::default())?;
    let spec = PartitionSpec::by(columns.parse::<Columns>()?, Partitions::Hash(into.parse()?));
    let job = Job::partition(inputs, &spec)?;
    let write = WriteOptions::default().format(Format::Parquet);
    let stats = job.write(&Target::of(directory), &write, &Limits::default())?;
    let files = stats.partitions.map_or(0, |partitions| partitions.files);
    println!("{} rows in {files} files", stats.rows_out);
    Ok(())
}
