//! From an event of the machine to a handler.

use alloc::borrow::ToOwned;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ask::Asks;
use super::call::{BoxFuture, Call, Ctx};
use super::error::Reply;
use super::handler::{CompletionRequest, PromptRequest, ResourceRequest};
use super::job::Job;
use super::session::{Shared, State};
use crate::http::head::Repeated;
use crate::http::mirror;
use crate::model::method::{
    CallToolParams, CompleteParams, CompletionReference, GetPromptParams, PageParams, ReadResourceParams,
    Retry, ServerMethod,
};
use crate::model::{EmptyResult, Json, Meta, ProtocolVersion, Str, SubscriptionFilter, meta};
use crate::registry::ResourceMatch;
use crate::rpc::{Error, Params, Parsed};
use crate::server::{
    Call as Typed, Channel, ClientFeatures, Event, Incoming, Pending, Principal, RequestKey, Untyped,
};
use crate::state::digest_arguments;
use crate::time::Instant;

/// Finds a header of the HTTP request that brought a message; `None` where there are no headers.
pub(crate) type Headers<'a> = Option<&'a dyn Fn(&str) -> Result<Option<&'a [u8]>, Repeated>>;

/// Handles one frame.
pub(crate) fn frame(shared: &Arc<Shared>, frame: &[u8], now: Instant, jobs: &mut Vec<Job>) {
    take(shared, |state| state.connection.handle(frame, now, &mut state.out), None, now, jobs);
}

/// Handles the body of a POST, which was parsed already. It came on `stream`; `caller` is who sent it, if
/// that may be other than who sent the one before.
pub(crate) fn post(
    shared: &Arc<Shared>,
    parsed: Parsed<'_>,
    caller: Option<Option<Principal>>,
    stream: u64,
    headers: Headers<'_>,
    now: Instant,
    jobs: &mut Vec<Job>,
) {
    let read = |state: &mut State| {
        if let Some(caller) = caller {
            state.caller = caller;
        }
        state.connection.routes.set_current(stream);
        state.connection.take_parsed(parsed, now, &mut state.out)
    };
    take(shared, read, headers, now, jobs);
}

/// Hands messages to the machine, and what it makes of them to their handlers.
fn take<'b>(
    shared: &Arc<Shared>,
    read: impl FnOnce(&mut State) -> Option<Event<'b>>,
    headers: Headers<'_>,
    now: Instant,
    jobs: &mut Vec<Job>,
) {
    let mut members = Vec::new();
    let (event, caller) = {
        let mut state = shared.lock();
        let event = read(&mut state);
        let State { connection, out, caller, .. } = &mut *state;
        let event = match event {
            // All of it before the machine sees anything else: another POST may come meanwhile.
            Some(Event::Batch(batch)) => {
                members.extend(batch.filter_map(|message| connection.handle_member(message, now, out)));
                None
            }
            event => event,
        };
        (event, caller.clone())
    };
    for event in event.into_iter().chain(members) {
        handle(shared, event, caller.as_ref(), headers, jobs);
    }
}

/// A line above the size limit was skipped.
pub(crate) fn too_long(shared: &Shared) {
    let mut state = shared.lock();
    let State { connection, out, .. } = &mut *state;
    let _ = connection.refuse_oversized(out);
}

/// Handles what is due.
pub(crate) fn timeout(shared: &Arc<Shared>, now: Instant, jobs: &mut Vec<Job>) {
    loop {
        let event = {
            let mut state = shared.lock();
            let State { connection, out, .. } = &mut *state;
            connection.handle_timeout(now, out)
        };
        match event {
            Some(event) => handle(shared, event, shared.principal.as_ref(), None, jobs),
            None => return,
        }
    }
}

fn handle(
    shared: &Arc<Shared>,
    event: Event<'_>,
    caller: Option<&Principal>,
    headers: Headers<'_>,
    jobs: &mut Vec<Job>,
) {
    match event {
        Event::Request(incoming) => request(shared, incoming, caller, headers, jobs),
        Event::Cancelled { key, .. } | Event::TimedOut { key } => {
            let call = shared.lock().calls.end(key);
            if let Some(call) = call {
                call.cancel();
            }
            shared.service.forget_waiter(key);
        }
        Event::Answer(answer) => {
            let asked = shared.lock().calls.answered(answer.ask);
            if let Some((call, key)) = asked {
                super::tasks::answered(&call, &key);
                call.deliver(&key, answer.outcome.map(ToOwned::to_owned));
            }
        }
        Event::Notification(notice) => shared.service.notified(&notice.method, &notice.params),
        // The service never parks calls in the machine: handlers stay alive instead.
        _ => {}
    }
}

fn request(
    shared: &Arc<Shared>,
    incoming: Incoming<'_>,
    principal: Option<&Principal>,
    headers: Headers<'_>,
    jobs: &mut Vec<Job>,
) {
    let Incoming { version, features, .. } = incoming;
    // The typed view consumes the params; `_meta` and the raw arguments are wanted as well.
    let params = incoming.params.clone();
    let typed = match incoming.typed() {
        Ok(typed) => typed,
        Err(refusal) => {
            let mut state = shared.lock();
            let State { connection, out, .. } = &mut *state;
            let _ = connection.refuse(refusal, out);
            return;
        }
    };
    let service = &shared.service;
    let registry = service.registry();
    let mut start = Start { shared, params: &params, features, principal, headers, jobs };
    match typed {
        Typed::CallTool(pending, params) => start.tool(&pending, &params, version),
        Typed::GetPrompt(pending, params) => start.prompt(&pending, params, version),
        Typed::ReadResource(pending, params) => start.resource(&pending, &params, version),
        Typed::Complete(pending, params) => start.complete(&pending, params, version),
        Typed::ListTools(pending, PageParams { cursor, .. }) => respond(shared, |state| {
            state.connection.respond_with(pending, &mut state.out, |out, version| {
                registry.list_tools(version, principal, cursor.as_deref(), out)
            })
        }),
        Typed::ListResources(pending, PageParams { cursor, .. }) => respond(shared, |state| {
            state.connection.respond_with(pending, &mut state.out, |out, version| {
                registry.list_resources(version, principal, cursor.as_deref(), out)
            })
        }),
        Typed::ListResourceTemplates(pending, PageParams { cursor, .. }) => respond(shared, |state| {
            state.connection.respond_with(pending, &mut state.out, |out, version| {
                registry.list_templates(version, principal, cursor.as_deref(), out)
            })
        }),
        Typed::ListPrompts(pending, PageParams { cursor, .. }) => respond(shared, |state| {
            state.connection.respond_with(pending, &mut state.out, |out, version| {
                registry.list_prompts(version, principal, cursor.as_deref(), out)
            })
        }),
        Typed::Subscribe(pending, params) => {
            let known = registry
                .resource(version, principal, &params.uri)
                .and_then(|found| service.enforce(found.scopes(), principal));
            respond(shared, |state| match known {
                Ok(()) => state.connection.respond(pending, &EmptyResult::new(), &mut state.out),
                Err(error) => state.connection.fail(pending, &error, &mut state.out),
            });
        }
        Typed::Unsubscribe(pending, _) => {
            respond(shared, |state| state.connection.respond(pending, &EmptyResult::new(), &mut state.out));
        }
        Typed::Listen(pending, params) => {
            let honored = service.honored(shared, principal, &params.notifications, version, features);
            // Before the acknowledgment leaves: nothing falls between. A byte stream is registered already.
            if headers.is_some() {
                service.register(shared);
            }
            respond(shared, |state| match honored {
                Ok(honored) => state.connection.acknowledge(pending, &honored, &mut state.out),
                Err(error) => state.connection.fail(pending, &error, &mut state.out),
            });
        }
        Typed::GetTask(pending, params) => {
            super::tasks::get(shared, pending, &params.task_id, version, features);
        }
        Typed::UpdateTask(pending, params) => {
            super::tasks::update(shared, pending, &params, version, features);
        }
        Typed::CancelTask(pending, params) => {
            super::tasks::cancel(shared, pending, &params.task_id, version, features);
        }
        Typed::TaskResult(pending, params) => super::tasks::result(shared, pending, &params.task_id),
        Typed::ListTasks(pending, params) => super::tasks::list(shared, pending, params.cursor.as_deref()),
        Typed::Other(incoming) => start.other(incoming),
    }
}

fn respond<T>(shared: &Shared, answer: impl FnOnce(&mut State) -> T) {
    let _ = answer(&mut shared.lock());
}

fn fail(shared: &Shared, key: RequestKey, error: &Error) {
    respond(shared, |state| state.connection.fail(Pending::<Untyped>::new(key), error, &mut state.out));
}

/// What starting a handler needs besides the params of its method.
struct Start<'a, 'b, 'h> {
    shared: &'a Arc<Shared>,
    params: &'a Params<'b>,
    features: ClientFeatures,
    principal: Option<&'a Principal>,
    headers: Headers<'h>,
    jobs: &'a mut Vec<Job>,
}

impl Start<'_, '_, '_> {
    fn tool(
        &mut self,
        pending: &Pending<crate::model::method::CallTool>,
        params: &CallToolParams<'_>,
        version: ProtocolVersion,
    ) {
        let shared = self.shared;
        let service = &shared.service;
        let key = pending.key();
        let found = service.registry().tool(version, self.principal, &params.name).and_then(|tool| {
            if let Some(lookup) = self.headers.filter(|_| version.is_modern()) {
                mirror::check_arguments(lookup, params.arguments, tool.header_arguments())?;
            }
            service.enforce(tool.scopes(), self.principal).map(|()| (*tool.handler(), tool.scopes().clone()))
        });
        let (tool, scopes) = match found {
            Ok((tool, scopes)) => (service.tool(tool), scopes),
            Err(error) => return fail(shared, key, &error),
        };
        let ttl = match params.task.map(|task| super::tasks::ttl_of(task.get())).transpose() {
            Ok(ttl) => ttl.flatten().filter(|_| version.has_core_tasks()),
            Err(error) if version.has_core_tasks() => return fail(shared, key, &error),
            Err(_) => None,
        };
        let as_task = match super::tasks::wanted(tool, params.task.is_some(), version, self.features) {
            Ok(as_task) => as_task,
            Err(error) => return fail(shared, key, &error),
        };
        let arguments = params.arguments.map(|raw| raw.get());
        let Some(ctx) =
            self.open(key, version, Some(ServerMethod::CallTool), &params.name, arguments, &params.retry)
        else {
            return;
        };
        if as_task {
            ctx.call.lock().task_ttl = ttl;
        }
        if !scopes.is_empty() {
            ctx.call.lock().scopes = scopes;
        }
        match (tool.call)(ctx.clone(), arguments.unwrap_or("{}")) {
            Ok(future) => {
                self.run(ctx, Some(ServerMethod::CallTool), &params.name, arguments, as_task, future);
            }
            Err(reply) => answer(&ctx, reply),
        }
    }

    fn prompt(
        &mut self,
        pending: &Pending<crate::model::method::GetPrompt>,
        params: GetPromptParams<'_>,
        version: ProtocolVersion,
    ) {
        let shared = self.shared;
        let service = &shared.service;
        let key = pending.key();
        let found = service
            .registry()
            .prompt(version, self.principal, &params.name)
            .and_then(|prompt| service.enforce(prompt.scopes(), self.principal).map(|()| prompt))
            .and_then(|prompt| prompt.check_arguments(&params.arguments).map(|()| *prompt.handler()));
        let prompt = match found {
            Ok(prompt) => service.prompt(prompt),
            Err(error) => return fail(shared, key, &error),
        };
        let raw = self.params.members().get("arguments").map(|raw| raw.get());
        let Some(ctx) =
            self.open(key, version, Some(ServerMethod::GetPrompt), &params.name, raw, &params.retry)
        else {
            return;
        };
        match (prompt.call)(ctx.clone(), PromptRequest::new(params.arguments)) {
            Ok(future) => self.run(ctx, Some(ServerMethod::GetPrompt), &params.name, raw, false, future),
            Err(reply) => answer(&ctx, reply),
        }
    }

    fn resource(
        &mut self,
        pending: &Pending<crate::model::method::ReadResource>,
        params: &ReadResourceParams<'_>,
        version: ProtocolVersion,
    ) {
        let shared = self.shared;
        let service = &shared.service;
        let key = pending.key();
        if params.uri.len() > service.config().limits.max_uri {
            return fail(shared, key, &Error::invalid_params("Invalid params at /params/uri: too long"));
        }
        let found = service
            .registry()
            .resource(version, self.principal, &params.uri)
            .and_then(|found| service.enforce(found.scopes(), self.principal).map(|()| found));
        let found = match found {
            Ok(found) => found,
            Err(error) => return fail(shared, key, &error),
        };
        let resource = service.resource(*found.handler());
        let variables = match &found {
            ResourceMatch::Template(template, captures) => template
                .uri_template()
                .variables()
                .map(|name| (name.into(), captures.text(name).unwrap_or_default().into()))
                .collect(),
            _ => Vec::new(),
        };
        let request = ResourceRequest::new(&params.uri, variables);
        let Some(ctx) =
            self.open(key, version, Some(ServerMethod::ReadResource), &params.uri, None, &params.retry)
        else {
            return;
        };
        match (resource.read)(ctx.clone(), request) {
            Ok(future) => self.run(ctx, Some(ServerMethod::ReadResource), &params.uri, None, false, future),
            Err(reply) => answer(&ctx, reply),
        }
    }

    fn complete(
        &mut self,
        pending: &Pending<crate::model::method::Complete>,
        params: CompleteParams<'_>,
        version: ProtocolVersion,
    ) {
        let shared = self.shared;
        let service = &shared.service;
        let key = pending.key();
        let completer = match service.completer(&params, version, self.principal) {
            Ok(completer) => completer,
            Err(error) => return fail(shared, key, &error),
        };
        let target = match &params.reference {
            CompletionReference::Prompt(name) | CompletionReference::Resource(name) => name.clone(),
        };
        let Some(ctx) =
            self.open(key, version, Some(ServerMethod::Complete), &target, None, &Retry::default())
        else {
            return;
        };
        let future = completer(ctx.clone(), CompletionRequest::new(params));
        self.run(ctx, Some(ServerMethod::Complete), &target, None, false, future);
    }

    fn other(&mut self, incoming: Incoming<'_>) {
        let shared = self.shared;
        let Some(custom) = shared.service.custom(&incoming.method) else {
            let refusal = incoming.not_found();
            respond(shared, |state| state.connection.refuse(refusal, &mut state.out));
            return;
        };
        let key = incoming.pending.key();
        let version = incoming.version;
        let Some(ctx) = self.open(key, version, None, &incoming.method, None, &Retry::default()) else {
            return;
        };
        let future = custom(ctx.clone(), super::handler::CustomRequest::new(&incoming));
        self.run(ctx, None, &incoming.method, None, false, future);
    }

    /// The context of a call; a custom method is none of [`ServerMethod`]. `None` if its input state is not ours: then it is answered already.
    fn open(
        &self,
        key: RequestKey,
        version: ProtocolVersion,
        method: Option<ServerMethod>,
        target: &str,
        arguments: Option<&str>,
        retry: &Retry<'_>,
    ) -> Option<Ctx> {
        let shared = self.shared;
        let mut asks = Asks::default();
        if let Some(method) = method
            && version.is_modern()
            && (retry.request_state.is_some() || retry.input_responses.is_some())
        {
            let resumed = shared
                .service
                .unseal(
                    shared,
                    method,
                    target,
                    || digest_arguments(arguments),
                    retry.request_state.as_deref(),
                )
                .and_then(|journal| {
                    Asks::resume(journal.as_deref(), retry.input_responses.as_ref())
                        .ok_or_else(|| Error::invalid_params("Invalid params at /params/requestState"))
                });
            match resumed {
                Ok(resumed) => asks = resumed,
                Err(error) => {
                    fail(shared, key, &error);
                    return None;
                }
            }
        }
        let meta = kept_meta(self.params);
        Some(Ctx {
            call: Call::new(
                Arc::clone(shared),
                key,
                version,
                self.features,
                self.principal.cloned(),
                meta,
                asks,
            ),
        })
    }

    fn run(
        &mut self,
        ctx: Ctx,
        method: Option<ServerMethod>,
        target: &str,
        arguments: Option<&str>,
        as_task: bool,
        future: BoxFuture<Reply>,
    ) {
        self.jobs.extend(Job::start(ctx.call, method, target, arguments, as_task, future));
    }
}

/// A call that ends before its handler began.
fn answer(ctx: &Ctx, reply: Reply) {
    respond(&ctx.call.shared, |state| {
        reply.write(&mut state.connection, ctx.call.key, ctx.call.version, &mut state.out);
    });
}

/// The members of `_meta` that a handler may want: not what the protocol uses itself.
fn kept_meta(params: &Params<'_>) -> Meta {
    use meta::key;
    let mut kept = Meta::default();
    for (name, value) in params.meta().iter() {
        if !matches!(
            name,
            key::PROTOCOL_VERSION | key::CLIENT_CAPABILITIES | key::LOG_LEVEL | key::PROGRESS_TOKEN
        ) {
            // Most requests have this one member: its name costs nothing.
            let name = if name == key::CLIENT_INFO {
                Str::Borrowed(key::CLIENT_INFO)
            } else {
                name.to_owned().into()
            };
            kept.insert(name, Json::from(value.to_owned()));
        }
    }
    kept
}

impl super::Service {
    /// The part of a filter that this server and this caller can have. [spec: basic/patterns/subscriptions]
    fn honored(
        &self,
        shared: &Shared,
        principal: Option<&Principal>,
        asked: &SubscriptionFilter,
        version: ProtocolVersion,
        features: ClientFeatures,
    ) -> Result<SubscriptionFilter, Error> {
        let has = &self.config().capabilities;
        let mut honored = SubscriptionFilter::new();
        honored.tools_list_changed = asked.tools_list_changed && has.has_tools_list_changed();
        honored.prompts_list_changed = asked.prompts_list_changed && has.has_prompts_list_changed();
        honored.resources_list_changed = asked.resources_list_changed && has.has_resources_list_changed();
        if has.has_resource_subscriptions() {
            // One that the caller cannot read is one that does not exist.
            honored.resource_subscriptions = asked
                .resource_subscriptions
                .iter()
                .filter(|uri| self.may_read(uri, version, principal))
                .cloned()
                .collect();
        }
        if !asked.task_ids.is_empty() {
            if !features.tasks_extension {
                return Err(crate::server::missing_capability(ClientFeatures::TASKS, version));
            }
            honored.task_ids = self.owned_tasks(&asked.task_ids, shared, version);
        }
        Ok(honored)
    }
}
