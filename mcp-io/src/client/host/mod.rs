//! Many servers, one client each.

mod config;
mod events;
mod keep;
mod members;
mod names;

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_proto::client::request::CallTool;
use mcp_proto::client::{CallError, ServerFacts};
use mcp_proto::model::Tool;
use mcp_proto::service::client::{Call, Client, ClientBuilder};
use serde::Serialize;

use super::Target;
use super::connect::Report;
use crate::Runtime;
pub use events::{Happened, HostEvent, HostEvents, ServerState};
use keep::Keeper;
use members::{Member, Members, Number, Shared};

/// Many servers, one client each, and their tools under names that cannot collide.
///
/// Each server is on its own: it is connected beside the others, and again when it is gone, after a second and then
/// ever more seldom, at most once in a minute. None waits for another, but in [`ready`](Self::ready). Servers may be
/// added and taken out at any time. Cheap to clone; with the last clone all servers are closed.
///
/// A tool is offered as `server__tool`. In the part for the server everything but letters, digits and `-` becomes `-`,
/// and it is cut after 24 characters; a server that would get the name of another gets a number behind it. So the
/// first `__` ends that part. A tool keeps its name if that has letters, digits, `_` and `-` only and the whole is at
/// most 64 characters long; otherwise what does not fit is replaced and cut, and a digest of its name is behind it.
/// That is within the rules for names of tools and within those of common models.
#[derive(Clone)]
pub struct Host<R: Runtime> {
    runtime: R,
    client: ClientBuilder,
    handle: Arc<Handle>,
}

/// What keeps the servers.
#[derive(Default)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        let members = self.0.with(Members::clear);
        drop(members);
        self.0.with(Members::end);
    }
}

/// A server of a [`Host`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Served {
    /// Its name, as it was added.
    pub name: Arc<str>,
    /// What the names begin with that its tools are offered under, without the `__`.
    pub alias: String,
    /// How it stands with it.
    pub state: ServerState,
    /// What is known of it, while it is ready.
    pub server: Option<Arc<ServerFacts>>,
}

/// A tool of one of the servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Offered {
    /// The name that it is offered under.
    pub name: String,
    /// The server that it is of.
    pub server: Arc<str>,
    /// The tool as its server has it, with its own name.
    pub tool: Tool,
}

/// The tools of all servers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Offer {
    /// Them, server by server.
    pub tools: Vec<Offered>,
    /// Servers that did not say what they have, and why.
    pub failures: Vec<(Arc<str>, Refused)>,
}

/// Why a server, or a tool of it, cannot be called.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Refused {
    /// No server has this name, or a tool that is offered under it.
    Unknown(String),
    /// The server is not there now.
    #[non_exhaustive]
    Away {
        /// Its name.
        server: Arc<str>,
        /// How it stands with it.
        state: ServerState,
    },
    /// It was asked, and fails.
    Failed(CallError),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "expected a name as it is offered, found {name:?}"),
            Self::Away { server, state } => write!(f, "the server {server:?} {state}"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Away { state: ServerState::Away { why: Some(why), .. }, .. } => Some(&**why),
            Self::Unknown(_) | Self::Away { .. } => None,
        }
    }
}

impl<R: Runtime> Host<R> {
    /// Without servers. Each gets a client like `client`: what servers may ask is answered by its responders, which
    /// are told who asks.
    pub fn new(runtime: R, client: ClientBuilder) -> Self {
        Self { runtime, client, handle: Arc::default() }
    }

    /// Adds a server, which is connected from now on. One that is there under this name is replaced.
    ///
    /// What cannot be connected is told by its [state](Self::servers), and by [events](Self::events). On tokio this is
    /// to be called within the runtime.
    pub fn add(&self, name: &str, target: impl Target + Clone + 'static) {
        self.add_with(name, self.client.clone(), target);
    }

    /// Adds a server that gets a client of its own kind.
    pub fn add_with(&self, name: &str, client: ClientBuilder, target: impl Target + Clone + 'static) {
        let (keeper, end) = self.keeper(name);
        let runtime = self.runtime.clone();
        self.runtime.spawn(async move {
            keeper.keep(&runtime, client, target).await;
            end.say(());
        });
    }

    /// Adds a server that was connected elsewhere. It is there until its connection has ended, or it is taken out:
    /// then it is closed if nobody else has its client. Of what it says the host hears changes only.
    pub fn add_client(&self, name: &str, client: Client) {
        let (keeper, end) = self.keeper(name);
        self.runtime.spawn(async move {
            keeper.accompany(client).await;
            end.say(());
        });
    }

    fn keeper(&self, name: &str) -> (Keeper, Report<()>) {
        let shared = Arc::clone(&self.handle.0);
        let end = Report::new();
        let (number, control, old) = shared.with(|members| members.add(name, end.clone()));
        drop(old);
        (Keeper { shared, number, control }, end)
    }

    /// Takes a server out and closes it. Completes when nothing is left of it; whether it was there.
    ///
    /// It is out when this is first polled. Dropping the future changes nothing more.
    pub async fn remove(&self, name: &str) -> bool {
        let Some(member) = self.handle.0.with(|members| members.remove(name)) else { return false };
        let end = member.end;
        // What else it holds is let go here, and its task waits for that.
        drop(member.client);
        end.hear().await;
        true
    }

    /// Takes all servers out and closes them, at once. Completes when nothing is left of them.
    pub async fn close(&self) {
        let members = self.handle.0.with(Members::clear);
        let ends: Vec<_> = members.into_iter().map(|member| member.end).collect();
        for end in ends {
            end.hear().await;
        }
    }

    /// Connects a server that is not there now, without waiting any longer. Whether there is one of this name.
    pub fn hurry(&self, name: &str) -> bool {
        let control =
            self.handle.0.with(|members| members.find(name).map(|member| Arc::clone(&member.control)));
        control.is_some_and(|control| {
            control.hurry();
            true
        })
    }

    /// The client of a server, if that is ready.
    #[must_use]
    pub fn client(&self, name: &str) -> Option<Client> {
        self.handle.0.with(|members| members.find(name)?.client.clone())
    }

    /// The servers, in the order in which they were added, and how it stands with each.
    #[must_use]
    pub fn servers(&self) -> Vec<Served> {
        self.handle.0.with(|members| {
            let served = |member: &Member| Served {
                name: Arc::clone(&member.name),
                alias: member.alias.clone(),
                state: member.state.clone(),
                server: member.client.as_ref().map(Client::server),
            };
            members.all.iter().map(served).collect()
        })
    }

    /// Completes when each of the servers was ready once, or could not be connected.
    pub async fn ready(&self) {
        poll_fn(|cx| self.handle.0.poll_settled(cx)).await;
    }

    /// What happens from now on: how it stands with servers, what changes, what they log.
    ///
    /// Progress is told where a call is made: [`Call::on_progress`].
    #[must_use]
    pub fn events(&self) -> HostEvents {
        HostEvents::new(self.handle.0.with(Members::listen))
    }

    /// The tools of the servers that are ready, which are asked at once. One that fails, or does not answer within the
    /// time of its calls, does not harm the others.
    ///
    /// A server that tells when its tools change is asked again only then.
    pub async fn tools(&self) -> Offer {
        let shared = &*self.handle.0;
        let mut asked: Vec<_> = shared.with(|members| members.all.iter().map(Asked::of).collect());
        poll_fn(|cx| {
            let pending =
                asked.iter_mut().filter_map(|asked| asked.poll(shared, cx).is_pending().then_some(()));
            if pending.count() == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let mut offer = Offer::default();
        for Asked { server, found } in asked {
            match found {
                Found::Is(Ok(tools)) => offer.tools.extend(tools.iter().cloned()),
                Found::Is(Err(refused)) => offer.failures.push((server, refused)),
                Found::Asking { .. } => {}
            }
        }
        offer
    }

    /// Calls a tool by the name that it is offered under, on the server that it is of.
    ///
    /// # Errors
    /// [`Refused`] if no server has a name that this begins with, or if it is not there.
    pub fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<Call<'static, CallTool>, Refused> {
        let unknown = || Refused::Unknown(name.into());
        let (alias, tool) = name.split_once("__").ok_or_else(unknown)?;
        let (client, tool) = self.handle.0.with(|members| {
            let member = members.of_alias(alias).ok_or_else(unknown)?;
            let away = || Refused::Away { server: Arc::clone(&member.name), state: member.state.clone() };
            let client = member.client.clone().ok_or_else(away)?;
            Ok((client, member.renamed.get(name).cloned().unwrap_or_else(|| tool.to_owned())))
        })?;
        Ok(client.call_tool(tool, arguments))
    }
}

/// What a server is asked for its tools.
struct Asked {
    server: Arc<str>,
    found: Found,
}

enum Found {
    Is(Result<Arc<[Offered]>, Refused>),
    Asking { number: Number, epoch: u64, list: Listing },
}

type Listing = std::pin::Pin<Box<dyn Future<Output = Result<Vec<Tool>, CallError>> + Send>>;

impl Asked {
    fn of(member: &Member) -> Self {
        let server = Arc::clone(&member.name);
        let found = match (&member.tools, &member.client) {
            (Some(tools), _) => Found::Is(Ok(Arc::clone(tools))),
            (None, Some(client)) => {
                let list = client.tools();
                let list = Box::pin(async move {
                    match list.await {
                        Ok(listed) => Ok(listed.items),
                        // It has none.
                        Err(CallError::NotOffered(_)) => Ok(Vec::new()),
                        Err(error) => Err(error),
                    }
                });
                Found::Asking { number: member.number, epoch: member.epoch, list }
            }
            (None, None) => {
                let (name, state) = (Arc::clone(&server), member.state.clone());
                Found::Is(Err(Refused::Away { server: name, state }))
            }
        };
        Self { server, found }
    }

    fn poll(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<()> {
        let Found::Asking { number, epoch, list } = &mut self.found else { return Poll::Ready(()) };
        let listed = ready!(list.as_mut().poll(cx));
        self.found = Found::Is(match listed {
            Ok(tools) => shared
                .with(|members| members.listed(*number, *epoch, tools))
                // It was taken out meanwhile.
                .ok_or_else(|| Refused::Unknown(self.server.to_string())),
            Err(error) => Err(Refused::Failed(error)),
        });
        Poll::Ready(())
    }
}

impl<R: Runtime> fmt::Debug for Host<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("servers", &self.servers()).finish_non_exhaustive()
    }
}
