//! A server at a URL.

use std::fmt;

use mcp_proto::client::http::{Settings, Token, Url};
use mcp_proto::service::client::{Client, ClientBuilder};

use super::link::drive;
use super::{Agent, Network, Options};
use crate::client::{ConnectError, Target};

/// A server at a URL, over Streamable HTTP, or HTTP+SSE if it knows nothing newer.
/// `[spec: basic/transports/streamable-http]`
///
/// Messages and credentials go to the origin of the URL and nowhere else; redirects are followed within it.
#[derive(Clone)]
pub struct Remote<R: Network> {
    runtime: R,
    settings: Result<Settings, String>,
    options: Options,
    agent: Option<Agent<R>>,
}

impl<R: Network> Remote<R> {
    /// The endpoint at `url`, from `runtime`. What is wrong with it is told by `connect`.
    pub fn new(runtime: R, url: &str) -> Self {
        let settings = Url::parse(url).map(Settings::new).map_err(|error| error.to_string());
        Self { runtime, settings, options: Options::default(), agent: None }
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
        let (connecting, link) = client.http_link(settings);
        let within = self.runtime.clone();
        self.runtime.spawn(async move { drive(link, agent, within).await });
        connecting.await.map_err(ConnectError::Failed)
    }
}

impl<R: Network> fmt::Debug for Remote<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("settings", &self.settings)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
