//! Sockets, pipes and time of one exchange with a client.
//!
//! One thread a connection reads and tells; only the thread that plays writes. The order of what one connection
//! or pipe says is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, Guest, Invitation, Place};
use super::relay;
use crate::exchange::Transport;
use crate::subject::Exit;

/// A connection: over HTTP one socket, over stdio one run of the server program.
pub(super) type Conn = u64;

/// A longer head or line is no message.
const HEAD_LIMIT: usize = 1 << 20;
const BODY_LIMIT: usize = 64 << 20;

/// A client that does not read for so long is not written to any more.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Something that happened.
#[derive(Debug)]
pub(super) enum Event {
    /// A connection was made.
    Accepted(Conn),
    /// All connections that were made before the end of the client are known.
    Sealed,
    /// The client started the server program.
    Opened(Conn),
    /// A line for the server program.
    Line(Conn, Vec<u8>),
    /// The client closed the connection, or the input of the server program.
    Closed(Conn),
    /// An HTTP request.
    Request(Conn, WebRequest),
    /// Bytes that are no HTTP.
    Bad(Conn, String),
    /// A line that the client printed.
    Said(Vec<u8>),
    /// The output of the client has ended.
    Silent,
    /// A line of its standard error.
    Diagnostic(String),
}

/// An HTTP request as it came.
#[derive(Debug, Clone)]
pub(super) struct WebRequest {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether it was sent to the other origin.
    pub(super) elsewhere: bool,
    /// Whether the client, when it sent this, must have known that the session before this one is over.
    pub(super) informed: bool,
}

impl WebRequest {
    /// The values of a header, joined as one.
    pub(super) fn header(&self, wanted: &str) -> Option<String> {
        let values = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let values: Vec<_> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

type Writers = Arc<Mutex<BTreeMap<Conn, TcpStream>>>;

/// Tells events with the time at which they were seen.
#[derive(Debug, Clone)]
struct Teller(Sender<(Instant, Event)>);

impl Teller {
    /// Whether somebody listens.
    fn tell(&self, event: Event) -> bool {
        self.0.send((Instant::now(), event)).is_ok()
    }
}

/// The surroundings of one exchange.
pub(super) struct Stage {
    events: Receiver<(Instant, Event)>,
    writers: Writers,
    listeners: Vec<Listener>,
    life: Box<dyn crate::subject::Life>,
    started: Instant,
}

/// Where connections are accepted.
struct Listener {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    /// The ports of connections that this program made itself, to be seen after all that were made before.
    seals: Arc<Mutex<BTreeSet<u16>>>,
}

/// The addresses of an exchange, before the client runs.
pub(super) struct Doors {
    main: (TcpListener, SocketAddr),
    other: Option<(TcpListener, SocketAddr)>,
}

impl Doors {
    pub(super) fn open(transport: Transport) -> io::Result<Self> {
        let listen = || -> io::Result<_> {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let other = if transport == Transport::Http { Some(listen()?) } else { None };
        Ok(Self { main: listen()?, other })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.main.1
    }

    pub(super) fn other(&self) -> Option<SocketAddr> {
        self.other.as_ref().map(|(_, address)| *address)
    }
}

impl Stage {
    /// Starts the client.
    pub(super) fn set(
        doors: Doors,
        transport: Transport,
        client: &dyn Client,
        invitation: &Invitation,
    ) -> io::Result<Self> {
        let (tell, events) = channel();
        let tell = Teller(tell);
        let writers = Writers::default();
        let mut listeners = Vec::new();
        let numbers = Arc::new(AtomicU64::new(1));
        for (place, (listener, address)) in std::iter::once(doors.main).chain(doors.other).enumerate() {
            let (closing, seals) = (Arc::new(AtomicBool::new(false)), Arc::default());
            listeners.push(Listener { address, closing: Arc::clone(&closing), seals: Arc::clone(&seals) });
            let (tell, writers, numbers) = (tell.clone(), Arc::clone(&writers), Arc::clone(&numbers));
            thread::spawn(move || {
                for socket in listener.incoming() {
                    if closing.load(Ordering::Acquire) {
                        return;
                    }
                    let Ok(socket) = socket else { continue };
                    let port = socket.peer_addr().map(|peer| peer.port()).unwrap_or_default();
                    if seals.lock().unwrap_or_else(PoisonError::into_inner).contains(&port) {
                        tell.tell(Event::Sealed);
                        continue;
                    }
                    let _ = socket.set_nodelay(true);
                    let _ = socket.set_write_timeout(Some(WRITE_LIMIT));
                    let conn = numbers.fetch_add(1, Ordering::Relaxed);
                    let Ok(writer) = socket.try_clone() else { continue };
                    writers.lock().unwrap_or_else(PoisonError::into_inner).insert(conn, writer);
                    let tell = tell.clone();
                    tell.tell(Event::Accepted(conn));
                    thread::spawn(move || match transport {
                        Transport::Http => read_web(conn, socket, place == 1, &tell),
                        Transport::Stdio => read_lines(conn, socket, &tell),
                    });
                }
            });
        }
        let Guest { output, diagnostics, life } = client.start(invitation)?;
        let printed = tell.clone();
        thread::spawn(move || {
            lines(output, |line| printed.tell(Event::Said(line)));
            printed.tell(Event::Silent);
        });
        if let Some(diagnostics) = diagnostics {
            thread::spawn(move || {
                lines(diagnostics, |line| {
                    tell.tell(Event::Diagnostic(String::from_utf8_lossy(&line).into_owned()))
                });
            });
        }
        Ok(Self { events, writers, listeners, life, started: Instant::now() })
    }

    /// The invitation's place for these doors.
    pub(super) fn place(doors: &Doors, transport: Transport) -> Place {
        match transport {
            Transport::Http => Place::Url(format!("http://{}/mcp", doors.address())),
            Transport::Stdio => Place::Relay(doors.address()),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The next event and when it was seen; `None` when the time is over.
    pub(super) fn wait(&self, until: Duration) -> Option<(Duration, Event)> {
        let left = until.saturating_sub(self.now());
        let (at, event) = self.events.recv_timeout(left).ok()?;
        Some((at.saturating_duration_since(self.started), event))
    }

    /// Asks for [`Event::Sealed`]: connections are accepted in the order in which they were made. How often it will
    /// come.
    pub(super) fn seal(&self) -> usize {
        let sealed = |listener: &&Listener| {
            // Nobody looks at the port before it is known.
            let mut seals = listener.seals.lock().unwrap_or_else(PoisonError::into_inner);
            let port = TcpStream::connect(listener.address).and_then(|socket| socket.local_addr());
            port.is_ok_and(|address| seals.insert(address.port()))
        };
        self.listeners.iter().filter(sealed).count()
    }

    /// How the client ended, if it has.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        self.life.exit()
    }

    /// Writes to a connection; whether it could.
    pub(super) fn write(&self, conn: Conn, bytes: &[u8]) -> bool {
        let socket = {
            let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            writers.get(&conn).and_then(|socket| socket.try_clone().ok())
        };
        socket.is_some_and(|mut socket| socket.write_all(bytes).is_ok())
    }

    /// Writes to the output of a server program.
    pub(super) fn print(&self, conn: Conn, bytes: &[u8]) -> bool {
        bytes.chunks(1 << 20).all(|piece| self.frame(conn, relay::OUTPUT, piece))
    }

    /// Writes to the standard error of a server program.
    pub(super) fn complain(&self, conn: Conn, text: &str) -> bool {
        self.frame(conn, relay::DIAGNOSTIC, text.as_bytes())
    }

    /// Ends a server program.
    pub(super) fn leave(&self, conn: Conn, code: u8) -> bool {
        self.frame(conn, relay::EXIT, &[code])
    }

    fn frame(&self, conn: Conn, kind: u8, bytes: &[u8]) -> bool {
        let mut frame = vec![kind];
        frame.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        frame.extend_from_slice(bytes);
        self.write(conn, &frame)
    }

    /// Closes a connection at once.
    pub(super) fn cut(&self, conn: Conn) {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = writers.remove(&conn) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.life.kill();
        for Listener { address, closing, .. } in &self.listeners {
            closing.store(true, Ordering::Release);
            // The listener waits for a connection, not for the flag.
            let _ = TcpStream::connect(address);
        }
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in writers.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Tells each line without its end; a last one without an end, too.
fn lines(mut input: impl Read, mut tell: impl FnMut(Vec<u8>) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut rest = &buffer[..read];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            if !tell(std::mem::take(&mut line)) {
                return;
            }
        }
        line.extend_from_slice(rest);
        if line.len() > BODY_LIMIT {
            break;
        }
    }
    if !line.is_empty() {
        tell(line);
    }
}

fn read_lines(conn: Conn, socket: TcpStream, tell: &Teller) {
    tell.tell(Event::Opened(conn));
    lines(socket, |line| tell.tell(Event::Line(conn, line)));
    tell.tell(Event::Closed(conn));
}

fn read_web(conn: Conn, mut socket: TcpStream, elsewhere: bool, tell: &Teller) {
    let mut buffer = vec![0; 64 << 10];
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        match take_request(&mut bytes, elsewhere) {
            Ok(Some(request)) => {
                if !tell.tell(Event::Request(conn, request)) {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(problem) => {
                tell.tell(Event::Bad(conn, problem));
                break;
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    tell.tell(Event::Closed(conn));
}

/// Takes a whole request off the front of the bytes, if there is one.
fn take_request(bytes: &mut Vec<u8>, elsewhere: bool) -> Result<Option<WebRequest>, String> {
    let mut lines = [httparse::EMPTY_HEADER; 128];
    let mut head = httparse::Request::new(&mut lines);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() > HEAD_LIMIT => {
            return Err("a head without an end".to_owned());
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("a request that is no HTTP ({error})")),
    };
    let headers: Vec<_> = head
        .headers
        .iter()
        .map(|line| (line.name.to_owned(), String::from_utf8_lossy(line.value).into_owned()))
        .collect();
    let mut request = WebRequest {
        method: head.method.unwrap_or_default().to_owned(),
        target: head.path.unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
        elsewhere,
        informed: false,
    };
    let chunked = request.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
    let used = if chunked {
        let Some((body, used)) = chunks(&bytes[length..])? else { return Ok(None) };
        request.body = body;
        length + used
    } else {
        let size = match request.header("content-length") {
            None => 0,
            Some(text) => text.parse::<usize>().map_err(|_| format!("a length of `{text}`"))?,
        };
        if size > BODY_LIMIT {
            return Err(format!("a body of {size} bytes"));
        }
        if bytes.len() < length + size {
            return Ok(None);
        }
        request.body = bytes[length..length + size].to_vec();
        length + size
    };
    bytes.drain(..used);
    Ok(Some(request))
}

/// A chunked body and how many bytes it took, if all of it is there.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(end) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&bytes[at..at + end]).into_owned();
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("a chunk of `{line}` bytes"))?;
        at += end + 2;
        if size > BODY_LIMIT || body.len() + size > BODY_LIMIT {
            return Err("a body without an end".to_owned());
        }
        if bytes.len() < at + size + 2 {
            return Ok(None);
        }
        body.extend_from_slice(&bytes[at..at + size]);
        at += size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_one_by_one_however_they_are_cut() {
        let text = b"POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let mut bytes = Vec::new();
        let mut taken = Vec::new();
        for byte in text {
            bytes.push(*byte);
            while let Some(request) = take_request(&mut bytes, false).unwrap() {
                taken.push((request.method, request.target, request.body));
            }
        }
        let expected = [("POST", "/mcp", "{}"), ("POST", "/a", "ab"), ("GET", "/", "")];
        let taken: Vec<_> = taken
            .iter()
            .map(|(method, target, body)| (&**method, &**target, std::str::from_utf8(body).unwrap()))
            .collect();
        assert_eq!(taken, expected);
        assert!(take_request(&mut b"nonsense\r\n\r\n".to_vec(), false).is_err());
    }

    #[test]
    fn lines_are_told_without_their_ends() {
        let mut told = Vec::new();
        lines(&b"a\nb\r\n\nc"[..], |line| {
            told.push(String::from_utf8(line).unwrap());
            true
        });
        assert_eq!(told, ["a", "b\r", "", "c"]);
    }
}
