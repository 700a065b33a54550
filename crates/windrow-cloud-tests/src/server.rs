//! An s3s-fs server on its own port.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::channel;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;

/// The access key of requests.
pub const ACCESS_KEY: &str = "tester";
/// The secret key of requests.
pub const SECRET_KEY: &str = "a secret of no worth";

/// A server on a background thread.
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Serves `directory`, with subdirectories as buckets, on `port`, or on any free port if 0.
    ///
    /// # Panics
    /// If the server cannot start.
    pub fn start(directory: &Path, port: u16) -> Self {
        let files = FileSystem::new(directory).expect("a directory");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
                sender.send(listener.local_addr().expect("an address")).expect("a receiver");
                loop {
                    let Ok((socket, _)) = listener.accept().await else { continue };
                    let service = service.clone();
                    tokio::spawn(async move {
                        let server = Builder::new(TokioExecutor::new());
                        // Disconnecting clients are not an error of the server.
                        let _ = server.serve_connection(TokioIo::new(socket), service).await;
                    });
                }
            });
        });
        Self { address: receiver.recv().expect("it has started") }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
