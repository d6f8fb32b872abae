//! Nothing is said about a request once it is answered.
use mcp_proto::model::CallToolResult;
use mcp_proto::model::method::CallTool;
use mcp_proto::server::{Channel, Connection, Pending, Progress};

fn answer(server: &mut Connection, pending: Pending<CallTool>, out: &mut Vec<u8>) {
    let _ = server.respond(pending, &CallToolResult::text("done"), out);
    let _ = server.progress(&pending, Progress::new(1.0), out);
}

fn main() {}
