//! A proxy of HTTP that looks at each request, and lets it pass or goes wrong.
//!
//! A connection has one request: what comes back says that it is closed, so that clients begin another.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a client asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET` and the like.
    pub method: String,
    /// With the query.
    pub path: String,
    /// The value of the header `range`, if it has one.
    pub range: Option<String>,
    /// How many requests there were before it.
    pub ordinal: usize,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It passes.
    None,
    /// It is not passed on, and answered with this status.
    Status(u16),
    /// It is not passed on, and the connection is closed.
    Refused,
    /// The answer ends in its middle.
    Cut,
    /// It is done, and the answer is lost.
    Lost,
    /// The answer stops for so many milliseconds in its middle.
    Slow(u64),
}

type Plan = Arc<dyn Fn(&Request) -> Fault + Send + Sync>;

struct Shared {
    server: SocketAddr,
    plan: Mutex<Plan>,
    seen: Mutex<Vec<Request>>,
}

/// A proxy on threads that end with the process.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// A proxy before `server` that lets everything pass.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let plan: Plan = Arc::new(|_| Fault::None);
        let shared = Arc::new(Shared { server, plan: Mutex::new(plan), seen: Mutex::default() });
        let of_threads = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&of_threads);
                // What breaks off on either side ends the connection.
                std::thread::spawn(move || drop(serve(client, &shared)));
            }
        });
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Decides by `plan` from now on.
    pub fn go_wrong(&self, plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) {
        *lock(&self.shared.plan) = Arc::new(plan);
    }

    /// Forgets what was seen, and lets everything pass.
    pub fn reset(&self) {
        self.go_wrong(|_| Fault::None);
        lock(&self.shared.seen).clear();
    }

    /// The requests that came since.
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
    // Not under the lock: a plan may wait for another request.
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

/// The head of a request and its body; none if the client has nothing more to ask.
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
