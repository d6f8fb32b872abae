//! A small client that behaves, or misbehaves in one named way.
//!
//! It is written against the wire alone and knows just enough of both eras for the suite to be judged by it.

mod client;
mod jobs;
mod wire;

use std::io;
use std::thread::{self, JoinHandle};

use crate::exchange::Transport;
use crate::hosting::{Client, Guest, Invitation};
use crate::subject::{Exit, Life};

/// The client as a subject. An empty fault is none.
#[derive(Debug)]
pub(crate) struct Mock {
    pub(crate) fault: &'static str,
    pub(crate) transport: Transport,
}

impl Client for Mock {
    fn name(&self) -> String {
        format!("mock {}", self.fault)
    }

    fn runtime(&self) -> &str {
        "mock"
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn start(&self, invitation: &Invitation) -> io::Result<Guest> {
        let (output, write) = io::pipe()?;
        let (fault, invitation) = (self.fault, invitation.clone());
        let thread = thread::spawn(move || client::run(fault, &invitation, write));
        Ok(Guest::new(Box::new(output), None, Box::new(Run { thread })))
    }
}

struct Run {
    thread: JoinHandle<()>,
}

impl Life for Run {
    fn exit(&mut self) -> Option<Exit> {
        let ended = self.thread.is_finished();
        ended.then(|| Exit { code: Some(0), text: "exit code 0".to_owned() })
    }

    /// The thread ends with its connections.
    fn kill(&mut self) {}
}
