//! The right to answer cannot be copied.
use mcp_proto::model::method::CallTool;
use mcp_proto::server::Pending;

fn copy(pending: &Pending<CallTool>) -> Pending<CallTool> {
    pending.clone()
}

fn main() {}
