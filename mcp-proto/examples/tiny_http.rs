//! HTTP without a runtime and without a service: the exchange of the core on `tiny_http`, a server that
//! blocks. A few threads, each with one request at a time.
//!
//! ```sh
//! cargo run -p mcp-proto --example tiny_http -- 127.0.0.1:8000
//! ```
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // a driver owns the clock and the terminal

#[allow(dead_code)] // it serves one revision, so it has a configuration of its own
mod tools;

use std::error::Error;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::{env, thread, time};

use mcp_proto::http::{Endpoint, Exchange, Head, Response, ResponseHead, Settings, Taken};
use mcp_proto::model::method::CallTool;
use mcp_proto::model::{CallToolResult, Implementation, ProtocolVersion, ServerCapabilities};
use mcp_proto::server::{Call, Channel, Config, Delivery, Event, Incoming, Pending, Progress};
use mcp_proto::time::Instant;
use tiny_http::{Header, Request, Server, StatusCode};

/// Requests at a time; more wait.
pub(crate) const THREADS: usize = 8;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let server = Server::http(address)?;
    eprintln!("listening on http://{}/mcp", server.server_addr());
    serve(&Arc::new(server));
    Ok(())
}

/// Serves until the server is unblocked, once for each thread.
pub(crate) fn serve(server: &Arc<Server>) {
    // Only 2026-07-28, where each request stands for itself: sessions are the service's.
    let config = Config::builder(Implementation::new("three-tools", "1.0.0"))
        .capabilities(ServerCapabilities::new().tools(false))
        .versions([ProtocolVersion::V2026_07_28])
        .build();
    let endpoint = Endpoint::new(config, Settings::default());
    let start = time::Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Ok(request) = server.recv() {
                    // A client that has gone is no one's trouble.
                    let _ = handle(&endpoint, request, start);
                }
            });
        }
    });
}

/// A request without its body.
struct RequestHead {
    method: String,
    target: String,
    headers: Vec<Header>,
}

impl Head for RequestHead {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    fn authority(&self) -> Option<&str> {
        None // a target with a host in it is at no path that is served here
    }

    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let these = move |header: &&Header| header.field.as_str().as_str().eq_ignore_ascii_case(name);
        self.headers.iter().filter(these).map(|header| header.value.as_bytes())
    }
}

fn handle(endpoint: &Endpoint, mut request: Request, start: time::Instant) -> io::Result<()> {
    let head = RequestHead {
        method: request.method().as_str().to_owned(),
        target: request.url().to_owned(),
        headers: request.headers().to_vec(),
    };
    if head.path() != "/mcp" {
        return answer(request, Response::refused(404, "there is nothing at this path"));
    }
    if let Err(response) = endpoint.admit(&head) {
        return answer(request, response);
    }
    let most = endpoint.config().limits.max_message;
    let mut body = Vec::new();
    request.as_reader().take(most as u64 + 1).read_to_end(&mut body)?;
    if body.len() > most {
        return answer(request, Response::refused(413, format_args!("longer than {most} bytes")));
    }
    let post = match endpoint.take(&head, &body) {
        Taken::Modern(post) => post,
        Taken::Refused(response) => return answer(request, response),
        _ => return answer(request, Response::refused(400, "there are no sessions here")),
    };
    let now = || Instant::from_origin(start.elapsed());
    let mut out = Vec::new();
    let (mut exchange, event) = Exchange::start(endpoint, post, now(), &mut out);
    let slow = match event {
        Some(Event::Request(incoming)) => begin(&mut exchange, incoming, &mut out),
        _ => None,
    };
    let Some((pending, steps)) = slow else {
        let head = exchange.take_head().unwrap_or(ResponseHead::new(500));
        let mut response = Response::empty(head);
        response.body = out;
        return answer(request, response);
    };
    let mut stream = Stream { request: Some(request), writer: None };
    if stream.run(&mut exchange, pending, steps, &now, &mut out).is_err() {
        // The client has closed the response: that cancels the call, and there is nothing else to stop.
        exchange.peer_closed();
    }
    Ok(())
}

/// Answers what can be answered at once; a call that takes time comes back.
fn begin(
    exchange: &mut Exchange,
    incoming: Incoming<'_>,
    out: &mut Vec<u8>,
) -> Option<(Pending<CallTool>, u32)> {
    let version = incoming.version;
    let _: Delivery = match incoming.typed() {
        Ok(Call::ListTools(pending, params)) => match tools::list(params.cursor.as_deref()) {
            Ok(result) => exchange.respond(pending, &result, out),
            Err(error) => exchange.fail(pending, &error, out),
        },
        Ok(Call::CallTool(pending, params)) => match tools::call(version, &params) {
            Ok(tools::Work::Done(result)) => exchange.respond(pending, &result, out),
            Ok(tools::Work::Slow { steps }) => return Some((pending, steps)),
            Err(error) => exchange.fail(pending, &error, out),
        },
        Ok(call) => exchange.refuse(call.not_found(), out),
        Err(refusal) => exchange.refuse(refusal, out),
    };
    None
}

/// The response of a call that takes time. The request becomes a writer once the head is known.
struct Stream {
    request: Option<Request>,
    writer: Option<Box<dyn Write + Send>>,
}

impl Stream {
    fn run(
        &mut self,
        exchange: &mut Exchange,
        pending: Pending<CallTool>,
        steps: u32,
        now: &impl Fn() -> Instant,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        for step in 1..=steps {
            thread::sleep(tools::STEP);
            let progress = Progress::new(step.into()).of(steps.into());
            let _ = exchange.progress(&pending, progress, out);
            // Comments for a silent stream, and the end of a request that takes too long.
            while exchange.next_deadline().is_some_and(|at| at <= now())
                && exchange.handle_timeout(now(), out).is_some()
            {}
            self.write(exchange, out)?;
        }
        let result = CallToolResult::text(format!("{steps} steps"));
        let _ = exchange.respond(pending, &result, out);
        self.write(exchange, out)?;
        match &mut self.writer {
            Some(writer) => {
                writer.write_all(b"0\r\n\r\n")?;
                writer.flush()
            }
            None => Ok(()),
        }
    }

    /// Writes what there is. `tiny_http` would wait for more, so the pieces are made here.
    fn write(&mut self, exchange: &mut Exchange, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(head) = exchange.take_head()
            && let Some(request) = self.request.take()
        {
            if exchange.is_over() {
                let mut response = Response::empty(head);
                response.body = std::mem::take(out);
                return answer(request, response);
            }
            let mut writer = request.into_writer();
            write!(writer, "HTTP/1.1 {} OK\r\n", head.status)?;
            for (name, value) in &head.headers {
                write!(writer, "{name}: {value}\r\n")?;
            }
            write!(writer, "transfer-encoding: chunked\r\n\r\n")?;
            self.writer = Some(writer);
        }
        if let Some(writer) = &mut self.writer
            && !out.is_empty()
        {
            write!(writer, "{:x}\r\n", out.len())?;
            writer.write_all(out)?;
            writer.write_all(b"\r\n")?;
            writer.flush()?;
            out.clear();
        }
        Ok(())
    }
}

/// Answers with all of it.
fn answer(request: Request, response: Response) -> io::Result<()> {
    let headers = response.head.headers.iter();
    let headers = headers.filter_map(|(name, value)| Header::from_bytes(*name, value.as_bytes()).ok());
    let length = Some(response.body.len());
    let status = StatusCode(response.head.status);
    request.respond(tiny_http::Response::new(status, headers.collect(), &*response.body, length, None))
}
