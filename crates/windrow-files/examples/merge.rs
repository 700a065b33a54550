//! Merges sorted files, and keeps the last of equal rows: `merge COLUMNS OUT IN...`.

use windrow_files::{
    Columns, ErrorKind, Inputs, Job, Limits, MergeSpec, ReadOptions, Target, WriteOptions, expand,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [columns, output, inputs @ ..] = args.as_slice() else {
        return Err("usage: merge COLUMNS OUT IN...".into());
    };
    let inputs = Inputs::open(&expand(inputs)?, &ReadOptions::default())?;
    let job = Job::merge(inputs, &MergeSpec::by(columns.parse::<Columns>()?).unique(true))?;
    match job.write(&Target::of(output), &WriteOptions::default(), &Limits::default()) {
        Ok(stats) => println!("{} rows", stats.rows_out),
        Err(error) if error.kind() == ErrorKind::Unsorted => {
            let place = error.place();
            println!("not sorted: {:?}, row {:?}", place.file, place.row);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
