//! The examples that mount the endpoint, at work.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test says no by panicking

#[path = "../examples/axum.rs"]
#[allow(dead_code)] // `main`
mod axum;
#[path = "../examples/tls.rs"]
#[allow(dead_code)]
mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

fn post(method: &str, name: &str, mut params: Value, more: &str) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\nmcp-name: {name}\r\nconnection: close\r\n{more}\
         content-length: {}\r\n\r\n{body}",
        body.len(),
    )
}

fn call(tool: &str, more: &str) -> String {
    post("tools/call", tool, json!({ "name": tool, "arguments": {} }), more)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axum_mounts_the_endpoint() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let mcp = axum::mount().unwrap();
    let serving = tokio::spawn(axum::serve(listener, mcp, async move {
        let _ = stopped.await;
    }));
    let ask = move || {
        let other = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        assert!(exchange(connect(address), other).contains("/mcp"));
        assert!(exchange(connect(address), &call("who", "")).contains("nobody"));
        assert!(exchange(connect(address), &call("who", "x-user: alice\r\n")).contains("alice"));
        let evil = exchange(connect(address), &call("who", "origin: https://evil.example\r\n"));
        assert!(evil.starts_with("HTTP/1.1 403"), "{evil}");
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let mut listening = connect(address);
        listening.write_all(post("subscriptions/listen", "", filter, "").as_bytes()).unwrap();
        let mut begun = vec![0; 4096];
        let got = listening.read(&mut begun).unwrap();
        assert!(begun[..got].starts_with(b"HTTP/1.1 200"));
        listening
    };
    let mut listening = spawn_blocking(ask).await.unwrap();
    stop.send(()).unwrap();
    let rest = spawn_blocking(move || {
        let mut rest = String::new();
        listening.read_to_string(&mut rest).unwrap();
        rest
    });
    let rest = rest.await.unwrap();
    assert!(rest.contains("\"result\""), "{rest}");
    serving.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rustls_stands_before_the_endpoint() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = own.cert.der().clone();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let acceptor = tls::tls(certificate.clone(), key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(tls::serve(listener, acceptor, tls::mount().unwrap(), async move {
        let _ = stopped.await;
    }));
    let ask = move || {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let config = Arc::new(config);
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(config, name).unwrap();
        let answer = exchange(StreamOwned::new(tls, connect(address)), &call("hello", ""));
        assert!(answer.contains("Hello!"), "{answer}");
        // Someone who does not speak TLS is that connection's trouble alone.
        let mut plain = connect(address);
        plain.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();
        let mut alert = Vec::new();
        // An alert, or a reset.
        let _ = plain.read_to_end(&mut alert);
        assert!(!alert.starts_with(b"HTTP"));
    };
    spawn_blocking(ask).await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap();
}
