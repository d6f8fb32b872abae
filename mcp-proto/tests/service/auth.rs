//! Scopes of items, and who is let in over HTTP.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use mcp_proto::http::{Head, ProtectedResource};
use mcp_proto::rpc::Params;
use mcp_proto::service::{
    Authorizer, BoxFuture, BuildError, CompletionRequest, Denial, Denied, NoArguments, Principal, Scopes,
    Server, Service, Session, TokenError, TokenVerifier, Verified, prompt, resource, tool,
};
use mcp_proto::time::UnixTime;
use serde_json::{Value, json};

use crate::harness::Client;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Tone {
    #[allow(dead_code)]
    tone: String,
}

fn demo(ran: &Arc<AtomicUsize>) -> Server {
    let ran = Arc::clone(ran);
    Server::new("demo", "1")
        .add(
            tool("write", move |ctx, _: NoArguments| {
                ran.fetch_add(1, Ordering::SeqCst);
                async move {
                    let caller = ctx.principal().map_or("nobody", |p| p.id()).to_owned();
                    Ok(format!("{caller} wrote"))
                }
            })
            .scopes(["files:write", "files:read"]),
        )
        .add(tool("vault", |_, _: NoArguments| async { Ok("gold") }).scopes(["vault"]).hide_without_scope())
        .add(tool("admin", |_, _: NoArguments| async { Ok("yes") }).roles(["admin"]).scopes(["admin"]))
        .tool("open", |_, _: NoArguments| async { Ok("open") })
        .add(resource("file://a", |_, ()| async { Ok("a") }).scopes(["files:read"]))
        .add(
            resource("log://{day}", |_, (_,): (String,)| async { Ok("log") })
                .scopes(["logs"])
                .complete("day", |_, _: CompletionRequest| async { Ok(vec!["mon".into()]) }),
        )
        .resource("free://x", |_, ()| async { Ok("x") })
        .add(
            prompt("ask", |_, _: Tone| async { Ok("hi") })
                .scopes(["prompts"])
                .complete("tone", |_, _: CompletionRequest| async { Ok(vec!["soft".into()]) }),
        )
}

fn service() -> (Service, Arc<AtomicUsize>) {
    let ran = Arc::default();
    (demo(&ran).build().unwrap(), ran)
}

fn scopes(text: &str) -> Scopes {
    Scopes::parse(text).unwrap()
}

fn caller(granted: &str) -> Principal {
    Principal::new("u1").with_scopes(scopes(granted))
}

fn needed(service: &Service, method: &str, params: &Value, principal: Option<&Principal>) -> String {
    let text = params.to_string();
    service.required_scopes(method, &Params::from_json(&text).unwrap(), principal).to_string()
}

fn requests() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("tools/call", json!({"name": "write"}), "files:read files:write"),
        ("tools/call", json!({"name": "open"}), ""),
        ("tools/call", json!({"name": "nothing"}), ""),
        ("tools/call", json!({"nom": "write"}), ""),
        ("tools/call", json!({"name": "admin"}), ""),
        ("tools/list", json!({}), ""),
        ("prompts/get", json!({"name": "ask", "arguments": {"tone": "x"}}), "prompts"),
        ("resources/read", json!({"uri": "file://a"}), "files:read"),
        ("resources/read", json!({"uri": "log://mon"}), "logs"),
        ("resources/read", json!({"uri": "free://x"}), ""),
        ("resources/subscribe", json!({"uri": "log://tue"}), "logs"),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "ask"}, "argument": {"name": "tone", "value": ""}}),
            "prompts",
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "log://{day}"}, "argument": {"name": "day", "value": ""}}),
            "logs",
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": ["file://a", "log://x", "free://x", "no://x"]}}),
            "files:read logs",
        ),
        ("made/up", json!({"name": "write"}), ""),
    ]
}

#[test]
fn what_a_request_needs_is_known_before_it_runs_s_auth_13_s_auth_14() {
    let (service, ran) = service();
    let nobody = caller("");
    for (method, params, expected) in requests() {
        assert_eq!(needed(&service, method, &params, Some(&nobody)), expected, "{method} {params}");
        let text = params.to_string();
        let params = Params::from_json(&text).unwrap();
        for who in [None, Some(&nobody)] {
            let refused = service.check_scopes(method, &params, who).err();
            assert_eq!(refused.map(|r| r.scopes.to_string()).unwrap_or_default(), expected, "{method}");
        }
        let all = caller("files:read files:write prompts logs");
        assert!(service.check_scopes(method, &params, Some(&all)).is_ok(), "{method}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(service.declares_scopes());
    assert!(!crate::basics::demo().build().unwrap().declares_scopes());
}

#[test]
fn all_scopes_of_the_operation_are_named_also_those_that_are_there_s_auth_14() {
    let (service, _) = service();
    let text = r#"{"name":"write"}"#;
    let params = Params::from_json(text).unwrap();
    let refused = service.check_scopes("tools/call", &params, Some(&caller("files:read"))).unwrap_err();
    assert_eq!(refused.scopes.to_string(), "files:read files:write");
}

#[test]
fn roles_hide_before_scopes_are_told_s_auths_02() {
    let (service, _) = service();
    let params = json!({"name": "admin"});
    assert_eq!(needed(&service, "tools/call", &params, Some(&caller("admin"))), "");
    let admin = caller("").with_roles(["admin"]);
    assert_eq!(needed(&service, "tools/call", &params, Some(&admin)), "admin");
}

#[test]
fn nothing_runs_without_its_scopes_s_auths_02() {
    let (service, ran) = service();
    let mut client = Client::of(&service, Some(caller("files:write")));
    for (id, (method, params, expected)) in requests().into_iter().enumerate() {
        if expected.is_empty() || method == "subscriptions/listen" || method == "resources/subscribe" {
            continue;
        }
        let answer = client.modern(id as u64, method, params, json!({}));
        assert_eq!(answer["error"]["code"], -32600, "{method}: {answer}");
        assert_eq!(
            answer["error"]["data"],
            json!({"error": "insufficient_scope", "scope": expected}),
            "{method}"
        );
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let mut client = Client::of(&service, Some(caller("files:write files:read")));
    let answer = client.modern(1, "tools/call", json!({"name": "write"}), json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "u1 wrote");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn a_listen_gets_only_what_the_token_allows() {
    let (service, _) = service();
    let mut client = Client::of(&service, Some(caller("logs")));
    let filter = json!({"notifications": {"resourceSubscriptions": ["file://a", "log://x", "free://x"]}});
    let answer = client.modern(1, "subscriptions/listen", filter, json!({}));
    assert_eq!(
        answer["params"]["notifications"]["resourceSubscriptions"],
        json!(["log://x", "free://x"]),
        "{answer}"
    );
}

#[test]
fn without_a_token_as_on_stdio_scopes_do_not_count() {
    let (service, _) = service();
    let mut client = Client::new(&service);
    for (id, name) in ["write", "vault", "open"].into_iter().enumerate() {
        let answer = client.modern(id as u64, "tools/call", json!({"name": name}), json!({}));
        assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
        assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
    }
}

fn listed(service: &Service, who: Principal) -> Vec<String> {
    let answer = Client::of(service, Some(who)).modern(1, "tools/list", json!({}), json!({}));
    assert_eq!(answer["result"]["cacheScope"], "private", "S-CACHE-05");
    answer["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().into()).collect()
}

#[test]
fn scopes_hide_nothing_unless_told_to() {
    let (service, _) = service();
    assert_eq!(listed(&service, caller("")), ["write", "open"]);
    assert_eq!(listed(&service, caller("vault")), ["write", "vault", "open"]);
    let params = json!({"name": "vault"});
    assert_eq!(needed(&service, "tools/call", &params, Some(&caller(""))), "", "no challenge for it");
    let mut client = Client::of(&service, Some(caller("")));
    let hidden = client.modern(1, "tools/call", params, json!({}));
    let unknown = client.modern(1, "tools/call", json!({"name": "vaulx"}), json!({}));
    assert_eq!(
        hidden.to_string().replace("vault", "vaulx"),
        unknown.to_string(),
        "hidden is the same as unknown"
    );
}

#[test]
fn a_broad_scope_stands_for_narrow_ones_s_auth_17() {
    let ran = Arc::default();
    let service = demo(&ran)
        .scope_hierarchy(|granted, needed| {
            granted == "all"
                || granted
                    .strip_suffix(":*")
                    .is_some_and(|area| needed.strip_prefix(area).is_some_and(|rest| rest.starts_with(':')))
        })
        .build()
        .unwrap();
    let broad = caller("files:*");
    let mut client = Client::of(&service, Some(broad.clone()));
    let answer = client.modern(1, "tools/call", json!({"name": "write"}), json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "u1 wrote");
    let text = r#"{"uri":"log://x"}"#;
    let params = Params::from_json(text).unwrap();
    assert!(service.check_scopes("resources/read", &params, Some(&broad)).is_err());
    assert!(service.check_scopes("resources/read", &params, Some(&caller("all"))).is_ok());
    assert_eq!(listed(&service, caller("all")), ["write", "vault", "open"], "hiding knows it too");
}

#[test]
fn a_step_up_counts_within_a_session_and_a_stranger_does_not_get_in_a06() {
    let (service, ran) = service();
    let mut session = Session::with_principal(&service, Some(caller("")));
    let stranger = Principal::new("u2").with_scopes(scopes("files:read files:write"));
    assert!(!session.renew_principal(&stranger));
    assert!(session.renew_principal(&caller("files:read files:write")));
    assert!(!Session::new(&service).renew_principal(&stranger), "a stream of nobody stays one");
    let call = crate::harness::request(1, "tools/call", json!({"name": "write"}), json!({}));
    let line = format!("{call}\n").into_bytes();
    session.spare(line.len())[..line.len()].copy_from_slice(&line);
    session.commit(line.len());
    session.process(mcp_proto::time::Instant::ZERO, NOW);
    let answer: Value = serde_json::from_slice(session.output()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "u1 wrote");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn scopes_that_cannot_be_asked_for_are_refused_s_auth_10() {
    for bad in ["a b", "", "offline_access", "\""] {
        let built = Server::new("x", "1")
            .add(tool("t", |_, _: NoArguments| async { Ok("") }).scopes(["fine", bad]))
            .build();
        match built {
            Err(BuildError::Scope { item, scope }) => assert_eq!((&*item, &*scope), ("t", bad)),
            other => panic!("{other:?}"),
        }
    }
}

const NOW: UnixTime = UnixTime::from_millis(1_785_231_000_000);

#[derive(Default)]
struct Request {
    authorization: Option<String>,
    query: Option<&'static str>,
}

impl Head for Request {
    fn method(&self) -> &str {
        "DELETE"
    }
    fn path(&self) -> &str {
        "/mcp"
    }
    fn query(&self) -> Option<&str> {
        self.query
    }
    fn authority(&self) -> Option<&str> {
        None
    }
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.authorization.iter().filter(move |_| name == "authorization").map(|v| v.as_bytes())
    }
}

/// Tokens that say what they are.
struct Table;

impl TokenVerifier for Table {
    fn verify(&self, token: &str) -> BoxFuture<Result<Verified, TokenError>> {
        let user = || Principal::new("u1");
        let ours = || Verified::new(user(), ["https://other", "https://h/mcp"]).scopes(scopes("a"));
        let after = |ms| UnixTime::from_millis(NOW.as_millis() + ms);
        let said = match token {
            "good" => Ok(ours().expires(after(1)).not_before(NOW)),
            "expired" => Ok(ours().expires(NOW)),
            "early" => Ok(ours().not_before(after(1))),
            "other" => Ok(Verified::new(user(), ["https://other", "https://h/mcp/"])),
            "nobody" => Ok(Verified::new(user(), [""; 0])),
            "asked" => Ok(Verified::with_checked_audience(user())),
            "key" => Err(TokenError::UnknownKey("k".into())),
            "down" => Err(TokenError::Unavailable("timeout".into())),
            _ => Err(TokenError::Invalid("no".into())),
        };
        Box::pin(async move { said })
    }
}

fn authorizer() -> Authorizer {
    let resource = ProtectedResource::builder("https://h/mcp").authorization_server("https://as.example");
    Authorizer::new(resource.build().unwrap(), Table)
}

fn authenticate(token: &str) -> Result<Principal, Denied> {
    let request = Request { authorization: Some(format!("Bearer {token}")), query: None };
    block_on(authorizer().authenticate(&request, NOW))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn a_good_token_gives_the_caller_and_its_scopes_s_auth_04() {
    let principal = authenticate("good").unwrap();
    assert_eq!((principal.id(), principal.has_scope("a")), ("u1", true));
    assert!(!format!("{principal:?}").contains("good"), "S-AUTH-09, S-AUTHS-04: no token within");
    assert_eq!(authenticate("asked").unwrap().id(), "u1");
}

#[test]
fn every_other_token_gets_the_same_answer_a06_s_auth_05_s_auth_07_s_auth_08_s_auths_03() {
    let expected = [
        ("expired", TokenError::Expired),
        ("early", TokenError::NotYetValid),
        ("other", TokenError::Audience),
        ("nobody", TokenError::Audience),
        ("key", TokenError::UnknownKey("k".into())),
        ("garbage", TokenError::Invalid("no".into())),
    ];
    for (token, why) in expected {
        let denied = authenticate(token).unwrap_err();
        assert_eq!(denied.why, Denial::Token(why));
        assert_eq!(denied.head.status, 401, "{token}");
        assert_eq!(
            denied.head.header("www-authenticate"),
            Some(
                "Bearer error=\"invalid_token\", \
                 resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\""
            ),
            "{token}"
        );
    }
}

#[test]
fn without_a_token_there_is_no_error_in_the_challenge_a05_ls_auth_01_ls_auth_02() {
    // Of any method: also `GET` and `DELETE` of a legacy session.
    for authorization in [None, Some("Basic YTpi".to_owned())] {
        let request = Request { authorization, query: None };
        let denied = block_on(authorizer().authenticate(&request, NOW)).unwrap_err();
        assert_eq!((denied.head.status, denied.why), (401, Denial::NoToken));
        assert_eq!(
            denied.head.header("www-authenticate"),
            Some("Bearer resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\"")
        );
    }
}

#[test]
fn a_verifier_that_cannot_tell_is_not_the_clients_fault() {
    let denied = authenticate("down").unwrap_err();
    assert_eq!(denied.head.status, 503);
    assert_eq!(denied.head.header("www-authenticate"), None);
}

#[test]
fn a_malformed_authorization_never_reaches_the_verifier_s_auth_11() {
    let request = Request { authorization: Some("Bearer good".into()), query: Some("access_token=good") };
    let denied = block_on(authorizer().authenticate(&request, NOW)).unwrap_err();
    assert_eq!(denied.head.status, 400);
    assert!(
        denied.head.header("www-authenticate").unwrap().starts_with("Bearer error=\"invalid_request\", ")
    );
    assert_eq!(authenticate("good good").unwrap_err().head.status, 400);
}

#[test]
fn too_little_is_403_with_what_is_needed_a04_s_auth_12() {
    let (service, _) = service();
    let text = r#"{"name":"write"}"#;
    let params = Params::from_json(text).unwrap();
    let authorizer = authorizer();
    let denied = authorizer.permit(&service, "tools/call", &params, &caller("files:read")).unwrap_err();
    assert_eq!(denied.head.status, 403);
    assert_eq!(
        denied.head.header("www-authenticate"),
        Some(
            "Bearer error=\"insufficient_scope\", \
             resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\", \
             scope=\"files:read files:write\""
        )
    );
    assert!(authorizer.permit(&service, "tools/call", &params, &caller("files:read files:write")).is_ok());
}

#[test]
fn a_legacy_subscription_needs_the_scopes_of_its_resource() {
    let (service, _) = service();
    for (granted, answer) in [("", "error"), ("logs", "result")] {
        let mut client = Client::of(&service, Some(caller(granted)));
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.take();
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
            "params": {"uri": "log://x"}}));
        assert!(client.one()[answer].is_object(), "{granted}");
    }
}
