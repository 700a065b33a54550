//! Serves a directory as an object store until killed: `object-server DIRECTORY [PORT]`.

use std::path::PathBuf;

use windrow_cloud_tests::{ACCESS_KEY, SECRET_KEY, Server};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let directory: PathBuf = arguments.next().expect("a directory").into();
    let port = arguments.next().map_or(0, |port| {
        port.to_str().and_then(|port| port.parse().ok()).expect("the number of a port")
    });
    let server = Server::start(&directory, port);
    println!("http://{} {ACCESS_KEY} {SECRET_KEY:?}", server.address());
    loop {
        std::thread::park();
    }
}
