//! A client of a child.

use std::time::Duration;

use mcp_proto::client::CallError;
use mcp_proto::service::client::{Client, ClientBuilder, Link};

use super::{Child, Exit, Process};
use crate::Runtime;
use crate::client::connect::Report;
use crate::client::drive::{Ended, drive, meanwhile, outlast};
use crate::client::{ConnectError, Target};

/// A child that runs for so long has not failed to start.
const FULL_LIFE: Duration = Duration::from_secs(10);

/// A child that ends sooner, so many times in a row, is started again. It is left alone in between, at first for so
/// long, then for twice as long each time.
const MOST_DEATHS: u32 = 5;
const LEAST_PAUSE: Duration = Duration::from_millis(100);

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
    let mut deaths = Deaths::default();
    link.start(runtime.now());
    loop {
        let born = runtime.now();
        let ended = drive(&mut link, &mut process, runtime).await;
        deaths.one_after(runtime.now().saturating_duration_since(born));
        let exit = meanwhile(&mut link, runtime, process.shutdown()).await;
        if let Some(on_exit) = &child.on_exit {
            on_exit.0(&exit);
        }
        let next = match ended {
            Ended::There => again(child, &mut link, &mut deaths).await,
            Ended::Here => None,
        };
        let Some(next) = next else { return (ended, exit) };
        process = next;
        link.restart(runtime.now());
    }
}

/// Starts the child again, unless there is no need or no sense in it.
async fn again<R: Runtime>(child: &Child<R>, link: &mut Link, deaths: &mut Deaths) -> Option<Process<R>> {
    // A legacy server may take the first question for a reason to go.
    while link.wants_restart() || (child.restart && link.is_cut_off()) {
        let pause = deaths.pause()?;
        link.will_restart();
        if !outlast(link, &child.runtime, child.runtime.now() + pause).await {
            return None;
        }
        match child.spawn() {
            Ok(process) => return Some(process),
            // It may be being replaced by a newer one.
            Err(_) => deaths.one_after(Duration::ZERO),
        }
    }
    None
}

/// How often the child has ended soon after it was started, one time after the other.
#[derive(Default)]
struct Deaths(u32);

impl Deaths {
    fn one_after(&mut self, life: Duration) {
        self.0 = if life < FULL_LIFE { self.0 + 1 } else { 1 };
    }

    /// How long to wait before it is started again; `None` once it has ended too often. The first time may be
    /// chance.
    fn pause(&self) -> Option<Duration> {
        match self.0 {
            0 | 1 => Some(Duration::ZERO),
            more @ 2..=MOST_DEATHS => Some(LEAST_PAUSE * 2_u32.pow(more - 2)),
            _ => None,
        }
    }
}
