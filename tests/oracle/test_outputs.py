"""Where the output goes."""

import subprocess

import conftest


def shell(script, cwd):
    return subprocess.run(["sh", "-ec", script], cwd=cwd, capture_output=True, text=True, env={"W": str(conftest.binary())}, timeout=120)


def test_a_descriptor_is_written_to_and_not_replaced(tmp_path):
    """The file behind it is open elsewhere: a new one in its place would take what was there, and what comes."""
    (tmp_path / "in.csv").write_text("k\n2\n1\n")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"):
        shell('ln -sf /dev/stdout link; (echo before; "$W" sort in.csv --by k -o %s --output-format csv -q; echo after) > out' % name, tmp_path).check_returncode()
        assert (tmp_path / "out").read_text() == "before\nk\n1\n2\nafter\n", name
    shell('(echo before >&3; "$W" sort in.csv --by k -o /dev/fd/3 --output-format csv -q; ) 3> out', tmp_path).check_returncode()
    assert (tmp_path / "out").read_text() == "before\nk\n1\n2\n"
