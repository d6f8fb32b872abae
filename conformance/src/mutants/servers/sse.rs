//! A server of the transport of 2024-11-05: the mock behind a stream of events and a URL to post to, with at most
//! one planted fault of the transport.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, PipeWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::exchange::Transport;
use crate::http::Endpoint;
use crate::revision::Revision;
use crate::subject::{Exit, Life, Link, Subject};

/// The server with one fault, or none.
#[derive(Debug)]
pub(crate) struct SseMock {
    pub(crate) fault: &'static str,
}

impl Subject for SseMock {
    fn name(&self) -> String {
        format!("mock over HTTP+SSE {}", self.fault)
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn unreachable(&self, revision: Revision) -> Option<String> {
        (revision != Revision::V2024_11_05).then(|| "it has HTTP+SSE only".to_owned())
    }

    fn start(&self, _: Revision) -> io::Result<Link> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = Endpoint::parse(&format!("http://{}/sse", listener.local_addr()?)).unwrap();
        let server = Arc::new(Server { fault: self.fault, sessions: Mutex::default() });
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                // The suite may have seen enough.
                thread::spawn(move || drop(server.answer(socket)));
            }
        });
        Ok(Link::http(endpoint.sse(), None, Box::new(Forever)))
    }
}

/// The threads end with the program.
struct Forever;

impl Life for Forever {
    fn exit(&mut self) -> Option<Exit> {
        None
    }

    fn kill(&mut self) {}
}

struct Server {
    fault: &'static str,
    /// What the mock of each session reads.
    sessions: Mutex<BTreeMap<usize, PipeWriter>>,
}

impl Server {
    fn is(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn answer(&self, mut socket: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(socket.try_clone()?);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? <= 2 {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            head.push_str(&line);
        }
        let foreign = head.to_ascii_lowercase().contains("origin: http://evil");
        if foreign && !self.is("any-origin") {
            return socket.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        }
        if head.starts_with("GET ") {
            return self.stream(socket);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let session = head.split(['=', ' ']).nth(2).and_then(|id| id.parse::<usize>().ok());
        let mut sessions = self.sessions.lock().unwrap();
        // The first session of all has 0.
        let session = if self.is("one-for-all") { Some(0) } else { session };
        let Some(input) = session.and_then(|id| sessions.get_mut(&id)) else {
            return socket.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        body.push(b'\n');
        input.write_all(&body)?;
        socket.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted")
    }

    /// The stream of a session: the endpoint, then what the mock says.
    fn stream(&self, mut socket: TcpStream) -> io::Result<()> {
        let (input, write) = io::pipe()?;
        let (read, output) = io::pipe()?;
        thread::spawn(move || super::pipes::serve("", input, output));
        let id = {
            let mut sessions = self.sessions.lock().unwrap();
            let id = sessions.len();
            sessions.insert(id, write);
            id
        };
        let media = if self.is("plain-stream") { "text/plain" } else { "text/event-stream" };
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n")?;
        let event = match self.fault {
            "no-endpoint" => String::new(),
            "endpoint-as-message" => format!("data: /messages?id={id}\n\n"),
            "endpoint-elsewhere" => format!("event: endpoint\ndata: http://evil.example/?id={id}\n\n"),
            _ => format!("event: endpoint\ndata: /messages?id={id}\n\n"),
        };
        socket.write_all(event.as_bytes())?;
        for line in BufReader::new(read).lines() {
            let name = if self.is("unnamed-events") { "" } else { "event: message\n" };
            write!(socket, "{name}data: {}\n\n", line?)?;
        }
        Ok(())
    }
}
