//! Settings of a session, which SQL can change with `SET windrow.sort = false`.

use datafusion::common::extensions_options;
use datafusion::config::ConfigExtension;

extensions_options! {
    /// Which operators are replaced.
    pub struct WindrowConfig {
        /// Sorts without a limit.
        pub sort: bool, default = true

        /// Merges of what several partitions sort, which become one with their sorts.
        pub fuse: bool, default = true

        /// Merges of inputs that are sorted already, in bounded memory. An input that is not in the order that a plan
        /// claims ends the query with an error, where stock goes on with rows out of order.
        pub merge: bool, default = false

        /// Exchanges of rows by a hash.
        pub exchange: bool, default = false

        /// Plans that keep the first or last row of each key.
        pub latest: bool, default = true

        /// Sorts with a limit of so many bytes and more, by estimate: DataFusion keeps those rows in memory.
        pub topk_bytes: usize, default = 64 << 20
    }
}

impl ConfigExtension for WindrowConfig {
    const PREFIX: &'static str = "windrow";
}
