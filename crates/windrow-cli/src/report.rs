//! The report of a finished job: a line, and figures as JSON or for Prometheus.

use std::io::Write;
use std::path::Path;

use windrow_files::{Applied, Error, Inputs, Size, Spread, Stats, Target, Traffic};

use crate::advice::{Failure, Result};
use crate::args::Report;
use crate::bar::say;

/// Writes the line and, on request, the figures.
pub(crate) fn finish(stats: &Stats, report: &Report) -> Result<()> {
    if !report.quiet {
        let spilled = match stats.spilled_bytes {
            0 => String::new(),
            bytes => format!(", spilled {}", Size(bytes)),
        };
        let network = match stats.network {
            None => String::new(),
            Some(Traffic { requests, retries, received_bytes, sent_bytes, .. }) => {
                let again = if retries > 0 { format!(", {retries} again") } else { String::new() };
                format!(
                    ", {} and {} over the network in {requests} requests{again}",
                    Size(received_bytes),
                    Size(sent_bytes)
                )
            }
        };
        let files = match stats.partitions {
            None => String::new(),
            Some(Spread { files, .. }) => format!(" in {files} files"),
        };
        let lost = match stats.bloom_filters_dropped {
            true => "; the Bloom filters of the inputs are not in the output",
            false => "",
        };
        let renewed = match stats.keys_renewed {
            0 => String::new(),
            keys => format!(
                "; of {keys} keys a row of a later snapshot is newer than the changes before it"
            ),
        };
        say(format_args!(
            "{} rows in, {} rows out{files} ({}) in {:.2} s{spilled}{network}, peak memory {}{lost}{renewed}",
            stats.rows_in,
            stats.rows_out,
            Size(stats.bytes_out),
            stats.seconds,
            Size(stats.peak_rss_bytes),
        ));
    }
    figures(serde_json::to_string(stats), report)
}

/// Writes the line and, on request, the figures of changes to a table.
pub(crate) fn applied(applied: &Applied, report: &Report) -> Result<()> {
    if !report.quiet {
        let counts = &applied.counts;
        let others = [
            (counts.unchanged, "equal to their row"),
            (counts.stale, "older than their row"),
            (counts.absent, "deletes of no row"),
        ];
        let others = others.iter().filter(|(keys, _)| *keys > 0);
        let others: String = others.map(|(keys, what)| format!(", {keys} {what}")).collect();
        say(format_args!(
            "{} changes of {} keys: {} inserted, {} updated, {} deleted{others}; {} files {}, {} left; row groups: \
             {} rewritten, {} copied, {} left ({} written) in {:.2} s, peak memory {}",
            applied.rows_in,
            applied.keys,
            counts.inserted,
            counts.updated,
            counts.deleted,
            applied.files_removed.len(),
            if applied.dry_run { "would be replaced" } else { "replaced" },
            applied.files_left.len(),
            applied.row_groups_rewritten,
            applied.row_groups_copied,
            applied.row_groups_left,
            Size(applied.bytes_out),
            applied.seconds,
            Size(applied.peak_rss_bytes),
        ));
    }
    figures(serde_json::to_string(applied), report)
}

/// Writes the figures as requested.
fn figures(stats: serde_json::Result<String>, report: &Report) -> Result<()> {
    let stats = stats.map_err(unwritable)?;
    match report.stats.as_deref() {
        None => Ok(()),
        Some("json") => writeln!(std::io::stderr(), "{stats}").map_err(|error| {
            Failure::Report(format!(
                "--stats: standard error: {error}; the output is whole, its figures are lost"
            ))
        }),
        Some(file) => {
            let prometheus = Path::new(file).extension().is_some_and(|e| e == "prom");
            let text = if prometheus { to_prometheus(&stats)? } else { stats + "\n" };
            Ok(std::fs::write(file, text)
                .map_err(|error| Error::output(Path::new(file), &error))?)
        }
    }
}

/// Returns an error, before the job runs, if the figures cannot be written to the given place.
pub(crate) fn check(report: &Report, inputs: &Inputs, target: &Target) -> Result<()> {
    let Some(file) = report.stats.as_deref().filter(|&stats| stats != "json") else {
        return Ok(());
    };
    if Path::new(file).is_dir() {
        return Err(Failure::Usage(format!("--stats: {file} is a directory; name a file in it")));
    }
    let same = |other: &Path| match (Path::new(file).canonicalize(), other.canonicalize()) {
        (Ok(file), Ok(other)) => file == other,
        _ => Path::new(file) == other,
    };
    let written = matches!(target, Target::Path(output) if same(output));
    if written || inputs.files().iter().any(|input| input.path().is_some_and(same)) {
        return Err(Failure::Usage(format!(
            "--stats: {file} is an input or the output of this job; name another file"
        )));
    }
    let directory = Path::new(file).parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        Some(directory) if !directory.is_dir() => Err(Failure::Usage(format!(
            "--stats: {file}: there is no directory {}; create it first",
            directory.display()
        ))),
        _ => Ok(()),
    }
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::Report(format!("--stats: {error}"))
}

/// Formats the figures as a text file for Prometheus' node exporter, with a gauge for each.
fn to_prometheus(stats: &str) -> Result<String> {
    let figures: serde_json::Value = serde_json::from_str(stats).map_err(unwritable)?;
    let mut text = String::new();
    let mut gauge = |name: &str, value: &serde_json::Value| {
        if value.is_number() {
            text.push_str(&format!("# TYPE windrow_{name} gauge\nwindrow_{name} {value}\n"));
        }
    };
    for (name, value) in figures.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(parts) => parts.iter().for_each(|(part, v)| gauge(&format!("{name}_{part}"), v)),
            None => gauge(name, value),
        }
    }
    Ok(text)
}
