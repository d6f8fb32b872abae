//! Tokens: who may speak, and whose sessions, tasks and states are whose.

use mcp_proto::http::{ProtectedResource, Settings};
use mcp_proto::service::http::HttpService;
use mcp_proto::service::{
    Authorizer, BoxFuture, NoArguments, Principal, Scopes, Server, Service, TokenError, TokenVerifier,
    Verified, tool,
};
use serde_json::{Value, json};

use crate::harness::{Got, Net, Request, Session, call, initialize, modern};
use crate::kit::Kit;

/// `name` or `name.scope`.
struct Names;

impl TokenVerifier for Names {
    fn verify(&self, token: &str) -> BoxFuture<Result<Verified, TokenError>> {
        let (name, scope) = token.split_once('.').unwrap_or((token, ""));
        let audience = if name == "stranger" { "https://other" } else { "https://h/mcp" };
        let said = match name {
            "forged" => Err(TokenError::Invalid("forged".into())),
            "down" => Err(TokenError::Unavailable("timeout".into())),
            _ => Ok(Verified::new(Principal::new(name), [audience]).scopes(Scopes::parse(scope).unwrap())),
        };
        Box::pin(core::future::ready(said))
    }
}

fn server(kit: &Kit) -> Server {
    kit.server().add(tool("write", |_, _: NoArguments| async { Ok("written") }).scopes(["files"])).tool(
        "who",
        |ctx, _: NoArguments| async move {
            let caller = ctx.principal().map(|p| format!("{} {}", p.id(), p.has_scope("files")));
            Ok(caller.unwrap_or_default())
        },
    )
}

fn net(service: &Service) -> Net {
    let resource = ProtectedResource::builder("https://h/mcp")
        .authorization_server("https://as.example")
        .build()
        .unwrap();
    let authorizer = Authorizer::new(resource, Names);
    Net::over(HttpService::with_authorizer(service, Settings::default(), authorizer))
}

fn list() -> Request {
    Request::modern(&modern(1, "tools/list", json!({}), json!({})))
}

fn by(request: Request, token: &str) -> Request {
    request.set("Authorization", format!("Bearer {token}"))
}

fn challenge(net: &Net, got: Got) -> String {
    net.header(got, "www-authenticate").unwrap_or_default()
}

/// S-AUTH, section 7.1: metadata for everyone, then challenges, before any work.
#[test]
fn tokens_are_asked_for() {
    let kit = Kit::default();
    let mut net = net(&server(&kit).build().unwrap());
    let mut metadata = Request::new("GET");
    metadata.path = "/.well-known/oauth-protected-resource/mcp";
    let (status, document) = net.ask(&metadata);
    assert_eq!((status, &document["resource"]), (200, &json!("https://h/mcp")));
    assert_eq!(document["authorization_servers"], json!(["https://as.example"]));
    metadata.method = "POST";
    let got = net.send(&metadata);
    assert_eq!(net.status(got), 405);

    let got = net.send(&list());
    assert_eq!(net.status(got), 401);
    let said = challenge(&net, got);
    assert!(
        said.starts_with("Bearer ") && said.contains("resource_metadata=") && !said.contains("error="),
        "{said}"
    );
    for token in ["forged", "stranger"] {
        let got = net.send(&by(list(), token));
        assert_eq!(net.status(got), 401);
        assert!(challenge(&net, got).contains("error=\"invalid_token\""));
    }
    let got = net.send(&by(list(), "down"));
    assert_eq!((net.status(got), net.header(got, "www-authenticate")), (503, None));
    let got = net.send(&list().with("Authorization", "Bearer a").with("Authorization", "Bearer b"));
    assert_eq!(net.status(got), 400);
    assert_eq!(net.ask(&by(list(), "alice")).0, 200);
    // A foreign page learns nothing of tokens; every method asks for one.
    let got = net.send(&list().with("Origin", "https://evil.example"));
    assert_eq!(net.status(got), 403);
    for method in ["GET", "DELETE"] {
        let got = net.send(&Request::new(method).with("Accept", "text/event-stream"));
        assert_eq!(net.status(got), 401);
    }
    let got = net.send(&Request::post(initialize("2025-11-25", json!({})).to_string()));
    assert_eq!((net.status(got), net.http.sessions_open()), (401, 0));
}

/// Without an authorizer nobody is asked for a token, and so nobody has a scope: what needs one is refused
/// before any work. A host that knows the caller's scopes says so with the principal.
#[test]
fn scopes_hold_without_an_authorizer() {
    let kit = Kit::default();
    let mut net = Net::new(&server(&kit).build().unwrap());
    let write = Request::modern(&modern(1, "tools/call", json!({"name": "write"}), json!({})));
    let refused = json!({"error": "insufficient_scope", "scope": "files"});
    let (status, message) = net.ask(&write);
    assert_eq!((status, &message["id"], &message["error"]["data"]), (403, &json!(1), &refused));
    assert_eq!(net.ask(&list()).0, 200, "what needs none is served");
    let as_alice = |scope| Some(Principal::new("alice").with_scopes(Scopes::parse(scope).unwrap()));
    let got = net.handle(&write, as_alice("other"));
    assert_eq!(net.status(got), 403);
    let got = net.handle(&write, as_alice("files"));
    assert_eq!(net.status(got), 200);

    let session = net.session("2025-03-26", json!({}));
    let batch = json!([call(1, "wait", json!({})), call(2, "write", json!({}))]);
    let got = net.send(&session.post(&batch));
    assert_eq!((net.status(got), kit.began()), (403, 0));
}

/// A driver that forgets to ask who it is gets no one in.
#[test]
fn an_authorizer_cannot_be_forgotten() {
    let kit = Kit::default();
    let mut net = net(&server(&kit).build().unwrap());
    for request in [list(), Request::post(initialize("2025-11-25", json!({})).to_string())] {
        let got = net.handle(&request, None);
        assert_eq!((net.status(got), net.http.sessions_open()), (401, 0));
        assert!(challenge(&net, got).starts_with("Bearer "));
    }
}

/// 403 names what the operation needs; of an array every member counts, and nothing of it runs.
#[test]
fn scopes_are_asked_for() {
    let kit = Kit::default();
    let mut net = net(&server(&kit).build().unwrap());
    let write = modern(1, "tools/call", json!({"name": "write"}), json!({}));
    let got = net.send(&by(Request::modern(&write), "alice"));
    assert_eq!(net.status(got), 403);
    let said = challenge(&net, got);
    assert!(said.contains("error=\"insufficient_scope\"") && said.contains("scope=\"files\""), "{said}");
    assert!(said.contains("resource_metadata="));
    assert_eq!(net.ask(&by(Request::modern(&write), "alice.files")).0, 200);

    let session = net.session_of("2025-03-26", json!({}), Some("alice"));
    let batch = json!([call(1, "wait", json!({})), call(2, "write", json!({}))]);
    let got = net.send(&session.post(&batch));
    assert_eq!((net.status(got), kit.began()), (403, 0));
    // Each request counts by its own token.
    let stepped_up = Session { authorization: Some("alice.files".into()), ..session.clone() };
    let (status, answers) =
        net.ask(&stepped_up.post(&json!([call(1, "who", json!({})), call(2, "write", json!({}))])));
    assert_eq!((status, answers.as_array().unwrap().len()), (200, 2));
    let got = net.send(&session.post(&call(3, "write", json!({}))));
    assert_eq!(net.status(got), 403);
}

/// A06, LS-SESS-05, LS-SESS-07: someone else's session is as unknown as none at all.
#[test]
fn a06_a_session_is_its_callers_alone() {
    let kit = Kit::default();
    let mut net = net(&server(&kit).build().unwrap());
    let session = net.session_of("2025-11-25", json!({}), Some("alice"));
    let thief = Session { authorization: Some("bob".into()), ..session.clone() };
    let unknown = Session { id: "0".repeat(32), ..thief.clone() };
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for make in [Session::get, Session::delete] {
        let (a, b) = (net.send(&make(&thief)), net.send(&make(&unknown)));
        assert_eq!((net.status(a), net.status(b)), (404, 404));
        assert_eq!(net.at(a).body.clone(), net.at(b).body.clone());
    }
    for message in [&ping, &call(1, "write", json!({}))] {
        let (a, b) = (net.ask(&thief.post(message)), net.ask(&unknown.post(message)));
        assert_eq!(a, b);
        assert_eq!(a.0, 404);
    }
    let got = net.send(&thief.resume("0-0"));
    assert_eq!(net.status(got), 404);
    assert_eq!(net.ask(&session.post(&ping)).0, 200);
    let bare = Session { authorization: None, ..session };
    let got = net.send(&bare.post(&ping));
    assert_eq!(net.status(got), 401);
}

/// A06: states and tasks belong to whom they were given.
#[test]
fn a06_states_and_tasks_are_their_callers_alone() {
    let kit = Kit::default();
    let mut net = net(&server(&kit).build().unwrap());
    let capabilities = || json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let post = |token: &str, method: &str, params: Value| {
        by(Request::modern(&modern(1, method, params, capabilities())), token)
    };
    let (_, asked) = net.ask(&post("alice", "tools/call", json!({"name": "confirm"})));
    let retry = json!({"name": "confirm", "requestState": asked["result"]["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {"confirm": true}}}});
    let (_, refused) = net.ask(&post("bob", "tools/call", retry.clone()));
    assert_eq!(refused["error"]["code"], -32602);
    let (_, done) = net.ask(&post("alice", "tools/call", retry));
    assert_eq!(done["result"]["content"][0]["text"], "true");
    let (_, created) = net.ask(&post("alice", "tools/call", json!({"name": "job"})));
    let id = json!({"taskId": created["result"]["taskId"]});
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(net.ask(&post("bob", method, id.clone())).1["error"]["code"], -32602, "{method}");
    }
    assert_eq!(net.ask(&post("alice", "tasks/get", id)).1["result"]["status"], "working");
}

/// S-AUTH-11: what a tool needs is needed for the result of its task, too, also once it has ended.
#[test]
fn a_task_needs_the_scopes_of_its_tool() {
    let kit = Kit::default();
    let files = tool("files_job", |_, _: NoArguments| async { Ok("of the files") })
        .scopes(["files"])
        .task(mcp_proto::model::TaskSupport::Optional);
    let mut net = net(&server(&kit).add(files).build().unwrap());
    let capabilities = || json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let post = |token: &str, method: &str, params: Value| {
        by(Request::modern(&modern(1, method, params, capabilities())), token)
    };
    let (_, created) = net.ask(&post("alice.files", "tools/call", json!({"name": "files_job"})));
    let task = created["result"]["taskId"].clone();
    let id = json!({ "taskId": task });
    let update = json!({"taskId": task, "inputResponses": {}});
    let listen = json!({"notifications": {"taskIds": [task]}});
    for (method, params) in [
        ("tasks/get", &id),
        ("tasks/cancel", &id),
        ("tasks/update", &update),
        ("subscriptions/listen", &listen),
    ] {
        let got = net.send(&post("alice", method, params.clone()));
        assert_eq!(net.status(got), 403, "{method}");
        assert!(challenge(&net, got).contains("scope=\"files\""), "{method}");
    }
    let (status, mine) = net.ask(&post("alice.files", "tasks/get", id.clone()));
    assert_eq!((status, &mine["result"]["status"]), (200, &json!("completed")));
    assert!(mine.to_string().contains("of the files"));
    // To others it is no task that needs scopes, but none at all.
    for token in ["bob", "bob.files"] {
        assert_eq!(net.ask(&post(token, "tasks/get", id.clone())).1["error"]["code"], -32602, "{token}");
    }
    // A task of a tool that needs none is as it was.
    let (_, plain) = net.ask(&post("alice", "tools/call", json!({"name": "job"})));
    let id = json!({ "taskId": plain["result"]["taskId"] });
    assert_eq!(net.ask(&post("alice", "tasks/get", id)).0, 200);
}
