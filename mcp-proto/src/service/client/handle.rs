//! The client as its user holds it.

use alloc::string::String;
use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};

use serde::Serialize;

use super::builder::ClientBuilder;
use super::call::Call;
use super::list::List;
use super::listen::Listen;
use super::outputs::Outputs;
use super::restarts::Restarts;
use super::shared::{Command, Place, Shared};
use crate::client::request::{
    CallTool, Complete, Discover, GetPrompt, ListPrompts, ListResourceTemplates, ListResources, ListTools,
    Ping, ReadResource, Request, SetLevel,
};
use crate::client::{CallError, CallOptions, Parked, ServerFacts, Verdict};
use crate::model::{
    CompletionReference, Implementation, InputResponses, Json, LoggingLevel, Root, Str, SubscriptionFilter,
};

/// A client that is connected to a server. Cheap to clone; the connection ends with the last clone, its calls
/// and its subscriptions.
///
/// Calls are futures: dropping one cancels it, and the server is told.
#[derive(Debug, Clone)]
pub struct Client {
    handle: Arc<Handle>,
    /// What was known when it was connected.
    server: Arc<ServerFacts>,
}

/// What keeps a connection open.
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) options: CallOptions,
    pub(super) max_pages: usize,
    pub(super) outputs: Outputs,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.shared.submit(Command::Close);
    }
}

impl core::fmt::Debug for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handle").field("server", &self.shared.server()).finish_non_exhaustive()
    }
}

/// A client that finds out what its server speaks. Awaiting it gives the [`Client`]; dropping it ends the
/// connection.
#[must_use = "futures do nothing unless polled"]
pub struct Connecting {
    handle: Option<Arc<Handle>>,
    place: Place,
}

impl Connecting {
    pub(super) fn new(shared: Arc<Shared>, options: CallOptions, max_pages: usize) -> Self {
        let place = Place::new(&shared);
        Self { handle: Some(Arc::new(Handle { shared, options, max_pages, outputs: Outputs })), place }
    }
}

impl core::fmt::Debug for Connecting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connecting").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Future for Connecting {
    type Output = Result<Client, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.handle.is_none() {
            return Poll::Pending;
        }
        let server = core::task::ready!(self.place.poll_connected(cx))?;
        self.handle.take().map_or(Poll::Pending, |handle| Poll::Ready(Ok(Client { handle, server })))
    }
}

impl Client {
    /// A client of this name and version, to be declared and then connected.
    #[allow(clippy::new_ret_no_self)] // there is no client before there is a server
    pub fn new(name: impl Into<Str>, version: impl Into<Str>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// A client with an identity that says more than name and version.
    pub fn with_identity(identity: Implementation) -> ClientBuilder {
        ClientBuilder::new(identity)
    }

    /// What is known of the server: the revision spoken, who it is, what it can do, how to use it.
    #[must_use]
    pub fn server(&self) -> Arc<ServerFacts> {
        self.handle.shared.server().unwrap_or_else(|| Arc::clone(&self.server))
    }

    /// What was found out, to be given to [`ClientBuilder::assume`] next time. It can be serialised.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.handle.shared.verdict()
    }

    /// All tools, page by page.
    pub fn tools(&self) -> List<ListTools> {
        List::new(Arc::clone(&self.handle), ListTools::new())
    }

    /// All resources, page by page.
    pub fn resources(&self) -> List<ListResources> {
        List::new(Arc::clone(&self.handle), ListResources::new())
    }

    /// All resource templates, page by page.
    pub fn resource_templates(&self) -> List<ListResourceTemplates> {
        List::new(Arc::clone(&self.handle), ListResourceTemplates::new())
    }

    /// All prompts, page by page.
    pub fn prompts(&self) -> List<ListPrompts> {
        List::new(Arc::clone(&self.handle), ListPrompts::new())
    }

    /// Calls a tool with what `arguments` serialises to: an object, or `()` for none.
    ///
    /// A tool that failed is a result:
    /// [`CallToolResult::into_structured`](crate::model::CallToolResult::into_structured) and
    /// [`ok`](crate::model::CallToolResult::ok) tell the two apart.
    pub fn call_tool(&self, name: impl Into<Str>, arguments: impl Serialize) -> Call<'static, CallTool> {
        let request = match Json::from_serialize(&arguments) {
            Ok(arguments) if arguments.is_null() => Ok(CallTool::new(name)),
            Ok(arguments) if arguments.is_object() => Ok(CallTool::new(name).arguments(arguments)),
            Ok(_) => Err(CallError::Invalid("the arguments: expected an object".into())),
            Err(why) => Err(CallError::Invalid(alloc::format!("the arguments: {why}"))),
        };
        Call::new(Arc::clone(&self.handle), request)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<Str>) -> Call<'static, ReadResource> {
        self.call(ReadResource::new(uri))
    }

    /// Gets a prompt, with these arguments by name.
    pub fn get_prompt<N: Into<Str>, V: Into<Str>>(
        &self,
        name: impl Into<Str>,
        arguments: impl IntoIterator<Item = (N, V)>,
    ) -> Call<'static, GetPrompt> {
        let request = GetPrompt::new(name);
        self.call(arguments.into_iter().fold(request, |request, (name, value)| request.argument(name, value)))
    }

    /// Completes what was typed for an argument of a prompt or a variable of a template. What is known of
    /// other arguments: [`Complete::known`], and [`call`](Self::call).
    pub fn complete(
        &self,
        reference: CompletionReference,
        argument: impl Into<Str>,
        typed: impl Into<Str>,
    ) -> Call<'static, Complete> {
        self.call(Complete::new(reference, argument, typed))
    }

    /// Any request, with options:
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use mcp_proto::client::{CallError, request::CallTool};
    /// # use mcp_proto::service::client::Client;
    /// # async fn example(client: Client) -> Result<(), CallError> {
    /// let result = client
    ///     .call(CallTool::new("build"))
    ///     .timeout(Duration::from_secs(5))
    ///     .reset_on_progress()
    ///     .on_progress(|progress| println!("{} of {:?}", progress.progress, progress.total))
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<R: Request>(&self, request: R) -> Call<'static, R> {
        Call::new(Arc::clone(&self.handle), Ok(request))
    }

    /// Goes on with a call that was [parked](super::Paused::park), here or in another process, on this or
    /// another connection to the same server. `R` is what was called.
    pub fn resume<R: Request>(&self, parked: Parked, responses: InputResponses) -> Call<'static, R> {
        Call::resumed(Arc::clone(&self.handle), parked, responses)
    }

    /// Asks whether the server is there: `ping`, or `server/discover` where there is no ping.
    ///
    /// # Errors
    ///
    /// It is not.
    pub async fn ping(&self) -> Result<(), CallError> {
        if self.server().version.is_modern() {
            self.call(Discover::new()).no_cache().await.map(|_| ())
        } else {
            self.call(Ping::new()).await.map(|_| ())
        }
    }

    /// From which level on the server is to log. In 2026-07-28 that is said with each call from now on.
    ///
    /// # Errors
    ///
    /// The server does not log, or refuses.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<(), CallError> {
        if self.server().version.is_modern() {
            return self.handle.shared.submit(Command::Level(level));
        }
        self.call(SetLevel::new(level)).await.map(|_| ())
    }

    /// Opens a subscription. On a legacy server, which has none, it is made up for: changes of lists are
    /// told there unasked, and resources are subscribed to one by one.
    ///
    /// ```
    /// # use mcp_proto::client::{CallError, Change};
    /// # use mcp_proto::model::SubscriptionFilter;
    /// # use mcp_proto::service::client::{Client, Heard};
    /// # async fn example(client: Client) -> Result<(), CallError> {
    /// let mut changes = client.listen(SubscriptionFilter::new().resource("file:///notes.md")).await?;
    /// while let Some(heard) = changes.next().await {
    ///     match heard? {
    ///         Heard::Changed(Change::Resource(uri)) => println!("{uri} changed"),
    ///         _ => println!("anything may have changed"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn listen(&self, filter: SubscriptionFilter) -> Listen {
        Listen::new(Arc::clone(&self.handle), filter)
    }

    /// From now on these are the files and folders to work on. A legacy server is told that they changed,
    /// unless the client was declared without [roots](ClientBuilder::roots).
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) {
        let _ = self.handle.shared.submit(Command::Roots(roots.into_iter().collect()));
    }

    /// Sends a notification that the specification does not have. Its params must be an object.
    ///
    /// # Errors
    ///
    /// They are not, or the connection has ended.
    pub fn notify(&self, method: impl Into<Str>, params: impl Serialize) -> Result<(), CallError> {
        let params = Json::from_serialize(&params)
            .ok()
            .filter(|params| params.is_object() || params.is_null())
            .ok_or_else(|| CallError::Invalid("the params: expected an object".into()))?;
        let params = params.is_object().then(|| String::from(params.get()).into_boxed_str());
        let command = Command::Notify { method: method.into(), params };
        self.handle.shared.submit(command)
    }

    /// Tells from now on when the server is started again; first of a restart that has begun already. It does
    /// not keep the connection open.
    #[must_use]
    pub fn restarts(&self) -> Restarts {
        Restarts::new(&self.handle.shared)
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.handle.shared.is_over()
    }

    /// Ends the connection: open calls fail, and a child process is told to end. Completes when it is over.
    pub async fn close(&self) {
        let _ = self.handle.shared.submit(Command::Close);
        self.closed().await;
    }

    /// Completes when the connection is over, for whatever reason.
    pub async fn closed(&self) {
        let mut place = Place::new(&self.handle.shared);
        poll_fn(|cx| place.poll_gone(cx)).await;
    }
}
