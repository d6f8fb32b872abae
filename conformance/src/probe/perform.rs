//! Doing the steps of a plan, and telling what came of each.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcp_proto::client::request::{self, Request};
use mcp_proto::client::{CallError, CallOptions};
use mcp_proto::model::{CompletionReference, LoggingLevel, SubscriptionFilter};
use mcp_proto::rpc::de::DecodeError;
use mcp_proto::service::client::{Call, Client, Listed, Subscription};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

use super::client::roots;
use super::heard::Heard;
use super::plan::{Act, Cancel, Kind, Plan, Step};
use super::runtime::Runtime;

/// How long a notification is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries of a step that has an `until`.
const AGAIN: Duration = Duration::from_millis(50);
/// How long tasks of 2025-11-25 are kept.
const TASK: Duration = Duration::from_secs(60);

/// A plan at work.
#[derive(Clone)]
pub(super) struct Performance(Arc<Inner>);

struct Inner {
    client: Client,
    runtime: Runtime,
    heard: Heard,
    timeout: Option<Duration>,
    /// For the requests that follow, in the modern era.
    level: Mutex<Option<LoggingLevel>>,
    subscriptions: Mutex<HashMap<String, Open>>,
    background: Mutex<HashMap<String, watch::Receiver<bool>>>,
    failed: AtomicBool,
}

/// A subscription that is listened to beside the steps.
struct Open {
    stop: Arc<Notify>,
    stopped: watch::Receiver<bool>,
}

/// What came of a step.
type Outcome = Result<Value, Failure>;

/// Why nothing came of it.
struct Failure {
    error: String,
    code: Option<i32>,
    data: Option<Value>,
}

impl Performance {
    pub(super) fn new(client: Client, runtime: Runtime, heard: Heard, plan: &Plan) -> Self {
        Self(Arc::new(Inner {
            client,
            runtime,
            heard,
            timeout: plan.timeout,
            level: Mutex::default(),
            subscriptions: Mutex::default(),
            background: Mutex::default(),
            failed: AtomicBool::new(false),
        }))
    }

    /// Does all steps; says whether none failed.
    pub(super) async fn run(self, steps: &[Step]) -> bool {
        let mut begun = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            if !step.background {
                self.step(step).await;
                continue;
            }
            let (ended, end) = watch::channel(false);
            let name = step.name.clone().unwrap_or_else(|| format!("#{index}"));
            lock(&self.0.background).insert(name, end.clone());
            begun.push(end);
            let (this, step) = (self.clone(), step.clone());
            self.0.runtime.spawn(async move {
                this.step(&step).await;
                let _ = ended.send(true);
            });
        }
        for end in begun {
            over(end).await;
        }
        let open: Vec<_> = lock(&self.0.subscriptions).drain().map(|(_, open)| open).collect();
        for open in open {
            open.end().await;
        }
        !self.0.failed.load(Ordering::Relaxed)
    }

    /// Does one step and tells its line.
    async fn step(&self, step: &Step) {
        let logged = self.0.heard.logged();
        let mut progress = Vec::new();
        let outcome = match &step.until {
            Some(wanted) => self.act_until(step, wanted, &mut progress).await,
            None => self.act(step, &mut progress).await,
        };
        let silent = matches!(step.act, Act::Wait(_) | Act::Join(_));
        if silent && outcome.is_ok() {
            return;
        }
        let mut line = Map::new();
        line.insert("step".into(), name_of(&step.act).into());
        if let Some(name) = &step.name {
            line.insert("as".into(), name.clone().into());
        }
        line.insert("ok".into(), outcome.is_ok().into());
        match outcome {
            Ok(Value::Object(told)) if matches!(step.act, Act::Watch(_)) => line.extend(told),
            Ok(result) => drop(line.insert("result".into(), result)),
            Err(failure) => {
                self.0.failed.store(true, Ordering::Relaxed);
                line.insert("error".into(), failure.error.into());
                if let Some(code) = failure.code {
                    line.insert("code".into(), code.into());
                }
                if let Some(data) = failure.data {
                    line.insert("data".into(), data);
                }
            }
        }
        if step.progress {
            line.insert("progress".into(), progress.into());
        }
        let logs = self.0.heard.logs_since(logged);
        if !logs.is_empty() {
            line.insert("logs".into(), logs.into());
        }
        tell(&Value::Object(line));
    }

    /// Does a step again and again: of what a server does on its own time nothing else tells when it is done.
    async fn act_until(
        &self,
        step: &Step,
        wanted: &Map<String, Value>,
        progress: &mut Vec<Value>,
    ) -> Outcome {
        let end = Instant::now() + step.most.or(self.0.timeout).unwrap_or(Duration::from_secs(30));
        loop {
            progress.clear();
            let result = self.act(step, progress).await?;
            let missing = wanted.iter().find(|(at, value)| result.pointer(at) != Some(*value));
            let Some((at, value)) = missing else { return Ok(result) };
            if Instant::now() >= end {
                let got = result.pointer(at).unwrap_or(&Value::Null);
                return Err(Failure::here(format!("expected {value} at `{at}` in the end, found {got}")));
            }
            self.0.runtime.sleep(AGAIN).await;
        }
    }

    async fn act(&self, step: &Step, progress: &mut Vec<Value>) -> Outcome {
        let client = &self.0.client;
        match &step.act {
            Act::List(kind) => self.list(*kind, step).await,
            Act::Call { name, arguments } => {
                let mut request = request::CallTool::new(name.clone());
                request.arguments = arguments.as_ref().map(json_of).transpose()?;
                let mut call = client.call(Told(request));
                if step.task {
                    call = call.task_ttl(TASK);
                }
                self.call(call, step, progress).await
            }
            Act::Read(uri) => {
                self.call(client.call(Told(request::ReadResource::new(uri.clone()))), step, progress).await
            }
            Act::Prompt { name, arguments } => {
                let request =
                    arguments.iter().fold(request::GetPrompt::new(name.clone()), |request, (name, value)| {
                        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        request.argument(name.clone(), value)
                    });
                self.call(client.call(Told(request)), step, progress).await
            }
            Act::Complete(complete) => {
                self.call(client.call(Told(completion(complete)?)), step, progress).await
            }
            Act::Level(level) => {
                let known = LoggingLevel::parse(level)
                    .ok_or_else(|| Failure::here(format!("{level:?} is no level of logging")))?;
                if client.server().version.is_modern() {
                    *lock(&self.0.level) = Some(known);
                    return Ok(json!({}));
                }
                self.call(client.call(Told(request::SetLevel::new(known))), step, progress).await
            }
            // Only the older revisions have it.
            Act::Ping if client.server().version.is_modern() => Ok(json!({})),
            Act::Ping => self.call(client.call(Told(request::Ping::new())), step, progress).await,
            Act::Subscribe(uri) => {
                self.listen(SubscriptionFilter::new().resource(uri.clone()), uri.clone(), step).await
            }
            Act::Unsubscribe(name) | Act::Unlisten(name) => {
                let open = lock(&self.0.subscriptions).remove(name);
                let open = open.ok_or_else(|| Failure::here(format!("no subscription {name:?} is open")))?;
                open.end().await;
                Ok(json!({}))
            }
            Act::Listen(filter) => {
                let filter = json_of(filter)?.decode().map_err(|fault: DecodeError| Failure::here(fault))?;
                let name = step.name.clone().unwrap_or_else(|| "subscription".to_owned());
                self.listen(filter, name, step).await
            }
            Act::Watch(method) => {
                let heard = async {
                    let params = self.0.heard.watch(method).await;
                    Ok(json!({"method": method, "params": params}))
                };
                let late = format!("no {method} came");
                self.within(step.timeout.unwrap_or(PATIENCE), heard, late).await
            }
            Act::Wait(time) => {
                self.0.runtime.sleep(*time).await;
                Ok(Value::Null)
            }
            Act::Join(name) => {
                let end = lock(&self.0.background).get(name).cloned();
                let end = end.ok_or_else(|| Failure::here(format!("nothing called {name:?} was begun")))?;
                over(end).await;
                Ok(Value::Null)
            }
            Act::Roots(list) => {
                client.set_roots(roots(list).map_err(Failure::here)?);
                Ok(json!({}))
            }
        }
    }

    async fn list(&self, kind: Kind, step: &Step) -> Outcome {
        let client = &self.0.client;
        let mut options = CallOptions::default();
        options.timeout = step.timeout.or(self.0.timeout).or(Some(Duration::from_secs(30)));
        options.use_cache = !step.fresh;
        options.log_level = *lock(&self.0.level);
        macro_rules! whole {
            ($list:expr, $member:literal) => {
                listed($member, $list.options(options).await?)
            };
        }
        match kind {
            Kind::Tools => whole!(client.tools(), "tools"),
            Kind::Resources => whole!(client.resources(), "resources"),
            Kind::Templates => whole!(client.resource_templates(), "resourceTemplates"),
            Kind::Prompts => whole!(client.prompts(), "prompts"),
        }
    }

    /// Makes a call as the step says; what is seen of its progress comes along.
    async fn call<R>(&self, call: Call<'static, R>, step: &Step, progress: &mut Vec<Value>) -> Outcome
    where
        R: Request<Result = Value> + Send + 'static,
    {
        let mut call = call;
        if let Some(timeout) = step.timeout {
            call = call.timeout(timeout);
        }
        // With `until` that is the time for all tries.
        if let Some(most) = step.most.filter(|_| step.until.is_none()) {
            call = call.max_time(most).reset_on_progress();
        }
        if step.fresh {
            call = call.no_cache();
        }
        if let Some(level) = *lock(&self.0.level) {
            call = call.log_level(level);
        }
        let seen = Arc::new(Notify::new());
        let given_up = async {
            match step.cancel {
                Some(Cancel::After(time)) => self.0.runtime.sleep(time).await,
                Some(Cancel::AtProgress) => seen.notified().await,
                None => std::future::pending().await,
            }
            Err(Failure::here("given up"))
        };
        if !step.progress && step.cancel != Some(Cancel::AtProgress) {
            return smol::future::or(async { Ok(call.await?) }, given_up).await;
        }
        let noticed = Arc::clone(&seen);
        let call = call.reset_on_progress().on_progress(move |step| {
            progress.push(json!(step.progress));
            noticed.notify_one();
        });
        smol::future::or(async { Ok(call.await?) }, given_up).await
    }

    async fn listen(&self, filter: SubscriptionFilter, name: String, step: &Step) -> Outcome {
        let mut listen = self.0.client.listen(filter);
        if let Some(timeout) = step.timeout {
            listen = listen.timeout(timeout);
        }
        let subscription = listen.await?;
        let granted = serde_json::to_value(subscription.granted()).unwrap_or_default();
        let stop = Arc::new(Notify::new());
        let (ended, stopped) = watch::channel(false);
        let (heard, told_to_stop) = (self.0.heard.clone(), Arc::clone(&stop));
        self.0.runtime.spawn(async move {
            hear(subscription, &heard, &told_to_stop).await;
            let _ = ended.send(true);
        });
        lock(&self.0.subscriptions).insert(name, Open { stop, stopped });
        Ok(json!({"notifications": granted}))
    }

    async fn within(
        &self,
        time: Duration,
        what: impl Future<Output = Outcome> + Send,
        late: String,
    ) -> Outcome {
        let alarm = self.0.runtime.sleep(time);
        smol::future::or(what, async {
            alarm.await;
            Err(Failure::here(late))
        })
        .await
    }
}

impl Open {
    async fn end(self) {
        self.stop.notify_one();
        over(self.stopped).await;
    }
}

async fn hear(mut subscription: Subscription, heard: &Heard, stop: &Notify) {
    loop {
        let next = async { subscription.next().await };
        let told = smol::future::or(async { Some(next.await) }, async {
            stop.notified().await;
            None
        })
        .await;
        match told {
            Some(Some(Ok(told))) => heard.told(&told),
            Some(Some(Err(_)) | None) | None => return,
        }
    }
}

async fn over(mut end: watch::Receiver<bool>) {
    // An error says that whoever would tell is gone: it is over, too.
    let _ = end.wait_for(|ended| *ended).await;
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request whose result is told as it came, once it was read as what it has to be.
struct Told<R>(R);

impl<R: Request> Serialize for Told<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<R: Request> Request for Told<R> {
    type Result = Value;
    const METHOD: &'static str = R::METHOD;

    fn method(&self) -> &str {
        self.0.method()
    }

    fn subject(&self) -> Option<&str> {
        self.0.subject()
    }

    fn decode(json: &str) -> Result<Value, DecodeError> {
        R::decode(json)?;
        mcp_proto::rpc::de::from_str(json)
    }
}

fn completion(json: &Value) -> Result<request::Complete, Failure> {
    let reference: CompletionReference =
        json_of(&json["ref"])?.decode().map_err(|fault: DecodeError| Failure::here(fault))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let argument = &json["argument"];
    let known = json.pointer("/context/arguments").and_then(Value::as_object);
    Ok(known.into_iter().flatten().fold(
        request::Complete::new(reference, text(&argument["name"]), text(&argument["value"])),
        |request, (name, value)| request.known(name.clone(), text(value)),
    ))
}

fn listed<T: Serialize>(member: &str, listed: Listed<T>) -> Outcome {
    let faults: Vec<String> = listed.faults.iter().map(ToString::to_string).collect();
    let items = serde_json::to_value(&listed.items).map_err(Failure::here)?;
    let mut result = json!({ member: items });
    if !faults.is_empty() {
        result["faults"] = faults.into();
    }
    Ok(result)
}

fn json_of(value: &Value) -> Result<mcp_proto::model::Json, Failure> {
    mcp_proto::model::Json::from_serialize(value).map_err(Failure::here)
}

fn name_of(act: &Act) -> &'static str {
    match act {
        Act::List(Kind::Tools) => "tools/list",
        Act::List(Kind::Resources) => "resources/list",
        Act::List(Kind::Templates) => "resources/templates/list",
        Act::List(Kind::Prompts) => "prompts/list",
        Act::Call { .. } => "tools/call",
        Act::Read(_) => "resources/read",
        Act::Prompt { .. } => "prompts/get",
        Act::Complete(_) => "completion/complete",
        Act::Subscribe(_) => "resources/subscribe",
        Act::Unsubscribe(_) => "resources/unsubscribe",
        Act::Level(_) => "logging/setLevel",
        Act::Ping => "ping",
        Act::Listen(_) => "subscriptions/listen",
        Act::Unlisten(_) => "unlisten",
        Act::Watch(_) => "watch",
        Act::Wait(_) => "wait",
        Act::Join(_) => "join",
        Act::Roots(_) => "notifications/roots/list_changed",
    }
}

/// Prints one line. Who reads it may be gone: then nothing is left to tell.
pub(super) fn tell(line: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl Failure {
    fn here(error: impl ToString) -> Self {
        Self { error: error.to_string(), code: None, data: None }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let (code, data) = match &error {
            CallError::Rpc(error) => {
                (Some(error.code), error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()))
            }
            // The revision gives it this code, which a caller of the library gets as a type of its own.
            CallError::UrlElicitationRequired(urls) => {
                (Some(-32042), Some(json!({"elicitations": serde_json::to_value(urls).unwrap_or_default()})))
            }
            _ => (None, None),
        };
        Self { error: error.to_string(), code, data }
    }
}
