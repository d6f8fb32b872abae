//! A right to answer that is not used is warned of.
#![deny(unused_must_use)]
use mcp_proto::model::method::CallTool;
use mcp_proto::server::Pending;

fn take(waiting: &mut Vec<Pending<CallTool>>) {
    waiting.remove(0);
}

fn main() {}
