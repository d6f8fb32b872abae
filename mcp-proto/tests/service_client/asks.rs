//! What servers ask: the same responders in every era.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_proto::client::CallError;
use mcp_proto::model::{
    CreateMessage, CreateMessageResult, ElicitForm, ElicitResult, ElicitUrl, ProtocolVersion as V, Root,
    SamplingMessage,
};
use mcp_proto::service::client::{Client, ClientBuilder, Refusal};
use mcp_proto::service::{NoArguments, Server, Service, ToolError};
use serde_json::json;

use crate::basics::{client, speaking};
use crate::rig::{Rig, block_on, now, poll};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    sure: bool,
}

fn asking() -> Service {
    Server::new("asking", "1")
        .tool("confirm", |ctx, _: NoArguments| async move {
            let answer: Confirm = ctx.ask("confirm", "Sure?").await?;
            Ok(format!("sure: {}", answer.sure))
        })
        .tool("visit", |ctx, _: NoArguments| async move {
            ctx.ask_url("visit", ElicitUrl::new("Pay", "https://example.com/pay")).await?;
            Ok("paid")
        })
        .tool("think", |ctx, _: NoArguments| async move {
            let message = CreateMessage::new([SamplingMessage::user("Why?")], 100);
            let said = ctx.sample("think", message).await?;
            Ok(serde_json::to_string(&said.content).unwrap())
        })
        .tool("look", |ctx, _: NoArguments| async move {
            let roots = ctx.roots("look").await?;
            Ok(roots.iter().map(|root| &*root.uri).collect::<Vec<_>>().join(" "))
        })
        .tool("all", |ctx, _: NoArguments| async move {
            let (a, b, c) =
                (ctx.ask::<Confirm>("a", "A?"), ctx.ask::<Confirm>("b", "B?"), ctx.ask::<Confirm>("c", "C?"));
            let (a, b, c) = join(a, b, c).await;
            Ok(format!("{} {} {}", a?.sure, b?.sure, c?.sure))
        })
        .tool("twice", |ctx, _: NoArguments| async move {
            let first: Confirm = ctx.ask("first", "First?").await?;
            let second: Confirm = ctx.ask("second", "Second?").await?;
            Ok(format!("{} {}", first.sure, second.sure))
        })
        .build()
        .unwrap()
}

async fn join<A: Future, B: Future, C: Future>(a: A, b: B, c: C) -> (A::Output, B::Output, C::Output) {
    use std::pin::pin;
    let (mut a, mut b, mut c) = (pin!(a), pin!(b), pin!(c));
    let (mut x, mut y, mut z) = (None, None, None);
    std::future::poll_fn(move |cx| {
        use std::task::Poll::{Pending, Ready};
        if x.is_none()
            && let Ready(value) = a.as_mut().poll(cx)
        {
            x = Some(value);
        }
        if y.is_none()
            && let Ready(value) = b.as_mut().poll(cx)
        {
            y = Some(value);
        }
        if z.is_none()
            && let Ready(value) = c.as_mut().poll(cx)
        {
            z = Some(value);
        }
        match (x.take(), y.take(), z.take()) {
            (Some(p), Some(q), Some(r)) => Ready((p, q, r)),
            (p, q, r) => {
                (x, y, z) = (p, q, r);
                Pending
            }
        }
    })
    .await
}

/// Answers after two turns, as a person would.
fn person(sure: bool) -> ClientBuilder {
    client().on_elicit(move |form, cx| async move {
        assert_eq!(cx.server().unwrap().identity.as_ref().unwrap().name, "asking");
        assert!(form.requested_schema.is_required("sure"));
        turn().await;
        Ok(ElicitResult::accept_with(&Confirm { sure })?)
    })
}

async fn turn() {
    let mut first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}

fn call(builder: ClientBuilder, version: V, tool: &'static str) -> Result<String, CallError> {
    let mode =
        if version.is_modern() { mcp_proto::client::Mode::Modern } else { mcp_proto::client::Mode::Legacy };
    let builder = builder.versions([version]).mode(mode);
    let called =
        block_on(builder.in_memory(&asking(), async |client| client.call_tool(tool, ()).await)).unwrap();
    called.map(|result| result.texts())
}

const WITH_FORMS: [V; 3] = [V::V2025_06_18, V::V2025_11_25, V::V2026_07_28];

/// C-ELIC-01, C-MRTR-02: one responder for rounds and for requests.
#[test]
fn one_responder_serves_both_eras() {
    for version in WITH_FORMS {
        assert_eq!(call(person(true), version, "confirm").unwrap(), "sure: true", "{version}");
        assert_eq!(call(person(false), version, "twice").unwrap(), "false false", "{version}");
        assert_eq!(call(person(true), version, "all").unwrap(), "true true true", "{version}");
    }
    for version in V::ALL {
        let said = client().on_sample(|message, _| async move {
            assert_eq!(message.max_tokens, 100);
            turn().await;
            Ok(CreateMessageResult::new("model", "Because."))
        });
        assert!(call(said, version, "think").unwrap().contains("Because."), "{version}");
        let roots = client().roots([Root::new("file:///a"), Root::new("file:///b")]);
        assert_eq!(call(roots, version, "look").unwrap(), "file:///a file:///b", "{version}");
    }
    for version in [V::V2025_11_25, V::V2026_07_28] {
        let visits = client().on_elicit_url(|url, _| async move {
            assert_eq!(url.url, "https://example.com/pay");
            Ok(ElicitResult::accept_url())
        });
        assert_eq!(call(visits, version, "visit").unwrap(), "paid", "{version}");
    }
}

/// The questions of one round are put side by side: each waits here until all were put.
#[test]
fn questions_of_one_round_are_put_side_by_side() {
    for version in WITH_FORMS {
        let (most, at_work) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (high, count) = (Arc::clone(&most), Arc::clone(&at_work));
        let builder = client().on_elicit(move |_, _| {
            let (high, count) = (Arc::clone(&high), Arc::clone(&count));
            async move {
                let others = count.fetch_add(1, Ordering::SeqCst) + 1;
                high.fetch_max(others, Ordering::SeqCst);
                while high.load(Ordering::SeqCst) < 3 {
                    turn().await;
                }
                Ok(ElicitResult::accept_with(&Confirm { sure: true })?)
            }
        });
        assert_eq!(call(builder, version, "all").unwrap(), "true true true");
        assert_eq!(most.load(Ordering::SeqCst), 3, "{version}");
    }
}

#[test]
fn a_no_is_an_answer() {
    for version in WITH_FORMS {
        let builder = client().on_elicit(|_, _| async { Ok(ElicitResult::decline()) });
        let said = call(builder, version, "confirm").unwrap();
        assert!(said.contains("declined"), "{version}: {said}");
    }
}

/// C-ELIC-21, LC-SAMP-02, LC-ROOT-03: a responder that fails ends the call where there is no other way, and is an error to a legacy server.
#[test]
fn a_responder_that_fails_is_typed() {
    let broken = [
        client().on_elicit(|_, _| async { Err(std::io::Error::other("private detail").into()) }),
        client().on_elicit(|_, _| async { panic!("private detail") }),
        client().on_elicit(|_, _| -> std::future::Ready<_> { panic!("private detail") }),
        // It does not fit the form.
        client().on_elicit(|_, _| async { Ok(ElicitResult::accept_url()) }),
    ];
    for builder in broken {
        let error = call(builder.clone(), V::V2026_07_28, "confirm").unwrap_err();
        assert!(matches!(&error, CallError::Unanswered(why) if why.contains("confirm")), "{error}");
        let said = call(builder, V::V2025_11_25, "confirm").unwrap();
        assert!(said.contains("refused") && !said.contains("private"), "{said}");
    }
    let refuses = client().on_sample(|_, _| async { Err(Refusal::by_user()) });
    assert!(call(refuses.clone(), V::V2025_06_18, "think").unwrap().contains("User rejected"));
    assert!(matches!(call(refuses, V::V2026_07_28, "think"), Err(CallError::Unanswered(_))));
}

#[test]
fn what_is_not_registered_is_not_declared() {
    let said = call(client(), V::V2025_11_25, "confirm").unwrap();
    assert!(said.contains("did not declare"), "{said}");
    assert!(
        matches!(call(client(), V::V2026_07_28, "confirm"), Err(CallError::Rpc(error)) if error.code == -32021)
    );
    let declared = Client::new("x", "1")
        .on_elicit(|form: ElicitForm, _| async move { Ok(form.accept_defaults()) })
        .roots([])
        .tasks(false)
        .capabilities();
    assert_eq!(
        serde_json::to_value(&declared).unwrap(),
        json!({"elicitation": {"form": {}}, "roots": {"listChanged": true}})
    );
    assert_eq!(serde_json::to_value(client().tasks(false).capabilities()).unwrap(), json!({}));
}

/// C-ELIC-08: what a form holds at first can be given back as it is.
#[test]
fn forms_are_filled_in_with_their_defaults() {
    let form = ElicitForm::from_schema_json(
        "m",
        &json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ann"},
            "age": {"type": "integer", "default": 30},
            "half": {"type": "number", "default": 0.5},
            "on": {"type": "boolean", "default": true},
            "one": {"type": "string", "enum": ["a", "b"], "default": "b"},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
            "none": {"type": "string"},
        }})
        .to_string(),
    )
    .unwrap();
    let answer = form.accept_defaults();
    assert!(answer.check(&form.requested_schema).is_ok());
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&answer.content_text()).unwrap(),
        json!({"name": "Ann", "age": 30, "half": 0.5, "on": true, "one": "b", "many": ["a"]})
    );
    assert!(answer.content_text().contains("\"age\":30,"), "a whole number stays one");
}

/// LC-ROOT-02: a legacy server is told that roots changed, and gets the new ones.
#[test]
fn roots_change() {
    let (client, mut rig) = Rig::legacy(client().roots([Root::new("file:///a")]), json!({}));
    rig.ask(json!("r"), "roots/list", json!({}));
    assert_eq!(rig.one()["result"]["roots"], json!([{"uri": "file:///a"}]));
    client.set_roots([Root::new("file:///b")]);
    assert_eq!(rig.one()["method"], "notifications/roots/list_changed");
    rig.ask(json!("r"), "roots/list", json!({}));
    assert_eq!(rig.one()["result"]["roots"], json!([{"uri": "file:///b"}]));
}

struct OnDrop(Arc<Mutex<u32>>);
impl Drop for OnDrop {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

fn never(dropped: &Arc<Mutex<u32>>) -> ClientBuilder {
    let dropped = Arc::clone(dropped);
    client().on_elicit(move |_, _| {
        let guard = OnDrop(Arc::clone(&dropped));
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok(ElicitResult::decline())
        }
    })
}

fn form() -> serde_json::Value {
    json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// A request that the server takes back is dropped, and not answered.
#[test]
fn a_question_that_is_taken_back_is_dropped() {
    let dropped = Arc::default();
    let (_client, mut rig) = Rig::legacy(never(&dropped), json!({}));
    rig.ask(json!("one"), "elicitation/create", form());
    rig.ask(json!("two"), "elicitation/create", form());
    assert_eq!((rig.at_work(), *dropped.lock().unwrap()), (2, 0));
    rig.notify("notifications/cancelled", json!({"requestId": "one"}));
    assert_eq!((rig.at_work(), *dropped.lock().unwrap()), (1, 1));
    rig.nothing();
    // The end of the stream takes back the rest.
    rig.link.end_of_input(rig.time());
    assert_eq!((rig.at_work(), *dropped.lock().unwrap()), (0, 2));
}

/// A round whose call is over asks nobody any more.
#[test]
fn the_end_of_a_call_drops_its_questions() {
    let dropped = Arc::default();
    let (client, mut rig) = Rig::modern(never(&dropped), json!({"tools": {}}));
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    let question = json!({"method": "elicitation/create", "params": form()});
    rig.answer(&request, json!({
        "resultType": "input_required", "inputRequests": {"a": question, "b": question}, "requestState": "s",
    }));
    assert_eq!((rig.at_work(), *dropped.lock().unwrap()), (2, 0));
    assert!(poll(&mut call).is_pending());
    drop(call);
    assert_eq!((rig.at_work(), *dropped.lock().unwrap()), (0, 2));
    rig.nothing();
}

#[test]
fn a_job_that_is_dropped_leaves_no_question_open() {
    let (client, mut rig) = Rig::modern(never(&Arc::default()), json!({"tools": {}}));
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    let question = json!({"method": "elicitation/create", "params": form()});
    let round = json!({"resultType": "input_required", "inputRequests": {"a": question}});
    let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": round}));
    rig.link.spare(line.len())[..line.len()].copy_from_slice(line.as_bytes());
    rig.link.commit(line.len());
    rig.link.process(rig.time());
    drop(rig.link.next_job().unwrap());
    rig.settle();
    assert!(matches!(now(call), Err(CallError::Unanswered(_))));
}

#[test]
fn a_legacy_server_is_answered_with_errors() {
    let (_client, mut rig) =
        Rig::legacy(client().on_elicit(|_, _| async { Err(Refusal::new("not now")) }), json!({}));
    rig.ask(json!(7), "elicitation/create", form());
    let answer = rig.one();
    assert_eq!((&answer["id"], &answer["error"]["message"]), (&json!(7), &json!("not now")));
    rig.ask(json!(8), "sampling/createMessage", json!({}));
    assert_eq!(rig.one()["error"]["code"], -32601);
}

#[test]
fn errors_of_any_kind_become_refusals() {
    fn fails() -> Result<ElicitResult, Refusal> {
        let number: u32 = "x".parse()?;
        Ok(ElicitResult::accept_with(&number)?)
    }
    assert!(fails().unwrap_err().to_string().contains("invalid digit"));
    let _ = ToolError::new("unused");
    let _ = speaking(V::LATEST);
}
