//! The right to answer comes with a request and from nowhere else.
use mcp_proto::model::method::CallTool;
use mcp_proto::server::{Pending, RequestKey};

fn forge(key: RequestKey) -> Pending<CallTool> {
    Pending::new(key)
}

fn main() {}
