//! An error is an answer too.
use mcp_proto::model::CallToolResult;
use mcp_proto::model::method::CallTool;
use mcp_proto::rpc::Error;
use mcp_proto::server::{Channel, Connection, Pending};

fn answer(server: &mut Connection, pending: Pending<CallTool>, out: &mut Vec<u8>) {
    let _ = server.respond(pending, &CallToolResult::text("done"), out);
    let _ = server.fail(pending, &Error::internal(), out);
}

fn main() {}
