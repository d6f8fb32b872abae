//! The endpoint within another server.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::Cursor;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use http::Request;
use http_body::{Body, Frame};
use mcp_io::http::{HttpBody, Responder};
use mcp_proto::http::Settings;
use mcp_proto::server::Principal;
use mcp_proto::service::http::HttpService;
use serde_json::{Value, json};
use tower_service::Service as _;

use super::peer::{call, json_headers, modern};
use crate::rt;
use crate::suite::client::text;
use crate::suite::service::{Stage, server};

type Mounted = Responder<rt::Runtime>;
type Response = http::Response<HttpBody<rt::Runtime>>;

fn mounted(stage: &Stage) -> Mounted {
    let service = server(stage).build().unwrap();
    Responder::new(HttpService::new(&service, Settings::default()), rt::RUNTIME)
}

fn post(path: &str, message: &Value) -> Request<String> {
    let mut request = Request::post(path).header("host", "localhost");
    for (name, value) in json_headers() {
        request = request.header(name, value);
    }
    request = request.header("mcp-protocol-version", "2026-07-28");
    request = request.header("mcp-method", message["method"].as_str().unwrap());
    if let Some(name) = message["params"]["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    request.body(message.to_string()).unwrap()
}

async fn body(response: Response) -> String {
    let mut body = pin!(response.into_body());
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        all.extend(frame.unwrap().into_data().unwrap());
    }
    String::from_utf8(all).unwrap()
}

/// Of two, as a router has it.
#[test]
fn a_principal_of_the_host_counts() {
    rt::run(async {
        let mut mounted = mounted(&Stage::default());
        poll_fn(|cx| tower_service::Service::<Request<String>>::poll_ready(&mut mounted, cx)).await.unwrap();
        for (principal, expected) in [(None, "nobody"), (Some(Principal::new("alice")), "alice")] {
            let mut request = post("/mcp", &call(1, "who", json!({})));
            if let Some(principal) = principal {
                request.extensions_mut().insert(principal);
            }
            let response = mounted.call(request).await.unwrap();
            assert_eq!(response.status(), 200);
            let answer = serde_json::from_str(&body(response).await).unwrap();
            assert_eq!(text(&answer), expected);
        }
    });
}

#[test]
fn a_router_may_have_looked_at_the_path() {
    rt::run(async {
        let stage = Stage::default();
        let who = call(1, "who", json!({}));
        assert_eq!(mounted(&stage).respond(post("/", &who)).await.status(), 404);
        assert_eq!(mounted(&stage).any_path().respond(post("/", &who)).await.status(), 200);
        assert_eq!(mounted(&stage).path("/x").respond(post("/x", &who)).await.status(), 200);
    });
}

/// Dropping what a client waits for cancels its call.
#[test]
fn a_response_that_is_dropped_cancels() {
    rt::run(async {
        let stage = Stage::default();
        let mounted = mounted(&stage);
        {
            let mut responding = pin!(mounted.respond(post("/mcp", &call(1, "stuck", json!({})))));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(matches!(responding.as_mut().poll(&mut cx), Poll::Pending));
            assert_eq!((stage.stuck.load(Ordering::SeqCst), mounted.in_flight()), (1, 1));
        }
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
        assert_eq!(mounted.in_flight(), 0);
    });
}

#[test]
fn a_server_that_ends_ends_its_subscriptions_and_says_so() {
    rt::run(async {
        let mounted = mounted(&Stage::default());
        let probe = || Request::get("/healthz").body(String::new()).unwrap();
        assert_eq!(mounted.respond(probe()).await.status(), 200);
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let listen = mounted.respond(post("/mcp", &modern(1, "subscriptions/listen", filter))).await;
        assert_eq!(listen.status(), 200);
        let listening = rt::spawn(body(listen));
        mounted.close();
        assert!(listening.await.contains("\"result\""));
        assert_eq!(mounted.respond(probe()).await.status(), 503);
    });
}

/// A body that has begun, and does not go on.
struct Half(Option<Vec<u8>>);

impl Body for Half {
    type Data = Cursor<Vec<u8>>;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Cursor<Vec<u8>>>, Infallible>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(Cursor::new(bytes))))),
            None => Poll::Pending,
        }
    }
}

/// All bodies together have a bound: at it a request is served, one byte above it is not, and what is given back
/// can be used again.
#[test]
fn bodies_have_a_bound_together() {
    rt::run(async {
        const BUDGET: usize = 10_000;
        let mounted = mounted(&Stage::default()).body_budget(BUDGET);
        let padded = |length: usize| {
            let mut request = post("/mcp", &call(1, "echo", json!({ "text": "in" })));
            let spaces = length - request.body().len();
            request.body_mut().push_str(&" ".repeat(spaces));
            request
        };
        let half =
            |length: usize| post("/mcp", &call(2, "echo", json!({}))).map(|_| Half(Some(vec![b' '; length])));
        {
            let mut first = pin!(mounted.respond(half(BUDGET - 4_000)));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(first.as_mut().poll(&mut cx).is_pending());
            assert_eq!(mounted.respond(padded(4_000)).await.status(), 200);
            let refused = mounted.respond(padded(4_001)).await;
            assert_eq!(
                (refused.status().as_u16(), &refused.headers()["retry-after"]),
                (503, &"1".parse().unwrap())
            );
            let told = body(refused).await;
            assert!(told.contains("more than 10000 bytes together"), "{told}");
            // The one that was refused holds nothing any more.
            assert_eq!(mounted.respond(padded(4_000)).await.status(), 200);
        }
        assert_eq!(mounted.respond(padded(BUDGET)).await.status(), 200, "what was given back");
        // More than all that there is: trying again does not help.
        assert_eq!(mounted.respond(padded(BUDGET + 1)).await.status(), 413);
    });
}
