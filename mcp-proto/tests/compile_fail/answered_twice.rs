//! A request is answered at most once.
use mcp_proto::model::CallToolResult;
use mcp_proto::model::method::CallTool;
use mcp_proto::server::{Channel, Connection, Pending};

fn answer(server: &mut Connection, pending: Pending<CallTool>, out: &mut Vec<u8>) {
    let _ = server.respond(pending, &CallToolResult::text("one"), out);
    let _ = server.respond(pending, &CallToolResult::text("two"), out);
}

fn main() {}
