//! A request is answered with the result of its method.
use mcp_proto::model::GetPromptResult;
use mcp_proto::model::method::CallTool;
use mcp_proto::server::{Channel, Connection, Pending};

fn answer(server: &mut Connection, pending: Pending<CallTool>, result: &GetPromptResult, out: &mut Vec<u8>) {
    let _ = server.respond(pending, result, out);
}

fn main() {}
