//! A server within the process.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use mcp_proto::service::client::{Client, ClientBuilder};
use mcp_proto::service::{BuildError, Server, Service};

use super::{ConnectError, Target};
use crate::{ByteStream, Runtime, Settings, drive, pair};

/// Bytes on their way in each direction.
const CAPACITY: usize = 64 << 10;

/// A server within this process, reached as through a pipe: every byte is written and read.
#[derive(Clone)]
pub struct Memory<R> {
    runtime: R,
    service: Result<Service, Arc<BuildError>>,
}

impl<R: Runtime> Memory<R> {
    /// `server`, whose handlers run on `runtime`.
    pub fn new(runtime: R, server: Server) -> Self {
        Self { runtime, service: server.build().map_err(Arc::new) }
    }

    /// A service, which other streams may have, too.
    pub fn service(runtime: R, service: Service) -> Self {
        Self { runtime, service: Ok(service) }
    }
}

impl<R: Runtime> Target for Memory<R> {
    async fn connect(self, client: ClientBuilder) -> Result<Client, ConnectError> {
        let Self { runtime, service } = self;
        let service = service.map_err(ConnectError::Build)?;
        let (theirs, ours) = pair(CAPACITY);
        let within = runtime.clone();
        runtime.spawn(async move {
            // In memory nothing breaks.
            let _ = drive(&service, theirs, &within, Settings::default(), pending()).await;
        });
        ByteStream::new(runtime, ours).connect(client).await
    }
}

impl<R> fmt::Debug for Memory<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}
