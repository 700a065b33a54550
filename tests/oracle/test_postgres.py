"""Change logs of a PostgreSQL server that runs: what `compact` makes of them is what its tables hold.

The server is started in a temporary directory, on a socket. Clients of pgbench and a random history change its tables:
rows come, go and come again, keys change, and large values stay as they are in updates of others, so that wal2json
leaves them out. The log is read in both of its formats, and as Debezium would have written it.

    POSTGRES    the folder of its programs, as `scripts/postgres` prints it
"""

import json
import os
import pathlib
import pwd
import random
import shutil
import subprocess
import tempfile

import pyarrow.parquet as pq
import pytest

from conftest import SEED

PLACEHOLDER = "__debezium_unavailable_value"
TABLES = """
CREATE TABLE users (id bigint PRIMARY KEY, name text, score numeric(12, 2), bio text, tags int[], at timestamptz);
ALTER TABLE users ALTER bio SET STORAGE EXTERNAL;
CREATE TABLE whole (id bigint PRIMARY KEY, name text, bio text);
ALTER TABLE whole ALTER bio SET STORAGE EXTERNAL;
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE SEQUENCE fresh START 100000;
"""
# What pgbench's clients do, each a transaction.
CLIENT = r"""
\set id random(1, 400)
\set what random(1, 6)
\if :what = 1
INSERT INTO users VALUES (:id, 'n' || :id, :id / 8.0, repeat(md5(random()::text), 200), ARRAY[:id, NULL], now())
    ON CONFLICT (id) DO UPDATE SET name = users.name || '!', score = NULL;
\elif :what = 2
UPDATE users SET score = score + 1.25 WHERE id = :id;
\elif :what = 3
UPDATE users SET bio = repeat(md5(random()::text), 100) WHERE id = :id;
\elif :what = 4
UPDATE users SET id = nextval('fresh'), bio = bio || '.' WHERE id = :id;
\elif :what = 5
DELETE FROM users WHERE id = :id;
\else
INSERT INTO whole VALUES (:id, 'w', repeat(md5(random()::text), 200)) ON CONFLICT (id) DO UPDATE SET name = 'w2';
\endif
"""


class Server:
    """A cluster of its own, as a user that is not root."""

    def __init__(self, programs):
        self.programs = pathlib.Path(programs)
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="wr-pg-", dir="/tmp"))
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            owner = pwd.getpwnam(self.user)
            os.chown(self.root, owner.pw_uid, owner.pw_gid)
        self.role = self.user or pwd.getpwuid(os.getuid()).pw_name
        self.run("initdb", "-D", self.root / "data", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "-U", self.role)
        settings = {
            "wal_level": "logical", "listen_addresses": "''", "unix_socket_directories": f"'{self.root}'", "fsync": "off",
            "max_replication_slots": 8, "max_wal_senders": 4,
        }
        # Minor versions since 2026 load no plugin of decoding that they are not told of.
        if "output_plugin_libraries" in self.run("postgres", "--describe-config"):
            settings["output_plugin_libraries"] = "wal2json"
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self.run("pg_ctl", "-D", self.root / "data", "-l", self.root / "log", "-w", "-t", "60", "-o", options, "start")

    def run(self, program, *args, stdin=None):
        command = [str(self.programs / program), *map(str, args)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, user=self.user, cwd="/", timeout=120)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout

    def at(self):
        return "-h", self.root, "-U", self.role, "-d", "postgres"

    def sql(self, text):
        return self.run("psql", *self.at(), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", stdin=text)

    def rows(self, query):
        return [json.loads(line) for line in self.sql(f"SELECT to_jsonb(q) FROM ({query}) q").splitlines()]

    def stop(self):
        try:
            self.run("pg_ctl", "-D", self.root / "data", "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.root, ignore_errors=True)


def history(rng):
    """Transactions of several changes: keys change, rows are deleted and come again, others are rolled back."""
    parts = []
    for step in range(300):
        key = rng.randrange(500, 560)
        change = rng.choice([
            f"INSERT INTO users VALUES ({key}, 'ä''{step}', {step}.50, repeat('é{step}', 3000), NULL, '2026-01-31 12:00+02')"
            " ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
            f"UPDATE users SET name = E'q\"\\\\\\n{step}' WHERE id = {key}",
            f"DELETE FROM users WHERE id = {key}",
            f"UPDATE users SET id = {key + 1000}, bio = 's{step}' WHERE id = {key}"
            f" AND NOT EXISTS (SELECT FROM users WHERE id = {key + 1000})",
            f"DELETE FROM users WHERE id = {key}; INSERT INTO users (id, name) VALUES ({key}, 'again')",
            f"INSERT INTO whole VALUES ({key}, 'w{step}', repeat('x{step}', 3000)) ON CONFLICT DO NOTHING",
            f"UPDATE whole SET id = {key + 1000 + step * 100}, name = 'moved' WHERE id = {key}",
            f"UPDATE whole SET name = 'w{step}' WHERE id >= 1000 AND id % 7 = {step % 7}",
        ])
        end = "ROLLBACK" if rng.random() < 0.1 else "COMMIT"
        parts.append(f"BEGIN; {change}; UPDATE users SET score = -1.5 WHERE id = {key + 1}; {end};")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The log in both formats, and what the tables hold in the end."""
    programs = os.environ.get("POSTGRES")
    assert programs, "there is no PostgreSQL: POSTGRES has to name the folder of its programs; see scripts/postgres"
    server = Server(programs)
    try:
        server.sql(TABLES)
        for slot in ("one", "two"):
            server.sql(f"SELECT pg_create_logical_replication_slot('{slot}', 'wal2json')")
        client = server.root / "client.sql"
        client.write_text(CLIENT)
        client.chmod(0o644)
        server.run("pgbench", *server.at(), "-n", "-f", client, "-c", "4", "-j", "2", "-t", "400", "--max-tries=20", f"--random-seed={SEED}")
        server.sql(history(random.Random(SEED)))
        folder = tmp_path_factory.mktemp("postgres")
        server.sql("SELECT pg_switch_wal()")
        for slot, options in (("one", ()), ("two", ("-o", "format-version=2"))):
            out = server.root / f"{slot}.json"
            end = server.sql("SELECT pg_current_wal_flush_lsn()").strip()
            server.run("pg_recvlogical", *server.at(), "-S", slot, "--start", "-f", out, f"--endpos={end}", "-o", "include-lsn=true", *options)
            shutil.copy(out, folder / f"{slot}.json")
        tables = {name: server.rows(f"SELECT * FROM {name}") for name in ("users", "whole")}
        columns = {
            name: server.sql(
                f"SELECT column_name FROM information_schema.columns WHERE table_name = '{name}' ORDER BY ordinal_position"
            ).split()
            for name in tables
        }
        yield folder, tables, columns
    finally:
        server.stop()


def compacted(windrow, path, table, *options):
    out = path.with_suffix(f".{table}.parquet")
    windrow("compact", path, "--key", "id", "--input-format", "ndjson", "-o", out, *options).ok()
    return pq.read_table(out).to_pylist()


def plain(row, columns):
    """A row in words that both have: wal2json writes times and arrays as PostgreSQL shows them."""
    row = {name: row[name] for name in columns}
    if "tags" in row and isinstance(row["tags"], list):
        row["tags"] = "{" + ",".join("NULL" if tag is None else str(tag) for tag in row["tags"]) + "}"
    if row.get("at") is not None:
        row["at"] = str(row["at"]).replace("T", " ")[:19]
    if row.get("score") is not None:
        row["score"] = float(row["score"])
    return row


def agree(found, expected, columns):
    found = sorted((plain(row, columns) for row in found), key=lambda row: row["id"])
    expected = sorted((plain(row, columns) for row in expected), key=lambda row: row["id"])
    assert len(expected) > 100
    assert found == expected


@pytest.mark.parametrize("table", ["users", "whole"])
@pytest.mark.parametrize("name, options", [
    ("one", ()),
    ("two", ()),
    ("two", ("--order-by", "lsn")),
    ("two", ("--memory-limit", "80MiB")),
])
def test_wal2json(windrow, logs, table, name, options):
    folder, tables, columns = logs
    found = compacted(windrow, folder / f"{name}.json", table, "--op-preset", "wal2json", "--table", f"public.{table}", *options)
    agree(found, tables[table], columns[table])


def test_the_log_has_what_it_is_for(logs):
    folder, _, columns = logs
    changes = [json.loads(line) for line in (folder / "two.json").open()]
    updates = [change for change in changes if change["action"] == "U" and change["table"] == "users"]
    names = [{column["name"] for column in change["columns"]} for change in updates]
    assert sum("bio" not in row for row in names) > 50, "large values that updates leave out"
    moved = lambda change: {c["name"]: c["value"] for c in change["identity"]}["id"] != change["columns"][0]["value"]
    assert sum(map(moved, updates)) > 20, "keys that change"
    assert {"I", "U", "D"} <= {change["action"] for change in changes}
    transactions = [json.loads(line) for line in (folder / "one.json").open()]
    assert max(len(transaction["change"]) for transaction in transactions) > 1


def test_a_table_has_to_be_named(windrow, logs, tmp_path):
    folder, _, _ = logs
    for name in ("one", "two"):
        run = windrow("compact", folder / f"{name}.json", "--input-format", "ndjson", "--op-preset", "wal2json", "--key", "id", "-o", tmp_path / "o.parquet")
        run.fails(3, "--table")


def debezium(folder, columns):
    """The changes of `users` as Debezium writes them, those of keys as a delete and a create."""
    for change in map(json.loads, (folder / "two.json").open()):
        if change["action"] not in "IUD" or change["table"] != "users":
            continue
        low = change["lsn"].split("/")
        source = {"lsn": (int(low[0], 16) << 32) + int(low[1], 16), "table": "users"}
        old = {column["name"]: column["value"] for column in change.get("identity", [])}
        old = {name: old.get(name) for name in columns} if old else None
        if change["action"] == "D":
            yield {"before": old, "after": None, "source": source, "op": "d"}
            continue
        new = {column["name"]: column["value"] for column in change["columns"]}
        new = {name: new.get(name, PLACEHOLDER) for name in columns}
        if change["action"] == "U" and old["id"] != new["id"]:
            yield {"before": old, "after": None, "source": source, "op": "d"}
            yield None
            yield {"before": None, "after": new, "source": source, "op": "c"}
        else:
            yield {"before": None, "after": new, "source": source, "op": "c" if change["action"] == "I" else "u"}


@pytest.mark.parametrize("options", [(), ("--order-by", "source.lsn")])
@pytest.mark.parametrize("wrapped", [False, True])
def test_debezium(windrow, logs, tmp_path, options, wrapped):
    folder, tables, columns = logs
    path = tmp_path / "events.json"
    with path.open("w") as out:
        for event in debezium(folder, columns["users"]):
            event = {"schema": {"type": "struct"}, "payload": event} if wrapped and event else event
            out.write(json.dumps(event) + "\n")
    found = compacted(windrow, path, "users", "--op-preset", "debezium", *options)
    agree(found, tables["users"], columns["users"])
