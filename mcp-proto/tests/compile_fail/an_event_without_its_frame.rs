//! An event borrows its frame.
use mcp_proto::server::{Connection, Event};
use mcp_proto::time::Instant;

fn read(server: &mut Connection, out: &mut Vec<u8>) -> Option<Event<'static>> {
    let frame = String::from("{}");
    server.handle(frame.as_bytes(), Instant::ZERO, out)
}

fn main() {}
