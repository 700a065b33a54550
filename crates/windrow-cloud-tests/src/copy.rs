//! Copies an object to a file in ranges of 8 MiB, fetching the next range while writing the current
//! one. Measures the bare transfer. `ranged-copy BUCKET KEY FILE`, with `AWS_*` in the environment.

use std::fs::File;
use std::io::Write;

use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;

const RANGE: u64 = 8 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().expect("BUCKET KEY FILE");
    let (bucket, key, file) = (argument(), Path::from(argument()), argument());
    let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build().expect("a store");
    let mut file = File::create(file).expect("a file");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let size = store.head(&key).await.expect("an object").size;
        let starts = (0..size).step_by(RANGE as usize);
        let ranges = starts.map(|start| store.get_range(&key, start..size.min(start + RANGE)));
        let mut ranges = futures_util::stream::iter(ranges).buffered(2);
        while let Some(bytes) = ranges.next().await {
            file.write_all(&bytes.expect("a range")).expect("written");
        }
    });
}
