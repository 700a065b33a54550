//! Writes the latest row of each key of a Debezium log: `compact IN KEY ORDER_BY OUT`.

use windrow_files::{
    Columns, CompactSpec, Inputs, Job, Limits, Preset, ReadOptions, Target, WriteOptions, expand,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, key, order_by, output] = args.as_slice() else {
        return Err("usage: compact IN KEY ORDER_BY OUT".into());
    };
    let spec = CompactSpec::by_key(key.parse::<Columns>()?)
        .order_by(order_by.parse::<Columns>()?)
        .op_preset(Preset::Debezium);
    // The format of the log determines how its text is read.
    let inputs = Inputs::open(&expand([input])?, &spec.reading(ReadOptions::default()))?;
    let job = Job::compact(inputs, &spec)?;
    let stats = job.write(&Target::of(output), &WriteOptions::default(), &Limits::default())?;
    println!("{} changes, {} live rows", stats.rows_in, stats.rows_out);
    Ok(())
}
