//! The probe of a server behind TLS, on each runtime.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "an example, of which this is the server")]
#[path = "../../mcp-tokio/examples/tls.rs"]
mod tls;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_behind_tls_is_probed() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = own.cert.der().clone();
    let trusted = Path::new(env!("CARGO_TARGET_TMPDIR")).join("https.pem");
    let pem = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        STANDARD.encode(certificate.as_ref())
    );
    fs::write(&trusted, pem).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let acceptor = tls::tls(certificate, key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(tls::serve(listener, acceptor, tls::mount().unwrap(), async move {
        let _ = stopped.await;
    }));
    let probes = move || {
        for runtime in ["tokio", "smol"] {
            let trusting = probe(runtime, &url, &trusted);
            let told = String::from_utf8(trusting.stdout).unwrap();
            assert_eq!(trusting.status.code(), Some(0), "{runtime}: {told}");
            let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let listed = lines.iter().find(|line| line["step"] == "tools/list").unwrap();
            assert_eq!(listed["result"]["tools"][0]["name"], "hello", "{runtime}: {told}");

            // Nobody vouches for the certificate: nothing is sent there.
            let doubting = probe(runtime, &url, Path::new("/no/certificates"));
            let told = String::from_utf8(doubting.stdout).unwrap();
            assert_eq!(doubting.status.code(), Some(1), "{runtime}: {told}");
            let line: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
            assert_eq!((&line["step"], &line["ok"]), (&"connect".into(), &false.into()), "{runtime}");
        }
    };
    tokio::task::spawn_blocking(probes).await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap();
}

fn probe(runtime: &str, url: &str, trusted: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-conformance"))
        .args(["probe", "--runtime", runtime, "--url", url])
        .env("SSL_CERT_FILE", trusted)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap()
}
