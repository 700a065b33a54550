//! An HTTP proxy that forwards requests or injects faults.
//!
//! Each connection carries one request: the response closes the connection, so clients open a new
//! one.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `PUT` etc.
    pub method: String,
    /// Including the query.
    pub path: String,
    /// Value of the `range` header, if present.
    pub range: Option<String>,
    /// Number of earlier requests.
    pub ordinal: usize,
}

/// The treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Forwards the request.
    None,
    /// Responds with this status without forwarding.
    Status(u16),
    /// Closes the connection without forwarding.
    Refused,
    /// Truncates the response in the middle.
    Cut,
    /// Forwards the request and drops the response.
    Lost,
    /// Pauses in the middle of the response, in milliseconds.
    Slow(u64),
}

type Plan = Arc<dyn Fn(&Request) -> Fault + Send + Sync>;

struct Shared {
    server: SocketAddr,
    plan: Mutex<Plan>,
    seen: Mutex<Vec<Request>>,
}

/// A proxy on background threads.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// Starts a proxy for `server` that forwards everything.
    ///
    /// # Panics
    /// If the proxy cannot start.
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let plan: Plan = Arc::new(|_| Fault::None);
        let shared = Arc::new(Shared { server, plan: Mutex::new(plan), seen: Mutex::default() });
        let of_threads = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&of_threads);
                // An I/O error on either side ends the connection.
                std::thread::spawn(move || drop(serve(client, &shared)));
            }
        });
        Self { address, shared }
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the plan of faults.
    pub fn go_wrong(&self, plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) {
        *lock(&self.shared.plan) = Arc::new(plan);
    }

    /// Clears the recorded requests, and forwards everything again.
    pub fn reset(&self) {
        self.go_wrong(|_| Fault::None);
        lock(&self.shared.seen).clear();
    }

    /// Returns the requests since the last reset.
    pub fn seen(&self) -> Vec<Request> {
        lock(&self.shared.seen).clone()
    }
}

fn serve(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let Some((head, body)) = message(&mut client)? else { return Ok(()) };
    let mut words = head.split_whitespace();
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut request = Request { method: word(), path: word(), range: None, ordinal: 0 };
    request.range = header(&head, "range").map(str::to_owned);
    {
        let mut seen = lock(&shared.seen);
        request.ordinal = seen.len();
        seen.push(request.clone());
    }
    // Called without the lock: a plan may wait for another request.
    let plan = Arc::clone(&lock(&shared.plan));
    let fault = plan(&request);
    match fault {
        Fault::Refused => return client.shutdown(Shutdown::Both),
        Fault::Status(status) => {
            let code = if status == 403 { "ExpiredToken" } else { "InternalError" };
            let text = format!("<Error><Code>{code}</Code><Message>as planned</Message></Error>");
            return write!(
                client,
                "HTTP/1.1 {status} planned\r\ncontent-type: application/xml\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{text}",
                text.len()
            );
        }
        Fault::None | Fault::Cut | Fault::Lost | Fault::Slow(_) => {}
    }
    let mut server = TcpStream::connect(shared.server)?;
    let (line, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
    write!(server, "{line}\r\nconnection: close\r\n{headers}")?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(0, |at| at + 4);
    let middle = end + (answer.len() - end) / 2;
    match fault {
        Fault::Lost => return client.shutdown(Shutdown::Both),
        Fault::Cut => {
            client.write_all(&answer[..middle])?;
            return client.shutdown(Shutdown::Both);
        }
        Fault::Slow(milliseconds) => {
            client.write_all(&answer[..middle])?;
            client.flush()?;
            std::thread::sleep(Duration::from_millis(milliseconds));
            client.write_all(&answer[middle..])?;
        }
        Fault::None | Fault::Status(_) | Fault::Refused => client.write_all(&answer)?,
    }
    client.flush()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let of_name = |line: &'a str| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    };
    head.lines().find_map(of_name)
}

/// Reads a request's head and body; returns `None` if the client closed the connection.
fn message(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        match client.read(&mut chunk)? {
            0 => return Ok(None),
            read => bytes.extend_from_slice(&chunk[..read]),
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let rest = length.unwrap_or(0_usize).saturating_sub(body.len());
    client.take(rest as u64).read_to_end(&mut body)?;
    Ok(Some((head, body)))
}
