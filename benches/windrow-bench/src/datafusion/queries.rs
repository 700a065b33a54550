//! The queries: the eleven of DataFusion's own bench of sorts, three of change logs, and all of TPC-H.

/// A query, with and without its order.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    /// The columns of an unsorted scan.
    pub(crate) columns: &'static str,
    pub(crate) table: &'static str,
    /// The part after `SELECT columns FROM table`, or the whole statement.
    pub(crate) rest: Rest,
}

pub(crate) enum Rest {
    /// Ordered by the first n columns.
    Sorted(usize),
    /// A complete statement.
    Whole(&'static str),
    /// The 22 queries of TPC-H, run in sequence.
    Published,
}

const WIDE: &str = "l_linenumber, l_suppkey, l_orderkey, l_partkey, l_quantity, l_extendedprice, l_discount, l_tax, \
    l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode";
const WIDEST: &str = "l_orderkey, l_suppkey, l_linenumber, l_comment, l_partkey, l_quantity, l_extendedprice, \
    l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode";
/// The latest row of each key of the change log.
pub(crate) const LATEST: &str = "SELECT id, lsn, op, payload, amount, ts FROM (SELECT *, row_number() OVER \
    (PARTITION BY id ORDER BY lsn DESC) rn FROM log) WHERE rn = 1";
const LOG: &str = "id, lsn, op, payload, amount, ts";

const fn lineitem(name: &'static str, columns: &'static str, key: usize) -> Query {
    Query { name, columns, table: "lineitem", rest: Rest::Sorted(key) }
}

const fn log(name: &'static str, rest: Rest) -> Query {
    Query { name, columns: LOG, table: "log", rest }
}

pub(crate) const QUERIES: [Query; 15] = [
    lineitem("q1", "l_linenumber, l_partkey", 1),
    lineitem("q2", "l_orderkey, l_partkey", 1),
    lineitem("q3", "l_comment, l_partkey", 1),
    lineitem("q4", "l_orderkey, l_linenumber, l_partkey", 2),
    lineitem("q5", "l_linenumber, l_suppkey, l_orderkey", 3),
    lineitem("q6", "l_linenumber, l_suppkey, l_orderkey, l_partkey", 3),
    lineitem("q7", WIDE, 3),
    lineitem("q8", "l_orderkey, l_suppkey, l_linenumber, l_comment", 4),
    lineitem("q9", "l_orderkey, l_suppkey, l_linenumber, l_comment, l_partkey", 4),
    lineitem("q10", WIDEST, 4),
    lineitem("q11", "l_shipmode, l_comment, l_partkey", 2),
    log("log-sort", Rest::Sorted(2)),
    log("log-latest", Rest::Whole(LATEST)),
    log(
        "log-distinct",
        Rest::Whole(
            "SELECT DISTINCT ON (id) id, lsn, op, payload, amount, ts FROM log ORDER BY id, lsn DESC",
        ),
    ),
    Query { name: "tpch", columns: "", table: "", rest: Rest::Published },
];

impl Query {
    /// Returns the statement, or `None` for TPC-H, whose queries are files.
    pub(crate) fn sql(&self) -> Option<String> {
        let Self { columns, table, .. } = self;
        match self.rest {
            Rest::Sorted(key) => {
                let order: Vec<String> = (1..=key).map(|column| column.to_string()).collect();
                Some(format!("SELECT {columns} FROM {table} ORDER BY {}", order.join(", ")))
            }
            Rest::Whole(sql) => Some(sql.to_owned()),
            Rest::Published => None,
        }
    }

    /// Returns the scan of the same columns without an order.
    pub(crate) fn scan(&self) -> String {
        format!("SELECT {} FROM {}", self.columns, self.table)
    }

    /// Returns the number of leading columns that must ascend.
    pub(crate) fn key(&self) -> usize {
        match self.rest {
            Rest::Sorted(key) => key,
            Rest::Whole(_) | Rest::Published => 0,
        }
    }
}
