//! s3s-fs on a port of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::channel;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;

/// What signs requests.
pub const ACCESS_KEY: &str = "tester";
/// Its other half.
pub const SECRET_KEY: &str = "a secret of no worth";

/// A server on a thread that ends with the process.
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Serves `directory`, whose directories are buckets, on `port`; on any that is free if that is 0.
    ///
    /// # Panics
    /// If it cannot be started.
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
                        // A client that went away is no fault of the server's.
                        let _ = server.serve_connection(TokioIo::new(socket), service).await;
                    });
                }
            });
        });
        Self { address: receiver.recv().expect("it has started") }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
