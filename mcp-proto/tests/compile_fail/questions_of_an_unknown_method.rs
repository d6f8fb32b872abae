//! Whether a request may be answered with questions is known only when its method is.
use mcp_proto::model::InputRequired;
use mcp_proto::server::{Channel, Connection, Incoming};

fn ask(server: &mut Connection, incoming: Incoming<'_>, input: &InputRequired, out: &mut Vec<u8>) {
    let _ = server.require_input(incoming.pending, input, out);
}

fn main() {}
