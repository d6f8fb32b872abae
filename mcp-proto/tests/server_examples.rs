//! The examples at work, over pipes and sockets of the operating system.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test says no by panicking
#![allow(clippy::duplicate_mod)] // each example has the tools as a module of its own

#[path = "../examples/mio_loop.rs"]
#[allow(dead_code)] // `main`
mod mio_loop;
#[path = "../examples/std_threads.rs"]
#[allow(dead_code)]
mod std_threads;
#[path = "../examples/stdio_blocking.rs"]
#[allow(dead_code)]
mod stdio_blocking;

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

/// A client that writes lines and reads messages.
struct Client<R, W> {
    reader: BufReader<R>,
    writer: W,
}

impl<R: Read, W: Write> Client<R, W> {
    fn send(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next message; `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}")))
    }

    /// The answer with this id, and what came before it.
    fn answer(&mut self, id: u32) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.next().unwrap_or_else(|| panic!("{id} is not answered; got {before:?}"));
            if message["id"] == id {
                return (message, before);
            }
            before.push(message);
        }
    }

    fn text(&mut self, id: u32) -> String {
        let (answer, _) = self.answer(id);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).into()
    }
}

fn request(id: u32, method: &str, params: &str, meta: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{meta}}}}}}}"#
    )
}

fn call(id: u32, tool: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!(r#""name":"{tool}","arguments":{arguments}"#), "")
}

fn cancel(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

type Served = JoinHandle<io::Result<()>>;

/// A server at the other end of two pipes.
fn over_pipes(
    serve: impl FnOnce(PipeReader, PipeWriter) -> io::Result<()> + Send + 'static,
) -> (Client<PipeReader, PipeWriter>, Served) {
    let (server_reads, writer) = io::pipe().unwrap();
    let (reader, server_writes) = io::pipe().unwrap();
    let served = thread::spawn(move || serve(server_reads, server_writes));
    (Client { reader: BufReader::new(reader), writer }, served)
}

/// The loop, and as many clients as wanted.
fn over_sockets() -> impl Fn() -> Client<TcpStream, TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || mio_loop::serve(listener));
    move || {
        let writer = TcpStream::connect(address).unwrap();
        Client { reader: BufReader::new(writer.try_clone().unwrap()), writer }
    }
}

/// What every server of the three tools does, in both eras.
fn tools_in_both_eras<R: Read, W: Write>(client: &mut Client<R, W>) {
    client.send(&request(1, "server/discover", "", ""));
    let (answer, _) = client.answer(1);
    let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "three-tools");
    client.send(&request(2, "tools/list", "", ""));
    let (answer, _) = client.answer(2);
    let names: Vec<_> = answer["result"]["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["echo", "add", "slow"]);
    client.send(&call(3, "add", r#"{"a":40,"b":2}"#));
    assert_eq!(client.text(3), "42");
    client.send(&call(4, "add", r#"{"a":40,"b":"2"}"#));
    let (answer, _) = client.answer(4);
    assert_eq!(answer["result"]["isError"], true, "T02: {answer}");
    for (line, code) in [
        (call(5, "nope", "{}"), -32602),
        (request(5, "x/y", "", ""), -32601),
        (request(5, "prompts/list", "", ""), -32601),
        (request(5, "tools/list", r#""cursor":"bogus""#, ""), -32602),
    ] {
        client.send(&line);
        let (answer, _) = client.answer(5);
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    client.send("not json");
    assert_eq!(client.next().unwrap()["error"]["code"], -32700);
    let slow =
        request(6, "tools/call", r#""name":"slow","arguments":{"steps":3}"#, r#","progressToken":"p""#);
    client.send(&slow);
    let (answer, before) = client.answer(6);
    assert_eq!(answer["result"]["content"][0]["text"], "3 steps");
    let steps: Vec<_> = before.iter().map(|m| m["params"]["progress"].as_i64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3]);

    client.send(
        r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    assert_eq!(client.answer(7).0["result"]["protocolVersion"], "2025-03-26");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.send(
        r#"[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","arguments":{"text":"é"}}}]"#,
    );
    let array = client.next().unwrap();
    assert_eq!((&array[0]["id"], &array[1]["result"]["content"][0]["text"]), (&json!(8), &json!("é")));
    client.send(&request(10, "subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#, ""));
    let ack = client.next().unwrap();
    assert_eq!(ack["params"]["notifications"], json!({}), "nothing is offered, so nothing is honored");
}

/// Nothing is read from a client that does not read; once it reads, everything arrives.
fn backpressure<R: Read, W: Write + Send + 'static>(
    client: Client<R, W>,
    end: impl FnOnce(W) + Send + 'static,
) {
    const REQUESTS: u32 = 400;
    let Client { reader, mut writer } = client;
    let written = Arc::new(AtomicUsize::new(0));
    let text = "x".repeat(64 << 10);
    let sender = {
        let written = Arc::clone(&written);
        thread::spawn(move || {
            for id in 0..REQUESTS {
                let line = format!("{}\n", call(id, "echo", &format!(r#"{{"text":"{text}"}}"#)));
                writer.write_all(line.as_bytes()).unwrap();
                written.fetch_add(line.len(), Ordering::Relaxed);
            }
            end(writer);
        })
    };
    // Until it does not move any more.
    let (mut last, mut still) = (0, 0);
    for _ in 0..300 {
        thread::sleep(Duration::from_millis(50));
        let now = written.load(Ordering::Relaxed);
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
        if still == 10 {
            break;
        }
    }
    // 25 MiB are to be sent. What may be under way: the high-water mark, what was read at once, and what
    // the operating system holds.
    let under_way = written.load(Ordering::Relaxed);
    assert!(under_way < 14 << 20, "{under_way} bytes were taken from a client that does not read");
    let mut client = Client { reader, writer: io::sink() };
    let mut answered = 0;
    while let Some(message) = client.next() {
        assert_eq!(message["result"]["content"][0]["text"].as_str().map(str::len), Some(64 << 10));
        answered += 1;
    }
    assert_eq!(answered, REQUESTS);
    sender.join().unwrap();
}

#[test]
fn stdio_blocking_serves_one_stream() {
    let (mut client, served) = over_pipes(stdio_blocking::serve);
    tools_in_both_eras(&mut client);
    // Z01: what was accepted is answered, then the subscription ends, then the stream.
    client.send(&call(20, "slow", r#"{"steps":2}"#));
    client.send(&call(21, "echo", r#"{"text":"last"}"#));
    drop(client.writer);
    let mut client = Client { reader: client.reader, writer: io::sink() };
    assert_eq!((client.text(20), client.text(21)), ("2 steps".into(), "last".into()));
    assert_eq!(client.next().unwrap()["method"], "notifications/cancelled");
    assert_eq!(client.answer(10).0["result"]["resultType"], "complete");
    assert_eq!(client.next(), None);
    served.join().unwrap().unwrap();
}

/// Z01: a line without an ending is a line at the end of the input; half a message is no request.
#[test]
fn stdio_blocking_and_half_a_line() {
    for (rest, answered) in
        [(call(1, "echo", r#"{"text":"x"}"#), true), (r#"{"jsonrpc":"2.0","id":1"#.into(), false)]
    {
        let (client, served) = over_pipes(stdio_blocking::serve);
        let Client { reader, mut writer } = client;
        writer.write_all(rest.as_bytes()).unwrap();
        drop(writer);
        let mut client = Client { reader, writer: io::sink() };
        let message = client.next().unwrap();
        assert_eq!(message.get("result").is_some(), answered, "{message}");
        assert_eq!(client.next(), None);
        served.join().unwrap().unwrap();
    }
}

/// Z02: a client that is gone is an error to the caller and no panic.
#[test]
fn a_client_that_is_gone() {
    for serve in [
        |input: PipeReader, output: PipeWriter| stdio_blocking::serve(input, output),
        |input: PipeReader, output: PipeWriter| std_threads::serve(input, output),
    ] {
        let (client, served) = over_pipes(serve);
        let Client { reader, mut writer } = client;
        drop(reader);
        writer.write_all(format!("{}\n", call(1, "echo", r#"{"text":"x"}"#)).as_bytes()).unwrap();
        drop(writer);
        let outcome = served.join().unwrap();
        assert_eq!(outcome.map_err(|e| e.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}

#[test]
fn stdio_blocking_is_slowed_down_by_its_client() {
    let (client, served) = over_pipes(stdio_blocking::serve);
    backpressure(client, drop);
    served.join().unwrap().unwrap();
}

#[test]
fn std_threads_serves_one_stream() {
    let (mut client, served) = over_pipes(std_threads::serve);
    tools_in_both_eras(&mut client);
    // C04: others are answered while it runs, and it is not answered once it is cancelled.
    client.send(&call(20, "slow", r#"{"steps":1000}"#));
    client.send(&call(21, "echo", r#"{"text":"meanwhile"}"#));
    assert_eq!(client.text(21), "meanwhile");
    client.send(&cancel(20));
    // Z01: accepted work is finished after the end of the input.
    client.send(&call(22, "slow", r#"{"steps":5}"#));
    client.send(&call(23, "slow", r#"{"steps":1}"#));
    drop(client.writer);
    let mut client = Client { reader: client.reader, writer: io::sink() };
    let mut rest = Vec::new();
    while let Some(message) = client.next() {
        rest.push(message);
    }
    let results = rest.iter().filter(|m| m.get("result").is_some());
    let mut ids: Vec<_> = results.map(|m| m["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [10, 22, 23], "{rest:?}");
    served.join().unwrap().unwrap();
}

#[test]
fn std_threads_is_slowed_down_by_its_client() {
    let (client, served) = over_pipes(std_threads::serve);
    backpressure(client, drop);
    served.join().unwrap().unwrap();
}

#[test]
fn mio_loop_serves_many_peers() {
    let connect = over_sockets();
    // One that never reads, and one that breaks off in the middle.
    let mut idle = connect();
    idle.send(&call(1, "slow", r#"{"steps":1000}"#));
    let mut broken = connect();
    broken.writer.write_all(b"{\"jsonrpc\"").unwrap();
    drop(broken);
    let mut peers: Vec<_> = (0..20).map(|_| connect()).collect();
    for (n, peer) in peers.iter_mut().enumerate() {
        // The same ids on every stream: they do not mix.
        peer.send(&call(1, "slow", r#"{"steps":3}"#));
        peer.send(&call(2, "echo", &format!(r#"{{"text":"peer {n}"}}"#)));
    }
    for (n, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.text(2), format!("peer {n}"));
        assert_eq!(peer.text(1), "3 steps");
    }
    let mut client = peers.pop().unwrap();
    tools_in_both_eras(&mut client);
    client.send(&call(20, "slow", r#"{"steps":1000}"#));
    client.send(&cancel(20));
    client.send(&call(21, "slow", r#"{"steps":2}"#));
    client.writer.shutdown(Shutdown::Write).unwrap();
    let mut ids = Vec::new();
    while let Some(message) = client.next() {
        if message.get("result").is_some() {
            ids.push(message["id"].as_i64().unwrap());
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, [10, 21]);
}

#[test]
fn mio_loop_is_slowed_down_by_one_peer_and_serves_the_others() {
    let connect = over_sockets();
    let greedy = connect();
    let other = thread::spawn({
        let mut other = connect();
        move || {
            for id in 0..200 {
                other.send(&call(id, "echo", r#"{"text":"x"}"#));
                assert_eq!(other.text(id), "x");
            }
        }
    });
    backpressure(greedy, |writer: TcpStream| writer.shutdown(Shutdown::Write).unwrap());
    other.join().unwrap();
}
