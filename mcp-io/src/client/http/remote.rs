//! A server at a URL.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_proto::client::http::{Settings, Token, Url};
use mcp_proto::client::{CallError, Verdict};
use mcp_proto::service::client::{Client, ClientBuilder};

use super::link::drive;
use super::{Agent, Network, Options};
use crate::client::{ConnectError, Target};

/// A server at a URL, over Streamable HTTP, or HTTP+SSE if it knows nothing newer.
/// `[spec: basic/transports/streamable-http]`
///
/// Messages and credentials go to the origin of the URL and nowhere else; redirects are followed within it.
///
/// What a connection finds out about the era of the server is remembered, for all clones of it: the next connection
/// asks no more. That is kept for the URL and not for its origin, where gateways serve many that have nothing in
/// common. To keep it longer than the process, store the [`verdict`](Self::verdict) and [`assume`](Self::assume) it.
/// A verdict that does not hold any more repairs itself: whatever the server refuses because of it is made again once
/// it was asked. `[spec: basic/versioning#dual-era]`
#[derive(Clone)]
pub struct Remote<R: Network> {
    runtime: R,
    settings: Result<Settings, String>,
    options: Options,
    agent: Option<Agent<R>>,
    known: Known,
}

/// What is known of the server at the URL, shared by all who connect to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Known(Arc<Mutex<Option<Verdict>>>);

impl Known {
    pub(super) fn verdict(&self) -> Option<Verdict> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, verdict: Option<Verdict>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = verdict;
    }
}

impl<R: Network> Remote<R> {
    /// The endpoint at `url`, from `runtime`. What is wrong with it is told by `connect`.
    pub fn new(runtime: R, url: &str) -> Self {
        let settings = Url::parse(url).map(Settings::new).map_err(|error| error.to_string());
        Self { runtime, settings, options: Options::default(), agent: None, known: Known::default() }
    }

    /// Sends this access token. To get one when the server asks for it, see
    /// [`on_unauthorized`](ClientBuilder::on_unauthorized).
    #[must_use]
    pub fn bearer(self, token: impl Into<String>) -> Self {
        let token = Token::bearer(&token.into()).map_err(|error| error.to_string());
        self.with(|settings| Ok(settings.token(token?)))
    }

    /// Sends one more header with each request: an API key, for example.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.with(|settings| settings.header(name, value).map_err(|error| error.to_string()))
    }

    /// Whether a legacy session has a stream for what the server sends unasked. On.
    #[must_use]
    pub fn listen(self, on: bool) -> Self {
        self.with(|settings| Ok(settings.listen(on)))
    }

    /// How requests are sent: versions of HTTP, limits, certificates.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sends with this agent, whose connections others may use, too. [`options`](Self::options) mean nothing then.
    #[must_use]
    pub fn agent(mut self, agent: Agent<R>) -> Self {
        self.agent = Some(agent);
        self
    }

    /// What the connections to the server have found out about it so far. It can be serialised.
    ///
    /// A connection that knows it does not ask a modern server anything before the first call. So the client does not know
    /// the name and the capabilities of the server, and refuses nothing for want of them, before it has called
    /// `server/discover`.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.known.verdict()
    }

    /// Takes what was found out earlier, by another process for example. All clones know it then. What a client is
    /// [told itself](ClientBuilder::assume) comes first.
    #[must_use]
    pub fn assume(self, verdict: impl Into<Option<Verdict>>) -> Self {
        self.known.set(verdict.into());
        self
    }

    /// Where it runs, if not where the future of `connect` is polled.
    #[must_use]
    pub fn runtime(mut self, runtime: R) -> Self {
        self.runtime = runtime;
        self
    }

    fn with(mut self, set: impl FnOnce(Settings) -> Result<Settings, String>) -> Self {
        self.settings = self.settings.and_then(set);
        self
    }
}

impl<R: Network> Target for Remote<R> {
    async fn connect(self, client: ClientBuilder) -> Result<Client, ConnectError> {
        let settings = self.settings.map_err(ConnectError::Settings)?;
        let agent = match self.agent {
            Some(agent) => agent,
            None => Agent::new(self.runtime.clone(), self.options)
                .map_err(|failure| ConnectError::Settings(failure.to_string()))?,
        };
        if settings.url.is_secure() && !agent.has_tls() {
            return Err(ConnectError::Settings("https needs the feature tls-ring or tls-aws-lc".into()));
        }
        let assumed = client.assumed().or_else(|| self.known.verdict());
        let (connecting, link) = client.assume(assumed).http_link(settings);
        let (within, known, learns) = (self.runtime.clone(), self.known.clone(), link.learns());
        self.runtime.spawn(async move { drive(link, agent, within, known).await });
        match connecting.await {
            Ok(client) => {
                // The driver may still be at it.
                if learns && let Some(verdict) = client.verdict() {
                    self.known.set(Some(verdict));
                }
                Ok(client)
            }
            Err(error) => {
                // One that was not reached, or refuses whoever has no token, may still be what it was.
                if !matches!(error, CallError::Lost(_) | CallError::Unauthorized(_) | CallError::Closed) {
                    self.known.set(None);
                }
                Err(ConnectError::Failed(error))
            }
        }
    }
}

impl<R: Network> fmt::Debug for Remote<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("settings", &self.settings)
            .field("options", &self.options)
            .field("verdict", &self.known.verdict())
            .finish_non_exhaustive()
    }
}
