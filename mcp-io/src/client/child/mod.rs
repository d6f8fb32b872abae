//! A server that is a child of this process.

mod bell;
mod body;
mod connect;
mod environment;
mod process;
#[cfg(not(unix))]
#[path = "other.rs"]
mod system;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;
mod tail;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::Runtime;
use body::Times;
use environment::{Environment, Inherited};
pub use process::{Exit, Process};

/// A program to be started, with the protocol on its standard streams. `[spec: basic/transports/stdio]`
///
/// The child gets a process group of its own (Unix), so that what it starts can be ended with it: `npx` and the
/// like are only wrappers. A signal that the terminal sends to this process does not reach it, therefore; the
/// end of its standard input does, in whatever way this process ends.
#[derive(Debug, Clone)]
pub struct Child<R> {
    runtime: R,
    program: OsString,
    arguments: Vec<OsString>,
    environment: Environment,
    folder: Option<PathBuf>,
    stderr: Stderr,
    times: Times,
    restart: bool,
    on_exit: Option<OnExit>,
}

#[derive(Clone)]
struct OnExit(Arc<dyn Fn(&Exit) + Send + Sync>);

impl std::fmt::Debug for OnExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnExit")
    }
}

/// Where the standard error of a child goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stderr {
    /// Where ours goes.
    Inherit,
    /// Nowhere.
    Null,
    /// It is read, and its last 8 KiB are kept to say why the child ended.
    #[default]
    Capture,
}

impl<R: Runtime> Child<R> {
    /// `program` on `runtime`. A name without a slash is looked for in the `PATH` that the child gets. (On Windows
    /// a script has to be named with its ending: `npx.cmd`.)
    pub fn new(runtime: R, program: impl AsRef<OsStr>) -> Self {
        Self {
            runtime,
            program: program.as_ref().into(),
            arguments: Vec::new(),
            environment: Environment::default(),
            folder: None,
            stderr: Stderr::default(),
            times: Times::default(),
            restart: true,
            on_exit: None,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().into()));
        self
    }

    /// Sets a variable.
    ///
    /// Of our environment the child gets what programs commonly need, as with other clients: `HOME`, `LOGNAME`,
    /// `PATH`, `SHELL`, `TERM`, `USER`, the locale, `TMPDIR` and `TZ`, or their counterparts on Windows. Secrets
    /// that we have in ours are not its business.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.change(name.as_ref(), Some(value.as_ref()));
        self
    }

    /// Sets variables.
    #[must_use]
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        for (name, value) in variables {
            self.environment.change(name.as_ref(), Some(value.as_ref()));
        }
        self
    }

    /// Leaves a variable out.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.change(name.as_ref(), None);
        self
    }

    /// Leaves everything out, also what was set before.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.environment.clear();
        self
    }

    /// Passes on the whole of our environment, secrets included. What was set or removed stays so.
    #[must_use]
    pub fn env_all(mut self) -> Self {
        self.environment.inherit(Inherited::All);
        self
    }

    /// The working folder. Ours by default.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Where standard error goes. [`Stderr::Capture`] by default.
    #[must_use]
    pub const fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// How long the child has to end by itself once its standard input is closed, and how long once it was told to
    /// (SIGTERM). Then it is killed. 2 seconds each by default. `[spec: basic/transports/stdio#shutdown]`
    #[must_use]
    pub const fn shutdown_times(mut self, closed: Duration, told: Duration) -> Self {
        self.times = Times { closed, told };
        self
    }

    /// Whether a child that ends by itself is started again while its client is in use. On by default.
    ///
    /// Calls that it had not answered have failed then, with
    /// [`CallError::Closed`](mcp_proto::client::CallError::Closed): nobody knows what it did of them. Those that are
    /// made meanwhile wait, and subscriptions are opened again. The first time it is started at once. A child that
    /// ends within 10 seconds, time and again, is left alone for a while each time, and for good after the sixth:
    /// then the client is closed. So it is at once if this is off.
    ///
    /// A child that ends before it has said what it speaks was never of use, and is an error. Only a legacy
    /// server that ends when it is asked what it speaks is started again, whatever is set here.
    #[must_use]
    pub const fn restart(mut self, restart: bool) -> Self {
        self.restart = restart;
        self
    }

    /// Hears how the child of a client has ended, each time one does: see [`restart`](Self::restart).
    #[must_use]
    pub fn on_exit(mut self, hear: impl Fn(&Exit) + Send + Sync + 'static) -> Self {
        self.on_exit = Some(OnExit(Arc::new(hear)));
        self
    }

    /// Where the pipes are watched, if not where the future of `connect` is polled.
    #[must_use]
    pub fn runtime(mut self, runtime: R) -> Self {
        self.runtime = runtime;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// The system's if the program or its working folder is not there, or if a pipe cannot be had. The text names
    /// the program.
    pub fn spawn(&self) -> io::Result<Process<R>> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(match self.stderr {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::Null => Stdio::null(),
            Stderr::Capture => Stdio::piped(),
        });
        self.environment.apply(&mut command, std::env::vars_os());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        system::prepare(&mut command);
        let child = command.spawn().map_err(|error| self.explain(&error))?;
        Process::new(&self.runtime, child, self.times)
    }

    /// The system says the same of a program and of a folder that is not there.
    fn explain(&self, error: &io::Error) -> io::Error {
        let program = self.program.display();
        let folder = self.folder.as_ref().filter(|folder| !folder.is_dir());
        let text = match folder {
            Some(folder) => format!("{program} cannot be started: {} is not a folder", folder.display()),
            None => format!("{program} cannot be started: {error}"),
        };
        io::Error::new(error.kind(), text)
    }
}
