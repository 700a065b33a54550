"""Folders on small disks, and folders that take no files. Root mounts a tmpfs; others have modes, and no small disks."""

import contextlib
import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
RDONLY, REMOUNT, DETACH = 1, 32, 2


def mount(folder, flags, options):
    return LIBC.mount(b"none", os.fsencode(folder), b"tmpfs", flags, options.encode()) == 0


@contextlib.contextmanager
def mounted(folder, options, flags=0):
    """A tmpfs in this place; False where the user may not mount."""
    there = os.geteuid() == 0 and mount(folder, 0, options)
    if there and flags:
        mount(folder, flags | REMOUNT, options)
    try:
        yield there
    finally:
        if there:
            LIBC.umount2(os.fsencode(folder), DETACH)


def small(folder, size):
    return mounted(folder, f"size={max(size, 4096) // 4096 * 4096}")


@contextlib.contextmanager
def read_only(folder):
    if os.geteuid() == 0:
        with mounted(folder, "size=1m", RDONLY) as there:
            yield there
        return
    folder.chmod(0o555)
    try:
        yield True
    finally:
        folder.chmod(0o755)
