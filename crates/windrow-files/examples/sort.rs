//! Sorts a file inside a memory limit: `sort IN COLUMNS OUT [LIMIT]`.

use windrow_files::{
    Columns, Inputs, Job, Limits, ReadOptions, SortSpec, Target, WriteOptions, expand,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, columns, output, rest @ ..] = args.as_slice() else {
        return Err("usage: sort IN COLUMNS OUT [LIMIT]".into());
    };
    let mut limits = Limits::default();
    if let [limit] = rest {
        limits = limits.memory(limit.parse()?);
    }
    let inputs = Inputs::open(&expand([input])?, &ReadOptions::default())?;
    let job = Job::sort(inputs, &SortSpec::by(columns.parse::<Columns>()?))?;
    let (target, write) = (Target::of(output), WriteOptions::default());
    print!("{}", job.explain(&target, &write, &limits)?);
    let stats = job.write(&target, &write, &limits)?;
    println!("{} rows in {:.2} s", stats.rows_out, stats.seconds);
    Ok(())
}
