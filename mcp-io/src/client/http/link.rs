//! The loop of a client over HTTP: one future for all exchanges with a server.
//!
//! Each exchange has a waker of its own, so that one of a thousand that has something to say costs one poll.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::Uri;
use mcp_proto::client::Verdict;
use mcp_proto::client::http::{Action, ExchangeId, Lost, Request};
use mcp_proto::limits::Limits;
use mcp_proto::rpc::{Message, Parsed, parse};
use mcp_proto::service::client::HttpLink;

use super::remote::Known;
use super::{Agent, Body, Failure, Lane, Network};
use crate::drive::Alarm;

/// Turns of the loop within one poll.
const TURNS: usize = 64;

/// Drives `link` until it is done. Dropping the future closes all of its exchanges.
///
/// What is found out about the server is put into `known`, at once.
pub(super) async fn drive<R: Network>(mut link: HttpLink, agent: Agent<R>, runtime: R, known: Known) {
    link.start(runtime.now());
    let (exchanges, told) = (HashMap::new(), link.verdict());
    let ready = Arc::new(Ready::default());
    let mut exchanges = Exchanges { link, agent, runtime: &runtime, exchanges, ready, known, told };
    let mut alarm = Alarm::new(&runtime);
    poll_fn(|cx| exchanges.poll(cx, &mut alarm)).await;
}

struct Exchanges<'r, R: Network> {
    link: HttpLink,
    agent: Agent<R>,
    runtime: &'r R,
    exchanges: HashMap<ExchangeId, Exchange<R>>,
    ready: Arc<Ready>,
    known: Known,
    /// What was put there last.
    told: Option<Verdict>,
}

struct Exchange<R: Network> {
    stage: Stage<R>,
    bell: Arc<Bell>,
    waker: Waker,
}

enum Stage<R: Network> {
    Sent(Sending<R>),
    Answered(Body<R>),
}

type Sending<R> = Pin<Box<dyn Future<Output = Result<http::Response<Body<R>>, Failure>> + Send>>;

/// The exchanges that are to be polled.
#[derive(Default)]
struct Ready(Mutex<(VecDeque<ExchangeId>, Option<Waker>)>);

struct Bell {
    exchange: ExchangeId,
    ready: Arc<Ready>,
    queued: AtomicBool,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<ExchangeId>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one. If there is none, the loop is woken for the next to come.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<ExchangeId> {
        let mut ready = self.lock();
        if let Some(exchange) = ready.0.pop_front() {
            return Poll::Ready(exchange);
        }
        match &mut ready.1 {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            let mut ready = self.ready.lock();
            ready.0.push_back(self.exchange);
            let waker = ready.1.take();
            drop(ready);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<R: Network> Exchanges<'_, R> {
    fn poll(&mut self, cx: &mut Context<'_>, alarm: &mut Alarm<'_, R>) -> Poll<()> {
        for _ in 0..TURNS {
            self.act();
            if self.link.is_done() {
                return Poll::Ready(());
            }
            if let Poll::Ready(exchange) = self.ready.poll_next(cx) {
                self.advance(exchange);
                continue;
            }
            if self.link.poll_ready(cx).is_ready() {
                self.link.process(self.runtime.now());
                continue;
            }
            if let Some(deadline) = self.link.next_deadline()
                && alarm.poll_until(cx, deadline).is_ready()
            {
                self.link.handle_timeout(self.runtime.now());
                continue;
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does what is to be done by now.
    fn act(&mut self) {
        let verdict = self.link.verdict();
        if verdict != self.told {
            self.told = verdict;
            // While it is asked again what it speaks, the last word is still better than none.
            if verdict.is_some() {
                self.known.set(verdict);
            }
        }
        while let Some(action) = self.link.next_action() {
            match action {
                Action::Open { exchange, request } => self.open(exchange, request),
                Action::Close(exchange) => drop(self.exchanges.remove(&exchange)),
            }
        }
        while let Some(job) = self.link.next_job() {
            self.runtime.spawn(job);
        }
    }

    fn open(&mut self, exchange: ExchangeId, request: Request) {
        let (agent, lane) = (self.agent.clone(), lane(&request));
        let sending = async move { agent.send(sent(request)?, lane).await };
        let queued = AtomicBool::new(false);
        let bell = Arc::new(Bell { exchange, ready: Arc::clone(&self.ready), queued });
        let waker = Waker::from(Arc::clone(&bell));
        waker.wake_by_ref();
        self.exchanges.insert(exchange, Exchange { stage: Stage::Sent(Box::pin(sending)), bell, waker });
    }

    /// Polls one exchange.
    fn advance(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.bell.queued.store(false, Ordering::Release);
        let cx = &mut Context::from_waker(&exchange.waker);
        let now = self.runtime.now();
        let outcome = match &mut exchange.stage {
            Stage::Sent(sending) => match sending.as_mut().poll(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    exchange.stage = Stage::Answered(body);
                    exchange.waker.wake_by_ref();
                    return self.link.head(id, head.status.as_u16(), &head.headers, now);
                }
                Poll::Ready(Err(failure)) => Err(failure),
            },
            Stage::Answered(body) => match body.poll_chunk(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(bytes))) => {
                    exchange.waker.wake_by_ref();
                    return self.link.body(id, &bytes, now);
                }
                Poll::Ready(Some(Err(failure))) => Err(failure),
                Poll::Ready(None) => Ok(()),
            },
        };
        self.exchanges.remove(&id);
        self.link.end(id, outcome.map_err(|failure| Lost(failure.to_string())), now);
    }
}

/// The request as it is sent.
fn sent(request: Request) -> Result<http::Request<Bytes>, Failure> {
    let invalid = |error: http::Error| Failure::Address(error.to_string());
    let uri = format!("{}{}", request.url.origin(), request.url.target());
    let uri = Uri::try_from(uri).map_err(|error| invalid(error.into()))?;
    let mut sent = http::Request::builder().method(request.method).uri(uri);
    for (name, value) in &request.headers {
        sent = sent.header(&**name, &**value);
    }
    sent.body(Bytes::from_owner(request.body)).map_err(invalid)
}

/// Only requests are waited for. What a legacy server asks comes on a stream, and is answered with a response.
fn lane(request: &Request) -> Lane {
    if request.method != "POST" {
        return Lane::Reply;
    }
    match parse(&request.body, &Limits::default()) {
        Ok(Parsed::Message(Message::Request { .. })) => Lane::Call,
        _ => Lane::Reply,
    }
}
