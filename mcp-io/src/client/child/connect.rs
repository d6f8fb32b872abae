//! A client of a child.

use mcp_proto::client::CallError;
use mcp_proto::service::client::{Client, ClientBuilder, Link};

use super::{Child, Exit, Process};
use crate::Runtime;
use crate::client::connect::Report;
use crate::client::drive::{Ended, drive};
use crate::client::{ConnectError, Target};

impl<R: Runtime> Target for Child<R> {
    async fn connect(self, client: ClientBuilder) -> Result<Client, ConnectError> {
        let process = self.spawn().map_err(ConnectError::Start)?;
        let (connecting, link) = client.link();
        let report = Report::new();
        let (runtime, end) = (self.runtime.clone(), report.clone());
        runtime.spawn(async move { end.say(run(&self, process, link).await) });
        match connecting.await {
            Ok(client) => Ok(client),
            // Not before nothing is left of it.
            Err(error) => match (error, report.hear().await) {
                (CallError::Closed, Some((Ended::There, exit))) => Err(ConnectError::Ended(exit)),
                (error, _) => Err(ConnectError::Failed(error)),
            },
        }
    }
}

/// Until the connection is over, and the child with it. The link goes last: whoever closes a client waits for that.
async fn run<R: Runtime>(child: &Child<R>, mut process: Process<R>, mut link: Link) -> (Ended, Exit) {
    let runtime = &child.runtime;
    link.start(runtime.now());
    loop {
        let ended = drive(&mut link, &mut process, runtime).await;
        let exit = process.shutdown().await;
        if let Some(on_exit) = &child.on_exit {
            on_exit.0(&exit);
        }
        // A legacy server may take the first question for a reason to go.
        if ended == Ended::There
            && link.wants_restart()
            && let Ok(again) = child.spawn()
        {
            process = again;
            link.restart(runtime.now());
            continue;
        }
        return (ended, exit);
    }
}
