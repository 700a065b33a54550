//! Memory of an arrangement at rest: the growth of a process after its updates are arranged and
//! merged.
//!
//! Each side is a separate process, whose allocator returns freed memory.

use std::process::Command;

use windrow::Pool;

use super::Options;
use super::spines::{Phases, Run, Side, numbers, text};
use crate::Result;
use crate::harness::Cells;
use crate::process::{answer, memory};

/// Makes glibc return freed memory at once, and map large blocks.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_TRIM_THRESHOLD_", "0"),
    ("MALLOC_TOP_PAD_", "0"),
    ("MALLOC_MMAP_THRESHOLD_", "65536"),
];

/// Keys, and the rival's arrangement.
const CASES: [(&str, Run, Side); 2] =
    [("text", text::run, Side::OrdKey), ("u64", numbers::run, Side::OrdVal)];

/// Compares bytes per update.
pub(super) fn measure(options: &Options, cells: &mut Cells) -> Result<()> {
    for (keys, _, rival) in CASES {
        let bytes = |side: Side| -> Result<f64> {
            let mut child = Command::new(std::env::current_exe()?);
            child.args(["dataflow", &format!("--rest={keys} {side:?}")]).envs(ALLOCATOR);
            child.arg(format!("--updates={}", options.updates));
            answer(child.arg(format!("--round={}", options.round)))
        };
        let theirs = [(format!("{rival:?}"), bytes(rival)?)];
        cells.push("bytes/update", &format!("{keys} at rest"), bytes(Side::Ours)?, theirs);
    }
    Ok(())
}

/// Measures one side in a child process, and prints its bytes per update.
pub(super) fn child(options: &Options, case: &str) -> Result<()> {
    for (keys, run, rival) in CASES {
        for side in
            [Side::Ours, rival].into_iter().filter(|side| format!("{keys} {side:?}") == case)
        {
            let bytes = run(options, side, &Pool::unlimited(), Phases::Load).grown;
            let bytes = bytes.ok_or("the system does not say how much is resident")?;
            println!("{}", bytes / options.updates as f64);
        }
    }
    Ok(())
}

/// Returns the anonymous resident bytes, if the system reports them.
pub(super) fn resident() -> Option<f64> {
    memory("self", "RssAnon").ok().map(|bytes| bytes as f64)
}
