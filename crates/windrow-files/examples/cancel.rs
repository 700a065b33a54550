//! Shows progress, and gives up after a number of rows: `cancel IN COLUMNS OUT ROWS`.

use std::sync::Arc;

use windrow_files::{
    Cancel, Columns, ErrorKind, Inputs, Job, Limits, Moment, Progress, ReadOptions, SortSpec,
    Target, WriteOptions, expand,
};

struct Watcher {
    cancel: Cancel,
    most: u64,
}

impl Progress for Watcher {
    fn advances(&self, moment: &Moment<'_>) {
        eprintln!("{:?}: {} of {:?} rows", moment.phase, moment.rows, moment.total);
        if moment.rows > self.most {
            self.cancel.cancel();
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, columns, output, most] = args.as_slice() else {
        return Err("usage: cancel IN COLUMNS OUT ROWS".into());
    };
    let cancel = Cancel::new();
    let watcher = Arc::new(Watcher { cancel: cancel.clone(), most: most.parse()? });
    let inputs = Inputs::open(&expand([input])?, &ReadOptions::default())?;
    let job = Job::sort(inputs, &SortSpec::by(columns.parse::<Columns>()?))?;
    let job = job.cancelled_by(&cancel).watched_by(watcher);
    match job.write(&Target::of(output), &WriteOptions::default(), &Limits::default()) {
        Err(error) if error.kind() == ErrorKind::Interrupted => println!("cancelled"),
        done => println!("{} rows", done?.rows_out),
    }
    Ok(())
}
