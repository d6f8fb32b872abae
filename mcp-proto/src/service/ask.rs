//! Asking the client in the course of a call, the same way in every era.
//!
//! `ask` is a future that parks. In 2026-07-28 a handler that is parked with open questions is dropped and
//! `input_required` is answered, with the questions and a sealed journal of what was answered before; the
//! next round runs the handler again from the start and replays the journal. In a legacy session or a task
//! the handler stays alive and the answer is delivered into it.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::call::{Call, Ctx, Inner};
use super::schema::Elicit;
use crate::model::{
    CreateMessage, CreateMessageResult, ElicitAction, ElicitForm, ElicitUrl, InputRequest, InputRequests,
    InputResponse, ProtocolVersion, Root, Str,
};
use crate::rpc::{Error, Members, PointerToken};
use crate::server::ClientFeatures;

/// Why a question has no answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AskError {
    /// The user said no.
    Declined,
    /// The user closed the question without an answer.
    Cancelled,
    /// The client did not declare that it can be asked this: all that it would have to declare besides.
    MissingCapability(ClientFeatures),
    /// The client answered with an error, as when the user refuses to sample.
    Refused(Error),
    /// The question under this key changed between two rounds, twice: it must be a function of the
    /// arguments and of earlier answers.
    Drift(Str),
    /// The question cannot be asked: its form is not flat, or the client's revision has no words for it.
    Impossible(Str),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined => f.write_str("the user declined to answer"),
            Self::Cancelled => f.write_str("the user did not answer"),
            Self::MissingCapability(required) => {
                write!(f, "the client cannot be asked: it did not declare {required}")
            }
            Self::Refused(error) => write!(f, "the client refused to answer: {}", error.message),
            Self::Drift(key) => write!(f, "the question {key:?} changed between two rounds"),
            Self::Impossible(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for AskError {}

/// A question as it goes out as a request: URL elicitation of 2025-11-25 has an id of its own.
pub(crate) fn with_elicitation_id(
    request: &InputRequest,
    version: ProtocolVersion,
    service: &super::Service,
) -> InputRequest {
    match request {
        InputRequest::ElicitUrl(url) if version.has_elicitation_ids() && url.elicitation_id.is_none() => {
            let id = URL_SAFE_NO_PAD.encode(service.random_bytes::<16>());
            url.as_ref().clone().elicitation_id(id).into()
        }
        other => other.clone(),
    }
}

/// The client cannot answer any more.
pub(crate) fn connection_closed() -> Error {
    Error::new(crate::rpc::code::INTERNAL_ERROR, "the connection is closed")
}

/// What was asked and answered in a call, over all its rounds.
#[derive(Default)]
pub(crate) struct Asks {
    journal: Journal,
    /// Answers that the handler has not looked at yet: raw, or the client's error.
    fresh: BTreeMap<Str, Result<Box<RawValue>, Error>>,
    /// Questions without an answer, in the order asked.
    open: Vec<Open>,
    /// Keys whose question changed once already.
    drifted: Vec<Str>,
}

struct Open {
    key: Str,
    request: InputRequest,
    /// Whether it went out already (legacy and tasks).
    sent: bool,
}

/// What rides in `requestState`: answers with the digest of their question, results of steps, rounds.
#[derive(Default)]
struct Journal {
    answers: BTreeMap<Str, (String, Box<RawValue>)>,
    steps: BTreeMap<Str, Box<RawValue>>,
    rounds: u32,
}

impl Journal {
    fn write(&self) -> Vec<u8> {
        use crate::rpc::write_str;
        let mut out = Vec::new();
        out.extend_from_slice(b"{\"r\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.rounds).as_bytes());
        out.extend_from_slice(b",\"a\":{");
        for (at, (key, (digest, answer))) in self.answers.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_str(&mut out, key);
            out.extend_from_slice(b":[");
            write_str(&mut out, digest);
            out.push(b',');
            out.extend_from_slice(answer.get().as_bytes());
            out.push(b']');
        }
        out.extend_from_slice(b"},\"s\":{");
        for (at, (key, value)) in self.steps.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_str(&mut out, key);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.extend_from_slice(b"}}");
        out
    }

    /// The payload was sealed by this server, so a text that does not fit is a defect, not an attack.
    fn read(payload: &[u8]) -> Option<Self> {
        let members = Members::from_json(core::str::from_utf8(payload).ok()?)?;
        let object = |name: &str| Members::from_json(members.get(name)?.get());
        let mut journal = Self { rounds: members.get("r")?.get().parse().ok()?, ..Self::default() };
        for (key, pair) in object("a")? {
            let (digest, answer): (String, Box<RawValue>) = serde_json::from_str(pair.get()).ok()?;
            journal.answers.insert(Str::Owned(key.into_owned()), (digest, answer));
        }
        for (key, value) in object("s")? {
            journal.steps.insert(Str::Owned(key.into_owned()), value.to_owned());
        }
        Some(journal)
    }
}

impl Asks {
    /// The state of a retry: the journal as it was sealed, and the answers the client brings.
    pub(crate) fn resume(journal: Option<&[u8]>, responses: Option<&Members<'_>>) -> Option<Self> {
        let journal = match journal {
            Some(payload) => Journal::read(payload)?,
            None => Journal::default(),
        };
        let fresh = responses
            .into_iter()
            .flat_map(Members::iter)
            .map(|(key, raw)| (Str::Owned(key.into()), Ok(raw.to_owned())))
            .collect();
        Some(Self { journal, fresh, ..Self::default() })
    }

    /// Whether the answers to open questions can be read. Others do not matter.
    ///
    /// # Errors
    ///
    /// `-32602`, naming the first that does not fit.
    pub(crate) fn check(&self, responses: &Members<'_>) -> Result<(), Error> {
        for open in &self.open {
            if let Some(raw) = responses.get(&open.key) {
                read_response(&open.request, raw.get()).map_err(|why| unfit_response(&open.key, &why))?;
            }
        }
        Ok(())
    }

    /// The questions that wait for an answer.
    pub(crate) fn is_parked(&self) -> bool {
        self.open.iter().any(|open| !open.sent)
    }

    /// The questions of this round, and the journal to seal. Counts the round.
    pub(crate) fn park(&mut self) -> (InputRequests, Vec<u8>, u32) {
        self.journal.rounds += 1;
        let mut requests = InputRequests::new();
        for open in self.open.drain(..) {
            requests.insert(open.key, open.request);
        }
        (requests, self.journal.write(), self.journal.rounds)
    }

    /// The questions that have to be sent, marked as sent.
    pub(crate) fn take_unsent(&mut self) -> Vec<(Str, InputRequest)> {
        self.open
            .iter_mut()
            .filter_map(|open| {
                let unsent = !core::mem::replace(&mut open.sent, true);
                unsent.then(|| (open.key.clone(), open.request.clone()))
            })
            .collect()
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.journal.rounds
    }

    pub(crate) fn count_round(&mut self) {
        self.journal.rounds += 1;
    }
}

impl Call {
    /// An answer came while the handler is alive.
    pub(crate) fn deliver(&self, key: &str, answer: Result<Box<RawValue>, Error>) {
        {
            let mut inner = self.lock();
            inner.asks.open.retain(|open| open.key != key);
            inner.asks.fresh.insert(Str::Owned(key.into()), answer);
        }
        self.wake();
    }

    /// Whether the client's revision has words for a question. An id that is still missing is added later.
    fn expresses(&self, request: &InputRequest) -> Result<(), Str> {
        if matches!(request, InputRequest::ElicitUrl(_)) {
            return Ok(());
        }
        request.write_params(&mut Vec::new(), self.version).map_err(|why| Str::Owned(format!("{why}")))
    }

    /// Looks for the answer to a question; registers the question if there is none.
    fn answer(
        &self,
        inner: &mut Inner,
        key: &Str,
        request: &InputRequest,
    ) -> Poll<Result<InputResponse, AskError>> {
        let digest = digest(request);
        let asks = &mut inner.asks;
        match asks.journal.answers.get(key) {
            Some((asked, answer)) if *asked == digest => {
                return match InputResponse::decode(request, answer.get()) {
                    Ok(answer) => Poll::Ready(Ok(answer)),
                    Err(_) => Poll::Ready(Err(AskError::Drift(key.clone()))),
                };
            }
            Some(_) if asks.drifted.contains(key) => return Poll::Ready(Err(AskError::Drift(key.clone()))),
            Some(_) => {
                // The old answer is to another question: ask once more.
                asks.drifted.push(key.clone());
                asks.journal.answers.remove(key);
            }
            None => {}
        }
        match asks.fresh.remove(key) {
            Some(Err(error)) => Poll::Ready(Err(AskError::Refused(error))),
            Some(Ok(raw)) => match read_response(request, raw.get()) {
                Ok(answer) => {
                    asks.journal.answers.insert(key.clone(), (digest, raw));
                    Poll::Ready(Ok(answer))
                }
                Err(why) => {
                    // The client's fault, and not the handler's to forgive. [spec: basic/patterns/mrtr]
                    inner.failed = Some(unfit_response(key, &why));
                    Poll::Pending
                }
            },
            None => {
                if let Some(required) = self.features.missing([request]) {
                    return Poll::Ready(Err(AskError::MissingCapability(required)));
                }
                if let Err(why) = self.expresses(request) {
                    return Poll::Ready(Err(AskError::Impossible(why)));
                }
                if !asks.open.iter().any(|open| open.key == *key) {
                    asks.open.push(Open { key: key.clone(), request: request.clone(), sent: false });
                }
                Poll::Pending
            }
        }
    }
}

/// Reads an answer by what was asked, and checks a form's content against the form.
fn read_response(request: &InputRequest, json: &str) -> Result<InputResponse, String> {
    let answer = InputResponse::decode(request, json).map_err(|e| format!("{e}"))?;
    if let (InputRequest::ElicitForm(form), InputResponse::Elicit(answer)) = (request, &answer) {
        answer.check(&form.requested_schema).map_err(|e| format!("{e}"))?;
    }
    Ok(answer)
}

fn unfit_response(key: &str, why: &str) -> Error {
    Error::invalid_params(format!("Invalid params at /params/inputResponses/{}: {why}", PointerToken(key)))
}

/// Pins an answer to its question.
fn digest(request: &InputRequest) -> String {
    let mut text = Vec::new();
    text.extend_from_slice(request.method().as_bytes());
    text.push(0);
    let _ = request.write_params(&mut text, ProtocolVersion::LATEST);
    URL_SAFE_NO_PAD.encode(&Sha256::digest(&text)[..12])
}

/// A question that was asked. Await it; several can be awaited together and then go out in one round.
#[must_use = "a question that is not awaited is not asked"]
pub struct Ask<T> {
    call: Arc<Call>,
    key: Str,
    request: Result<InputRequest, AskError>,
    read: fn(InputResponse) -> Result<T, AskError>,
    answer: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Ask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<T> Future for Ask<T> {
    type Output = Result<T, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let request = match &self.request {
            Ok(request) => request,
            Err(why) => return Poll::Ready(Err(why.clone())),
        };
        let mut inner = self.call.lock();
        let answer = self.call.answer(&mut inner, &self.key, request);
        if answer.is_pending() {
            inner.wait(cx.waker());
        }
        answer.map(|answer| (self.read)(answer?))
    }
}

impl Ctx {
    /// Asks the user to fill in a form made from the type `T`: a struct of strings, numbers, booleans and
    /// enums. `key` names the question within the call; the question must be a function of the arguments
    /// and of earlier answers.
    /// [spec: client/elicitation]
    pub fn ask<T: Elicit>(&self, key: impl Into<Str>, message: impl Into<Str>) -> Ask<T> {
        let request = T::form(message.into()).map(InputRequest::from);
        self.question(key.into(), request.map_err(AskError::Impossible), |answer| match answer {
            InputResponse::Elicit(answer) => match (answer.action, answer.content_text()) {
                (ElicitAction::Accept, content) => T::read(&content).map_err(AskError::Impossible),
                (ElicitAction::Decline, _) => Err(AskError::Declined),
                _ => Err(AskError::Cancelled),
            },
            _ => Err(AskError::Cancelled),
        })
    }

    /// Asks the user to fill in a form made by hand. The answer is the JSON text of the content.
    pub fn ask_form(&self, key: impl Into<Str>, form: ElicitForm) -> Ask<String> {
        self.question(key.into(), Ok(form.into()), |answer| match answer {
            InputResponse::Elicit(answer) => match answer.action {
                ElicitAction::Accept => Ok(answer.content_text()),
                ElicitAction::Decline => Err(AskError::Declined),
                _ => Err(AskError::Cancelled),
            },
            _ => Err(AskError::Cancelled),
        })
    }

    /// Asks the user to visit a URL, for what must not pass through the client: credentials, payments.
    pub fn ask_url(&self, key: impl Into<Str>, url: ElicitUrl) -> Ask<()> {
        self.question(key.into(), Ok(url.into()), |answer| match answer {
            InputResponse::Elicit(answer) => match answer.action {
                ElicitAction::Accept => Ok(()),
                ElicitAction::Decline => Err(AskError::Declined),
                _ => Err(AskError::Cancelled),
            },
            _ => Err(AskError::Cancelled),
        })
    }

    /// Asks the client's model. [spec: client/sampling]
    pub fn sample(&self, key: impl Into<Str>, message: CreateMessage) -> Ask<CreateMessageResult> {
        self.question(key.into(), Ok(message.into()), |answer| match answer {
            InputResponse::CreateMessage(message) => Ok(message),
            _ => Err(AskError::Cancelled),
        })
    }

    /// Asks for the client's roots. [spec: client/roots]
    pub fn roots(&self, key: impl Into<Str>) -> Ask<Vec<Root>> {
        self.question(key.into(), Ok(InputRequest::ListRoots), |answer| match answer {
            InputResponse::ListRoots(answer) => Ok(answer.roots),
            _ => Err(AskError::Cancelled),
        })
    }

    fn question<T>(
        &self,
        key: Str,
        request: Result<InputRequest, AskError>,
        read: fn(InputResponse) -> Result<T, AskError>,
    ) -> Ask<T> {
        Ask { call: Arc::clone(&self.call), key, request, read, answer: PhantomData }
    }

    /// Runs a side effect, or anything slow, once per call: its result is kept over the rounds of questions
    /// instead of running again. A result that does not serialise is not kept.
    pub async fn step<T, F>(&self, key: impl Into<Str>, run: impl FnOnce() -> F) -> T
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = T>,
    {
        let key = key.into();
        let known = self.call.lock().asks.journal.steps.get(&key).map(|raw| serde_json::from_str(raw.get()));
        if let Some(Ok(known)) = known {
            return known;
        }
        let value = run().await;
        if let Ok(raw) = serde_json::value::to_raw_value(&value) {
            self.call.lock().asks.journal.steps.insert(key, raw);
        }
        value
    }

    /// Goes on as a task: the client gets the task at once and polls it, the handler works on. `false` if
    /// the client cannot have tasks in this call, or it is a task already.
    pub async fn become_task(&self) -> bool {
        let mut asked = false;
        poll_fn(|cx| {
            let mut inner = self.call.lock();
            if inner.task.is_some() {
                return Poll::Ready(asked);
            }
            if asked && !inner.wants_task {
                return Poll::Ready(false);
            }
            if !asked && !self.call.can_become_task() {
                return Poll::Ready(false);
            }
            asked = true;
            inner.wants_task = true;
            inner.wait(cx.waker());
            Poll::Pending
        })
        .await
    }
}
