//! Only `tools/call` may become a task.
use mcp_proto::model::method::GetPrompt;
use mcp_proto::server::{Channel, Connection, Pending};

fn defer(server: &mut Connection, pending: Pending<GetPrompt>, task: &[u8], out: &mut Vec<u8>) {
    let _ = server.become_task(pending, task, out);
}

fn main() {}
