//! Only `tools/call`, `prompts/get` and `resources/read` may answer with questions.
use mcp_proto::model::InputRequired;
use mcp_proto::model::method::ListTools;
use mcp_proto::server::{Channel, Connection, Pending};

fn ask(server: &mut Connection, pending: Pending<ListTools>, input: &InputRequired, out: &mut Vec<u8>) {
    let _ = server.require_input(pending, input, out);
}

fn main() {}
