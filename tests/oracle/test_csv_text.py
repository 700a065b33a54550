"""From CSV to CSV: columns that are not compared come out as the text that they were, byte by byte as from GNU sort and
Python's csv; columns that are compared, and other outputs, have types."""

import csv
import io
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Columns by what they look like: read as types most of these would be written as something else.
TEXTS = {
    "price": ["1.10", "2.00", "10", "0.50"],
    "code": ["7", "12", "5"],
    "size": ["1e3", "1E3", "2.5e-3", "4"],
    "half": [".5", "5.", "0.5"],
    "flag": ["True", "FALSE", "true", "False"],
    "big": ["12345678901234567.89", "0.1", "3"],
    "at": ["2024-01-01 10:00:00", "2024-01-01T10:00:00", "2024-01-01 10:00:00.000"],
    "zoned": ["2024-01-01T10:00:00+02:00", "2024-01-01T08:00:00Z", "2024-01-01T08:00:00.10Z"],
    "day": ["2024-01-01", "2024-02-29"],
    "padded": ["007", "08", "00"],
    "nan": ["NaN", "inf", "1.50", "-0.0"],
    "some": ["1.0", "", "2.50"],
    "none": [""],
    "plus": ["3", "10", "-0"],
    "word": ["a", " b ", "NULL", "\\N", "-"],
}


def lines(rng, rows, separator=","):
    names = ["k", *TEXTS]
    columns = [[str(value) for value in rng.integers(-50, 50, rows)]]
    columns += [[texts[i] for i in rng.integers(0, len(texts), rows)] for texts in TEXTS.values()]
    return [separator.join(names), *(separator.join(row) for row in zip(*columns))]


def gnu_sort(head, body, *options):
    done = subprocess.run(["sort", "-s", *options], input="".join(line + "\n" for line in body).encode(), capture_output=True, env={"LC_ALL": "C"}, check=True)
    return head.encode() + b"\n" + done.stdout


@pytest.mark.parametrize("name,separator", [("a.csv", ","), ("a.tsv", "\t"), ("a.csv", ";")])
@pytest.mark.parametrize("rows", [1, 500, 30_000])
def test_as_gnu_sort_has_it(w, rng, tmp_path, name, separator, rows):
    head, *body = lines(rng, rows, separator)
    (tmp_path / name).write_text("\n".join([head, *body, ""]))
    expected = gnu_sort(head, body, "-t", separator, "-k1,1n")
    w(f"sort {name} --by k -o out-{name}").ok()
    assert (tmp_path / f"out-{name}").read_bytes() == expected
    w(f"sort {name} --by k:desc -o desc-{name} --threads 1 --memory-limit 96MiB").ok()
    assert (tmp_path / f"desc-{name}").read_bytes() == gnu_sort(head, body, "-t", separator, "-k1,1nr")


def parsed(text, **options):
    return list(csv.reader(io.StringIO(text, newline=""), **options))


def shown(rows):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def test_as_pythons_csv_has_it(w, rng, tmp_path):
    """Quotes, delimiters and line ends within fields."""
    odd = ['say "1.10"', "1,10", "two\nlines", "007", "1.10", "a\r\nb", "'", "\u00e9", "1e3", " 1.0", "True"]
    rows = [["k", "v", "x"]]
    for number in rng.permutation(3_000):
        rows.append([str(number), odd[rng.integers(0, len(odd))], f"{rng.integers(0, 100)}.{rng.integers(0, 100):02}"])
    (tmp_path / "a.csv").write_bytes(shown(rows))
    w("sort a.csv --by k -o out.csv").ok()
    assert (tmp_path / "out.csv").read_bytes() == shown([rows[0], *sorted(rows[1:], key=lambda row: int(row[0]))])
    # What need not be in quotes is written without.
    quoted = io.StringIO(newline="")
    csv.writer(quoted, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    (tmp_path / "b.csv").write_bytes(quoted.getvalue().encode())
    w("sort b.csv --by k -o b-out.csv").ok()
    assert (tmp_path / "b-out.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_nulls_as_documented(w, tmp_path):
    (tmp_path / "a.csv").write_text('k,v,n\n2,,1.10\n1,\\N,\\N\n3,"",2.0\n')
    w("sort a.csv --by k -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "k,v,n\n1,\\N,\\N\n2,,1.10\n3,\"\",2.0\n"
    w(r"sort a.csv --by k --csv-null \N -o null.csv").ok()
    assert (tmp_path / "null.csv").read_text() == 'k,v,n\n1,\\N,\\N\n2,,1.10\n3,,2.0\n'
    w(r"sort a.csv --by n:desc --csv-null \N -o by.csv").ok()
    assert (tmp_path / "by.csv").read_text() == 'k,v,n\n3,,2.0\n2,,1.1\n1,\\N,\\N\n'


def test_what_is_compared_has_a_type(w, tmp_path):
    (tmp_path / "a.csv").write_text("k,x,y\n2,10.50,1.10\n1,9.50,2.20\n3,1.00,3.30\n")
    out = tmp_path / "out.csv"
    jobs = {
        "sort a.csv --by x": "k,x,y\n3,1.0,3.30\n1,9.5,2.20\n2,10.5,1.10\n",
        'sort a.csv --by "x"': "k,x,y\n3,1.0,3.30\n1,9.5,2.20\n2,10.5,1.10\n",
        "sort a.csv --by k --select y,k": "y,k\n2.20,1\n1.10,2\n3.30,3\n",
        "sort a.csv --by k --schema y:float64": "k,x,y\n1,9.50,2.2\n2,10.50,1.1\n3,1.00,3.3\n",
        "sort a.csv --by k --limit 1": "k,x,y\n1,9.50,2.20\n",
        "head a.csv --rows 2": "k,x,y\n2,10.50,1.10\n1,9.50,2.20\n",
        "dedupe a.csv --key k --keep last": "k,x,y\n1,9.50,2.20\n2,10.50,1.10\n3,1.00,3.30\n",
        "dedupe a.csv --keep first": "k,x,y\n1,9.5,2.2\n2,10.5,1.1\n3,1.0,3.3\n",
        "compact a.csv a.csv --key k --order-by x": "k,x,y\n1,9.5,2.20\n2,10.5,1.10\n3,1.0,3.30\n",
        "merge a.csv --by y": "k,x,y\n2,10.50,1.1\n1,9.50,2.2\n3,1.00,3.3\n",
    }
    for job, expected in jobs.items():
        w(f"{job} -o out.csv").ok()
        assert out.read_text() == expected, job
        w(f"{job} -o - --output-format csv").ok()
        out.unlink()
    w(["sort", "a.csv", "--by", "k", "--where", "x >= 9.5", "-o", "out.csv"]).ok()
    assert out.read_text() == "k,x,y\n1,9.5,2.20\n2,10.5,1.10\n"
    w("partition a.csv --by k --hive -o parts --output-format csv").ok()
    assert (tmp_path / "parts" / "k=1" / "part-0.csv").read_text() == "x,y\n9.50,2.20\n"
    w("sort a.csv --by k -o sized --max-file-size 64KiB --output-format csv").ok()
    assert (tmp_path / "sized" / "part-00000.csv").read_text() == "k,x,y\n1,9.50,2.20\n2,10.50,1.10\n3,1.00,3.30\n"


def test_other_outputs_have_types(w, tmp_path):
    (tmp_path / "a.csv").write_text("k,x,b\n2,1.10,True\n1,2.20,False\n")
    w("sort a.csv --by k -o out.parquet").ok()
    assert pq.read_schema(tmp_path / "out.parquet").types == [pa.int64(), pa.float64(), pa.bool_()]
    w("sort a.csv --by k -o out.ndjson").ok()
    assert (tmp_path / "out.ndjson").read_text() == '{"k":1,"x":2.2,"b":false}\n{"k":2,"x":1.1,"b":true}\n'
    w("partition a.csv --by k --hive -o out.csv").ok()
    assert pq.read_schema(tmp_path / "out.csv" / "k=1" / "part-0.parquet").types == [pa.float64(), pa.bool_()]


def test_other_inputs_have_types(w, tmp_path):
    """Of CSV beside Parquet the types are what the two have in common."""
    (tmp_path / "a.csv").write_text("k,x\n2,1.10\n")
    pq.write_table(pa.table({"k": [1], "x": [2.5]}), tmp_path / "b.parquet")
    w("sort a.csv b.parquet --by k -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "k,x\n1,2.5\n2,1.1\n"


def test_a_late_value_of_another_kind_is_no_fault(w, tmp_path):
    body = [f"{k},{k}.50" for k in range(20_000)] + ["20000,n/a"]
    (tmp_path / "a.csv").write_text("\n".join(["k,x", *body, ""]))
    w("sort a.csv --by k -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "a.csv").read_text()
    w("sort a.csv --by k -o out.parquet").fails(3, "n/a")


def test_several_files_and_logs(w, tmp_path):
    (tmp_path / "a.csv").write_text("k,x\n1,1.10\n")
    (tmp_path / "b.csv").write_text("x,k\nhello,2\n")
    w("sort a.csv b.csv --by k -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "k,x\n1,1.10\n2,hello\n"
    (tmp_path / "c.csv").write_text("k,x,y\n3,1e3,True\n")
    w("sort a.csv c.csv --by k --union-by-name -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "k,x,y\n1,1.10,\n3,1e3,True\n"
    (tmp_path / "log.csv").write_text("op,id,seq,x\nI,1,1,1.10\nU,1,2,2.20\nI,2,3,007\nD,2,4,007\n")
    w("compact log.csv --key id --order-by seq --op-column op -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "id,seq,x\n1,2,2.20\n"
    (tmp_path / "stream.csv").write_text("METADATA$ACTION,METADATA$ISUPDATE,id,x\nDELETE,TRUE,1,1.10\nINSERT,TRUE,1,2.20\n")
    w("compact stream.csv --key id --op-preset snowflake -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "id,x\n1,2.20\n"
    (tmp_path / "hoodie.csv").write_text("_hoodie_is_deleted,id,x\nfalse,1,1.10\ntrue,2,2.20\n")
    w("compact hoodie.csv --key id --op-preset auto -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "id,x\n1,1.10\n"
