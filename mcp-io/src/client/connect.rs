//! `client.connect(target)`.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use mcp_proto::client::CallError;
use mcp_proto::service::BuildError;
use mcp_proto::service::client::{Client, ClientBuilder};

use super::Exit;
use super::drive::drive;
use crate::{ByteStream, Io, Runtime};

/// What a client can be connected to: a program to be started, a URL, a byte stream, a server in memory.
pub trait Target: Send + Sized {
    /// Connects, and finds out what the server speaks. What it needs runs on until the connection is over.
    fn connect(self, client: ClientBuilder) -> impl Future<Output = Result<Client, ConnectError>> + Send;
}

/// Connects a client that was declared.
pub trait Connect: Sized {
    /// Connects to `target`, and finds out what the server speaks.
    ///
    /// Dropping the future leaves nothing behind: a child is ended, a connection closed.
    ///
    /// # Errors
    /// [`ConnectError`].
    fn connect(self, target: impl Target) -> impl Future<Output = Result<Client, ConnectError>> + Send;
}

impl Connect for ClientBuilder {
    fn connect(self, target: impl Target) -> impl Future<Output = Result<Client, ConnectError>> + Send {
        target.connect(self)
    }
}

/// Why there is no connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program could not be started.
    Start(io::Error),
    /// The program ended before it had said what it speaks.
    Ended(Exit),
    /// The address or what was set for it cannot be used, and why.
    Settings(String),
    /// The server in memory is not well-formed.
    Build(Arc<BuildError>),
    /// The server was reached and cannot be used, or did not answer.
    Failed(CallError),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "{error}"),
            Self::Ended(exit) => write!(f, "the server {exit}"),
            Self::Settings(why) => f.write_str(why),
            Self::Build(_) => f.write_str("the server cannot be built"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            Self::Build(error) => Some(&**error),
            Self::Failed(error) => Some(error),
            Self::Ended(_) | Self::Settings(_) => None,
        }
    }
}

/// What the task of a connection has to say at its end, if anyone waits for that.
pub(super) struct Report<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Report<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((None, None))))
    }

    pub(super) fn say(&self, what: T) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = Some(what);
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// `None` if the task was dropped instead.
    pub(super) async fn hear(self) -> Option<T> {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(said) = state.0.take() {
                return Poll::Ready(Some(said));
            }
            if Arc::strong_count(&self.0) == 1 {
                return Poll::Ready(None);
            }
            state.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl<T> Clone for Report<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A server at the other end of any byte stream: a socket, a pipe, a session of TLS.
impl<R: Runtime, I: Io + 'static> Target for ByteStream<R, I> {
    async fn connect(self, client: ClientBuilder) -> Result<Client, ConnectError> {
        let (runtime, mut io) = self.into_parts();
        let (connecting, mut link) = client.link();
        let within = runtime.clone();
        runtime.spawn(async move {
            link.start(within.now());
            drive(&mut link, &mut io, &within).await;
        });
        connecting.await.map_err(ConnectError::Failed)
    }
}
