//! Ownership of replacement files: a new file gets the owner, group and mode of its predecessor.
//!
//! Only root can give a file away. If the group cannot be kept, the new group gets no more rights
//! than all other users. If the old owner could no longer read the file, the job is refused.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use crate::error::{Error, Result};

/// Gives the new `file` the owner, group and mode of `target`, whose metadata is `old`.
pub(crate) fn take_over(file: &File, old: &Metadata, target: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::output(target, &error);
    let own = file.metadata().map_err(failed)?;
    // The group first: after a change of the owner, this process may not change the group.
    let group = own.gid() == old.gid() || fchown(file, None, Some(old.gid())).is_ok();
    let owner = own.uid() == old.uid() || fchown(file, Some(old.uid()), None).is_ok();
    let mode = mode(old.mode() & 0o777, owner, group).ok_or_else(|| {
        Error::space(format!(
            "{}: belongs to user {}, who could not read what takes its place: its mode is {:o}, and \
             only root gives files away; write to another file",
            target.display(),
            old.uid(),
            old.mode() & 0o777
        ))
        .in_file(target.display().to_string())
    })?;
    file.set_permissions(Permissions::from_mode(mode)).map_err(failed)
}

/// Returns the mode of a replacement for a file of mode `old`. `owner` and `group` tell whether
/// these are kept. Returns `None` if the old owner could not read the replacement.
fn mode(old: u32, owner: bool, group: bool) -> Option<u32> {
    let others = old & 0o007;
    let mode = if group { old } else { old & (0o707 | others << 3) };
    let read = old & 0o400 == 0 || mode & 0o004 != 0 || group && mode & 0o040 != 0;
    (owner || read).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gains_rights_and_the_owner_loses_none_to_read() {
        for (old, owner, group, expected) in [
            (0o640, true, true, Some(0o640)),
            (0o660, true, false, Some(0o600)),
            (0o664, true, false, Some(0o644)),
            (0o600, false, true, None),
            (0o640, false, true, Some(0o640)),
            (0o640, false, false, None),
            (0o664, false, false, Some(0o644)),
            (0o200, false, false, Some(0o200)),
        ] {
            assert_eq!(mode(old, owner, group), expected, "{old:o} {owner} {group}");
        }
    }

    #[test]
    fn root_gives_files_back() {
        let old = tempfile::NamedTempFile::new().expect("created");
        let new = tempfile::NamedTempFile::new().expect("created");
        old.as_file().set_permissions(Permissions::from_mode(0o600)).expect("changed");
        if fchown(old.as_file(), Some(1000), Some(1001)).is_err() {
            // Without root no file of another user exists to replace.
            return;
        }
        let about = old.as_file().metadata().expect("there");
        take_over(new.as_file(), &about, old.path()).expect("taken");
        let new = new.as_file().metadata().expect("there");
        assert_eq!((new.uid(), new.gid(), new.mode() & 0o777), (1000, 1001, 0o600));
    }
}
