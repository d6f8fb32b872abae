//! Whether an answer was delivered is worth a look, if only `let _`.
#![deny(unused_must_use)]
use mcp_proto::server::{Connection, RequestKey};

fn give_up(server: &mut Connection, key: RequestKey, out: &mut Vec<u8>) {
    server.abandon(key, out);
}

fn main() {}
