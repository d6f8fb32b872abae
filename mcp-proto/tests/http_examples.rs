//! The example over HTTP, at work.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test says no by panicking

#[path = "../examples/tiny_http.rs"]
#[allow(dead_code)] // `main`
mod example;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tiny_http::Server;

fn request(method: &str, name: &str, mut params: Value, more: &str) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "progressToken": 1,
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\nMcp-Name: {name}\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len(),
    )
}

fn call(tool: &str, arguments: Value, more: &str) -> String {
    request("tools/call", tool, json!({ "name": tool, "arguments": arguments }), more)
}

fn send(address: SocketAddr, request: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

fn whole(address: SocketAddr, request: &str) -> String {
    let mut answer = String::new();
    let closing = request.replacen("Host:", "Connection: close\r\nHost:", 1);
    send(address, &closing).read_to_string(&mut answer).unwrap();
    answer
}

/// Serves while `ask` asks.
fn while_served(ask: impl FnOnce(SocketAddr)) {
    let server = Arc::new(Server::http("127.0.0.1:0").unwrap());
    let address = server.server_addr().to_ip().unwrap();
    let serving = {
        let server = Arc::clone(&server);
        thread::spawn(move || example::serve(&server))
    };
    ask(address);
    for _ in 0..example::THREADS {
        server.unblock();
    }
    serving.join().unwrap();
}

#[test]
fn a_blocking_server_answers() {
    while_served(|address| {
        let answer = whole(address, &call("add", json!({ "a": 1, "b": 2 }), ""));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(body["result"]["content"][0]["text"], "3");
        let list = whole(address, &request("tools/list", "", json!({}), "").replace("Mcp-Name: \r\n", ""));
        assert!(list.contains("\"slow\""), "{list}");
        for (request, status) in [
            (call("echo", json!({ "text": "x" }), "Origin: https://evil.example\r\n"), "403"),
            (call("echo", json!({ "text": "x" }), "").replace("Mcp-Name: echo", "Mcp-Name: add"), "400"),
            (call("echo", json!({ "text": "x" }), "").replace("/mcp", "/other"), "404"),
            (request("prompts/list", "", json!({}), "").replace("Mcp-Name: \r\n", ""), "404"),
            ("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), "405"),
        ] {
            let answer = whole(address, &request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
    });
}

#[test]
fn a_blocking_server_streams() {
    while_served(|address| {
        let mut peer = send(address, &call("slow", json!({ "steps": 5 }), ""));
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| line != "0") {
            let mut line = String::new();
            assert_ne!(peer.read_line(&mut line).unwrap(), 0, "{lines:?}");
            lines.push(line.trim_end().to_owned());
        }
        assert!(lines.iter().any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")));
        let events: Vec<Value> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let steps: Vec<_> = events.iter().filter_map(|event| event["params"]["progress"].as_u64()).collect();
        assert_eq!(steps, [1, 2, 3, 4, 5]);
        assert_eq!(events.last().unwrap()["result"]["content"][0]["text"], "5 steps");

        // Those who go away free their threads: more of them than there are threads.
        for _ in 0..2 * example::THREADS {
            let mut gone = send(address, &call("slow", json!({ "steps": 1000 }), ""));
            gone.read_line(&mut String::new()).unwrap();
        }
        assert!(whole(address, &call("echo", json!({ "text": "still here" }), "")).contains("still here"));
    });
}
