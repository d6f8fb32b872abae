//! Between a client and a server over HTTP.
//!
//! Each connection of the client has one to the server, and bytes pass on it as they are: framing, order, ends and
//! breaks of one side are those of the other. Only heads of requests are written anew, with the server's own
//! authority, and without the encodings that would hide what the answer says.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mcp_proto::codec::{SseDecoder, SseFrame};

use super::tape::{MESSAGE_LIMIT, Party};
use super::wire::{self, AnswerHead, RequestHead};
use super::{Shared, on_signals, say};
use crate::http::Endpoint;
use crate::http::framing::{Framing, HEAD_LIMIT, header};

/// More connections at a time are refused.
const CONNECTIONS: usize = 1_000;

/// How long the server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Passes requests on until a signal comes.
///
/// # Errors
///
/// The server cannot be reached, the address is taken, or the recording cannot be written.
pub(super) fn record(upstream: &str, listen: &str, shared: &Shared) -> Result<ExitCode, String> {
    let endpoint = Endpoint::parse(upstream).map_err(|problem| format!("`--http`: {problem}"))?;
    let unreachable = |error: io::Error| format!("`--http {upstream}`: cannot be reached: {error}");
    let mut addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map_err(unreachable)?;
    let address = addresses.next().ok_or_else(|| unreachable(ErrorKind::NotFound.into()))?;
    TcpStream::connect_timeout(&address, CONNECT).map_err(unreachable)?;
    let place = if listen.contains(':') { listen.to_owned() } else { format!("127.0.0.1:{listen}") };
    let taken = |error: io::Error| format!("`--listen {listen}`: {error}");
    let listener = TcpListener::bind(&place).map_err(taken)?;
    let own = listener.local_addr().map_err(taken)?;
    let (tell, told) = channel();
    on_signals(move |_| {
        let _ = tell.send(());
    });
    say_where(own, &endpoint.target);
    let proxy = Proxy {
        shared: shared.clone(),
        upstream: address,
        authority: endpoint.authority,
        own: own.to_string(),
        numbers: Arc::new(AtomicU64::new(1)),
        open: Arc::new(AtomicUsize::new(0)),
    };
    thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(socket) = socket else { continue };
            let proxy = proxy.clone();
            if proxy.open.load(Ordering::Acquire) < CONNECTIONS {
                proxy.open.fetch_add(1, Ordering::AcqRel);
                thread::spawn(move || {
                    proxy.serve(socket);
                    proxy.open.fetch_sub(1, Ordering::AcqRel);
                });
            }
        }
    });
    // Without signals it runs until it is killed.
    if told.recv().is_err() {
        loop {
            thread::park();
        }
    }
    shared.save()?;
    Ok(ExitCode::SUCCESS)
}

fn say_where(own: SocketAddr, target: &str) {
    let _ = writeln!(io::stderr(), "listening on http://{own}{target}");
}

#[derive(Clone)]
struct Proxy {
    shared: Shared,
    upstream: SocketAddr,
    authority: String,
    own: String,
    numbers: Arc<AtomicU64>,
    open: Arc<AtomicUsize>,
}

/// The requests on one connection that have no complete answer.
#[derive(Default)]
struct Pending {
    /// The number of each, and whether its method is HEAD.
    queue: VecDeque<(u64, bool)>,
    /// Whether one side has broken off.
    over: bool,
}

type Shore = Arc<Mutex<Pending>>;

fn lock(shore: &Shore) -> MutexGuard<'_, Pending> {
    shore.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    fn serve(&self, client: TcpStream) {
        let server = match TcpStream::connect_timeout(&self.upstream, CONNECT) {
            Ok(server) => server,
            // Nobody listens there any more: as without a proxy the connection fails.
            Err(error) => return say(&format!("the server cannot be reached: {error}")),
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else { return };
        let shore = Shore::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                let up = Upward { proxy: self, shore: &shore, state: Reading::Head(Vec::new()) };
                self.carry(from_client, &server, up, &shore, Party::Client);
            });
            let down = Downward { shared: &self.shared, shore: &shore, state: Telling::Head(Vec::new()) };
            self.carry(from_server, &client, down, &shore, Party::Server);
        });
    }

    fn carry(&self, mut from: TcpStream, mut to: &TcpStream, mut way: impl Way, shore: &Shore, by: Party) {
        let mut buffer = vec![0; 64 << 10];
        let mut out = Vec::new();
        let broken = loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break false,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break true,
            };
            out.clear();
            way.take(&buffer[..read], &mut out);
            if to.write_all(&out).is_err() {
                // The other side has gone, and is told apart from this one.
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
                return self
                    .broken_off(shore, if by == Party::Client { Party::Server } else { Party::Client });
            }
        };
        way.end();
        self.broken_off(shore, by);
        let _ = to.shutdown(if broken { Shutdown::Both } else { Shutdown::Write });
    }

    /// Notes the answers that will not be complete.
    fn broken_off(&self, shore: &Shore, by: Party) {
        let mut tape = self.shared.tape();
        let mut pending = lock(shore);
        if !std::mem::replace(&mut pending.over, true) {
            for (number, _) in pending.queue.drain(..) {
                tape.cut(number, by);
            }
        }
    }
}

/// One direction of a connection.
trait Way {
    /// Notes what passes, and gives what is to be passed on.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>);

    /// Nothing more comes.
    fn end(&mut self) {}
}

struct Upward<'p> {
    proxy: &'p Proxy,
    shore: &'p Shore,
    state: Reading,
}

enum Reading {
    Head(Vec<u8>),
    Body {
        head: RequestHead,
        number: u64,
        body: Framing,
        data: Vec<u8>,
    },
    /// It is no HTTP any more.
    Opaque,
}

impl Way for Upward<'_> {
    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        loop {
            match &mut self.state {
                Reading::Opaque => return out.extend_from_slice(bytes),
                Reading::Head(_) if bytes.is_empty() => return,
                Reading::Head(kept) => {
                    let before = kept.len();
                    kept.extend_from_slice(bytes);
                    // No head is complete without a line that ends.
                    if !bytes.contains(&b'\n') && kept.len() < HEAD_LIMIT {
                        return;
                    }
                    match wire::request(kept) {
                        Ok(None) => return,
                        Ok(Some((head, length))) => {
                            bytes = &bytes[length - before..];
                            let text = kept[..length].to_vec();
                            self.begin(head, &text, out);
                        }
                        Err(_) => {
                            out.append(kept);
                            self.state = Reading::Opaque;
                            return;
                        }
                    }
                }
                Reading::Body { head, number, body, data } => {
                    let Ok((taken, done)) = body.take(bytes, |bytes| keep(data, bytes)) else {
                        self.state = Reading::Opaque;
                        continue;
                    };
                    out.extend_from_slice(&bytes[..taken]);
                    bytes = &bytes[taken..];
                    if !done {
                        return;
                    }
                    let mut tape = self.proxy.shared.tape();
                    tape.request(*number, &head.method, &head.target, &head.headers, data);
                    drop(tape);
                    self.state = Reading::Head(Vec::new());
                }
            }
        }
    }
}

impl Upward<'_> {
    fn begin(&mut self, head: RequestHead, text: &[u8], out: &mut Vec<u8>) {
        let number = self.proxy.numbers.fetch_add(1, Ordering::Relaxed);
        let Ok(body) = Framing::of_request(&head.headers) else {
            out.extend_from_slice(text);
            self.state = Reading::Opaque;
            return;
        };
        lock(self.shore).queue.push_back((number, head.method == "HEAD"));
        rewrite(text, &self.proxy.authority, &self.proxy.own, out);
        self.state = Reading::Body { head, number, body, data: Vec::new() };
    }
}

/// The head with the authority of the server in place of the proxy's, and without encodings of the answer.
fn rewrite(head: &[u8], authority: &str, own: &str, out: &mut Vec<u8>) {
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if name.eq_ignore_ascii_case(b"host") {
            out.extend_from_slice(format!("Host: {authority}\r\n").as_bytes());
        } else if name.eq_ignore_ascii_case(b"origin")
            && line[name.len() + 1..].trim_ascii() == format!("http://{own}").as_bytes()
        {
            out.extend_from_slice(format!("Origin: http://{authority}\r\n").as_bytes());
        } else if !name.eq_ignore_ascii_case(b"accept-encoding") {
            out.extend_from_slice(line);
        }
    }
}

/// A body that is too long to be recorded is not kept whole.
fn keep(data: &mut Vec<u8>, bytes: &[u8]) {
    let room = MESSAGE_LIMIT.saturating_sub(data.len()).min(bytes.len());
    data.extend_from_slice(&bytes[..room]);
}

struct Downward<'p> {
    shared: &'p Shared,
    shore: &'p Shore,
    state: Telling,
}

#[allow(clippy::large_enum_variant, reason = "one a connection")]
enum Telling {
    Head(Vec<u8>),
    Body { head: AnswerHead, number: u64, body: Framing, data: Vec<u8>, events: Option<SseDecoder> },
    Opaque,
}

impl Way for Downward<'_> {
    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        // It is passed on as it is.
        out.extend_from_slice(bytes);
        loop {
            match &mut self.state {
                Telling::Opaque => return,
                Telling::Head(_) if bytes.is_empty() => return,
                Telling::Head(kept) => {
                    let before = kept.len();
                    kept.extend_from_slice(bytes);
                    if !bytes.contains(&b'\n') && kept.len() < HEAD_LIMIT {
                        return;
                    }
                    match wire::answer(kept) {
                        Ok(None) => return,
                        Ok(Some((head, length))) => {
                            bytes = &bytes[length - before..];
                            self.begin(head);
                        }
                        Err(_) => self.state = Telling::Opaque,
                    }
                }
                Telling::Body { number, body, data, events, .. } => {
                    let Ok((taken, done)) = body.take(bytes, |bytes| keep(data, bytes)) else {
                        self.state = Telling::Opaque;
                        return;
                    };
                    bytes = &bytes[taken..];
                    if let Some(decoder) = events {
                        tell(self.shared, *number, decoder, data);
                        data.clear();
                    }
                    if !done {
                        return;
                    }
                    self.complete();
                }
            }
        }
    }

    fn end(&mut self) {
        if matches!(&self.state, Telling::Body { body: Framing::UntilClose, .. }) {
            self.complete();
        }
    }
}

impl Downward<'_> {
    fn begin(&mut self, head: AnswerHead) {
        if (100..200).contains(&head.status) && head.status != 101 {
            self.state = Telling::Head(Vec::new());
            return;
        }
        let asked = lock(self.shore).queue.front().copied();
        let (Some((number, to_head)), true) = (asked, head.status != 101) else {
            self.state = Telling::Opaque;
            return;
        };
        let Ok(body) = Framing::of_answer(head.status, &head.headers, to_head) else {
            self.state = Telling::Opaque;
            return;
        };
        let kind = header(&head.headers, "content-type").unwrap_or_default();
        let media = kind.split(';').next().unwrap_or_default().trim();
        let events = media.eq_ignore_ascii_case("text/event-stream").then(|| {
            self.shared.tape().opened(number, head.status, &head.headers);
            SseDecoder::new(MESSAGE_LIMIT)
        });
        self.state = Telling::Body { head, number, body, data: Vec::new(), events };
        // A body without bytes is complete.
        if matches!(&self.state, Telling::Body { body: Framing::Length(0), .. }) {
            self.complete();
        }
    }

    fn complete(&mut self) {
        let state = std::mem::replace(&mut self.state, Telling::Head(Vec::new()));
        let Telling::Body { head, number, data, events, .. } = state else { return };
        let mut tape = self.shared.tape();
        let mut pending = lock(self.shore);
        pending.queue.pop_front();
        match events {
            // Its end was told when the client left.
            Some(_) if pending.over => {}
            Some(_) => tape.ended(number),
            None => tape.answer(number, head.status, &head.headers, &data),
        }
    }
}

/// Notes the events that are complete.
fn tell(shared: &Shared, number: u64, decoder: &mut SseDecoder, mut data: &[u8]) {
    let mut tape = shared.tape();
    while let Some(frame) = decoder.next_frame(&mut data) {
        match frame {
            SseFrame::Event(event) => tape.event(number, event.name, event.id, event.data),
            SseFrame::TooLong { .. } => tape.event(number, "message", None, b"(an event that is too long)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_the_proxy_is_written_anew() {
        let head = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:9\r\nOrigin: http://127.0.0.1:9\r\nAccept-Encoding: gzip\r\nX-Odd:  a:b \r\n\r\n";
        let mut out = Vec::new();
        rewrite(head, "server:80", "127.0.0.1:9", &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "POST /mcp HTTP/1.1\r\nHost: server:80\r\nOrigin: http://server:80\r\nX-Odd:  a:b \r\n\r\n"
        );
        let mut other = Vec::new();
        rewrite(b"GET / HTTP/1.1\r\nOrigin: http://evil.example\r\n\r\n", "s:1", "p:1", &mut other);
        assert!(String::from_utf8(other).unwrap().contains("Origin: http://evil.example\r\n"));
    }
}
