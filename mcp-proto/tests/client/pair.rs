//! The client's machine against the server's.

use mcp_proto::client::request::CallTool;
use mcp_proto::client::{self, CallOptions};
use mcp_proto::limits::Limits;
use mcp_proto::model::method;
use mcp_proto::model::{CallToolResult, Implementation, ProtocolVersion, ServerCapabilities};
use mcp_proto::server::{self, Channel};

use super::script::{LEGACY, Script, config};

/// A server that offers everything.
pub(crate) fn server(versions: &[ProtocolVersion]) -> server::Connection {
    let capabilities =
        ServerCapabilities::new().tools(true).prompts(true).resources(true, true).completions();
    let config = server::Config::builder(Implementation::new("fixture", "9"))
        .capabilities(capabilities)
        .versions(versions.iter().copied())
        .build();
    server::Connection::new(config)
}

/// Hands what one side wrote to the other until both are silent. `serve` answers requests.
pub(crate) fn talk(
    script: &mut Script,
    server: &mut server::Connection,
    mut serve: impl FnMut(&mut server::Connection, server::Incoming<'_>, &mut Vec<u8>),
    mut hear: impl FnMut(client::Event<'_>),
) {
    for _ in 0..1000 {
        if script.out.is_empty() {
            return;
        }
        let mut back = Vec::new();
        for line in std::mem::take(&mut script.out).split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            if let Some(server::Event::Request(incoming)) = server.handle(line, script.now, &mut back) {
                serve(server, incoming, &mut back);
            }
            if !back.is_empty() && !back.ends_with(b"\n") {
                back.push(b'\n');
            }
        }
        for line in back.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            if let Some(event) = script.client.handle(line, script.now, &mut script.out) {
                hear(event);
            }
        }
    }
    panic!("they never stop");
}

#[test]
fn both_sides_find_each_other_in_every_revision() {
    for version in LEGACY.into_iter().chain([ProtocolVersion::LATEST]) {
        let mut server = server(&[version]);
        let mut script = Script::started(config().build());
        let call = script
            .client
            .call(&CallTool::new("add"), &CallOptions::new(), script.now, &mut script.out)
            .unwrap();
        let mut heard = Vec::new();
        talk(
            &mut script,
            &mut server,
            |server, incoming, out| {
                let (pending, params) = incoming.decode::<method::CallTool>().unwrap();
                assert_eq!(params.name, "add");
                let _ = server.respond(pending, &CallToolResult::text("3"), out);
            },
            |event| match event {
                client::Event::Ready => heard.push("ready".to_owned()),
                client::Event::Complete(done) => {
                    assert_eq!(done.call, call);
                    heard.push(format!("{:?}", done.decode::<CallTool>().unwrap().content.len()));
                }
                other => panic!("{version}: {other:?}"),
            },
        );
        assert_eq!(heard, ["ready", "1"], "{version}");
        assert_eq!(script.client.server().unwrap().version, version);
        assert_eq!(script.client.open_calls(), 0);
    }
    assert!(Limits::default().max_calls > 100_000);
}
