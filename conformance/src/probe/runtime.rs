//! The two runtimes as a probe needs them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use mcp_proto::service::client::{Client, ClientBuilder};

/// What a probe runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // those that have an adapter
pub enum Runtime {
    /// `mcp-tokio`
    Tokio,
    /// `mcp-smol`
    Smol,
}

/// What a probe is connected to.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_enums)] // the transports
pub enum Target {
    /// A server at a URL; `/sse` of an older one, too.
    Url(String),
    /// A server to be started: the program and its arguments.
    Command(Vec<String>),
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Runtime {
    /// Runs a future to its end.
    ///
    /// # Errors
    ///
    /// The runtime cannot be started.
    pub(super) fn run<T>(self, future: impl Future<Output = T>) -> Result<T, String> {
        match self {
            Self::Tokio => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| format!("cannot start tokio: {error}"))?;
                Ok(runtime.block_on(future))
            }
            Self::Smol => Ok(smol::block_on(future)),
        }
    }

    pub(super) fn sleep(self, time: Duration) -> BoxFuture<()> {
        match self {
            Self::Tokio => Box::pin(tokio::time::sleep(time)),
            Self::Smol => Box::pin(async move {
                smol::Timer::after(time).await;
            }),
        }
    }

    pub(super) fn spawn(self, future: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio => drop(tokio::spawn(future)),
            Self::Smol => smol::spawn(future).detach(),
        }
    }

    pub(super) async fn connect(
        self,
        client: ClientBuilder,
        target: &Target,
        token: Option<&str>,
    ) -> Result<Client, String> {
        if let Target::Url(url) = target
            && !cfg!(feature = "https")
            && url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
        {
            return Err(format!(
                "{url}: this program was built without https: build it with `--features https`"
            ));
        }
        // The same words for both; the types differ.
        macro_rules! connect {
            ($adapter:ident) => {{
                use $adapter::{Connect as _, Stderr};
                match target {
                    Target::Url(url) => {
                        let remote = $adapter::url(url);
                        let remote = match token {
                            Some(token) => remote.bearer(token),
                            None => remote,
                        };
                        client.connect(remote).await
                    }
                    Target::Command(words) => {
                        let (program, arguments) =
                            words.split_first().ok_or("expected the command of a server")?;
                        let child = $adapter::child(program).args(arguments).env_all();
                        client.connect(child.stderr(Stderr::Inherit)).await
                    }
                }
            }};
        }
        let connected = match self {
            Self::Tokio => connect!(mcp_tokio),
            Self::Smol => connect!(mcp_smol),
        };
        connected.map_err(|error| error.to_string())
    }
}
