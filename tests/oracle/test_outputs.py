"""Where the output goes: descriptors, and directories that keep their place."""

import subprocess

import pyarrow as pa

import conftest
import data


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


def test_partitions_in_the_working_directory(tmp_path):
    """They are there for the shell that stands in it, and whole or not at all."""
    data.write(pa.table({"k": [2, 1, 2], "v": [1, 2, 3]}), tmp_path / "in.parquet")
    here = tmp_path / "here"
    here.mkdir()
    shown = shell('"$W" partition ../in.parquet --by k --hive -o . -q; ls -A', here)
    assert (shown.returncode, shown.stdout) == (0, "k=1\nk=2\n"), shown.stderr
    assert data.read(here / "k=2" / "part-0.parquet")["v"].to_pylist() == [1, 3]
    again = shell('"$W" partition ../in.parquet --by k --hive -o . -q', here)
    assert again.returncode == 2 and "not empty" in again.stderr
    assert sorted(path.name for path in here.iterdir()) == ["k=1", "k=2"]
