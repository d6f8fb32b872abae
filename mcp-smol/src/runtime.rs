//! Smol as the loop sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_io::{Runtime, clock};
use mcp_proto::time::Instant;
use smol::{Executor, Timer};

#[cfg(unix)]
use crate::Fd;

/// Smol: its global executor, or one of yours.
#[derive(Debug, Clone, Default)]
pub struct Smol {
    handlers: Option<Arc<Executor<'static>>>,
}

impl Smol {
    /// Handlers run on the global executor, that of [`smol::spawn`], whatever polls `serve`.
    #[must_use]
    pub const fn current() -> Self {
        Self { handlers: None }
    }

    /// Handlers run on `executor`, which must be run by someone.
    #[must_use]
    pub const fn on(executor: Arc<Executor<'static>>) -> Self {
        Self { handlers: Some(executor) }
    }
}

impl Runtime for Smol {
    type Timer = Alarm;
    #[cfg(unix)]
    type Fd = Fd;

    fn now(&self) -> Instant {
        clock::from_std(std::time::Instant::now())
    }

    fn timer(&self, deadline: Instant) -> Alarm {
        Alarm(Timer::at(clock::to_std(deadline)))
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        match &self.handlers {
            Some(executor) => executor.spawn(future).detach(),
            None => smol::spawn(future).detach(),
        }
    }

    #[cfg(unix)]
    fn watch(&self, end: mcp_io::End) -> std::io::Result<Fd> {
        Fd::new(end)
    }
}

#[cfg(feature = "http")]
impl mcp_io::client::http::Network for Smol {
    type Tcp = crate::Socket;

    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        smol::net::resolve((host, port)).await
    }

    async fn connect(&self, address: std::net::SocketAddr) -> std::io::Result<Self::Tcp> {
        smol::Async::<std::net::TcpStream>::connect(address).await.map(crate::Socket::new)
    }
}

/// A timer of smol.
#[derive(Debug)]
pub struct Alarm(Timer);

impl mcp_io::Timer for Alarm {
    fn reset(&mut self, deadline: Instant) {
        self.0.set_at(clock::to_std(deadline));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}
