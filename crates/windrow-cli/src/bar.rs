//! The display of a running job's progress: a bar on a terminal, or a line a second on request.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use windrow_files::{Moment, Phase, Progress, Size};

use crate::args::Report;

/// Updates of the bar per second.
const HERTZ: u8 = 4;

/// Shows the progress of a job on standard error.
pub(crate) struct Bar {
    bar: ProgressBar,
    start: Instant,
    /// The time of the last line, if lines are written.
    written: Option<Mutex<Instant>>,
}

impl Bar {
    pub(crate) fn new(report: &Report) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let target = match !report.quiet && is_terminal {
            true => ProgressDrawTarget::stderr_with_hz(HERTZ),
            false => ProgressDrawTarget::hidden(),
        };
        let now = Instant::now();
        let lines = report.progress && !is_terminal;
        Self {
            bar: ProgressBar::with_draw_target(None, target),
            start: now,
            written: lines.then(|| Mutex::new(now)),
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Writes a line of progress every second, for a log.
    fn line(&self, moment: &Moment<'_>) {
        let what = match moment.phase {
            Phase::Read => "read",
            Phase::Settle => return,
            Phase::Write => "written",
        };
        let Some(written) = &self.written else { return };
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.elapsed() < Duration::from_secs(1) {
            return;
        }
        *written = Instant::now();
        let network = match moment.network_bytes() {
            0 => String::new(),
            bytes => format!(", {} over the network", Size(bytes)),
        };
        let of = moment.total.map(|rows| format!(" of {rows}")).unwrap_or_default();
        say(format_args!(
            "{}{of} rows {what}, {} in memory, {} spilled{network}, {:.0} s",
            moment.rows,
            Size(moment.leased_bytes()),
            Size(moment.spilled_bytes()),
            self.start.elapsed().as_secs_f64(),
        ));
    }
}

impl Progress for Bar {
    fn begins(&self, moment: &Moment<'_>) {
        const ROWS: &str = "{human_pos} of {human_len} rows {wide_bar} {elapsed} eta {eta} {msg}";
        let template = match moment.phase {
            Phase::Read => format!("read   {ROWS}"),
            Phase::Settle => "settle {spinner} {elapsed} {msg}".to_owned(),
            Phase::Write => format!("write  {ROWS}"),
        };
        if let Ok(style) = ProgressStyle::with_template(&template) {
            self.bar.set_style(style);
        }
        self.bar.set_position(0);
        self.bar.reset_eta();
        if let Some(total) = moment.total {
            self.bar.set_length(total);
        }
    }

    fn advances(&self, moment: &Moment<'_>) {
        self.line(moment);
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(moment.rows);
        let spilled = match moment.spilled_bytes() {
            bytes @ 1.. if moment.phase == Phase::Read => format!("spilled {}", Size(bytes)),
            _ => String::new(),
        };
        let message = match moment.network_bytes() {
            0 => spilled,
            bytes => format!("network {} {spilled}", Size(bytes)),
        };
        if !message.is_empty() {
            self.bar.set_message(message);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Writes a line to standard error. Errors are ignored: the job is to continue without a reader.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    let _said = writeln!(io::stderr(), "{line}");
}
