//! Pipes, signals and the end of a child, on Unix.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::bell::Bell;
use super::body::lock;
use crate::{End, Io, Runtime};

/// The child and what it starts get a group of their own, so that all of them can be told to end.
pub(super) fn prepare(command: &mut Command) {
    command.process_group(0);
}

/// A pipe to the child.
pub(super) struct Writing<R: Runtime>(R::Fd);

impl<R: Runtime> Writing<R> {
    pub(super) fn new(runtime: &R, pipe: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self(runtime.watch(End::own(pipe.into())?)?))
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf)
    }

    pub(super) fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A pipe from the child.
pub(super) struct Reading<R: Runtime> {
    watched: R::Fd,
    /// The same, whatever the runtime knows of it by now.
    now: End,
}

impl<R: Runtime> Reading<R> {
    pub(super) fn new(runtime: &R, pipe: impl Into<OwnedFd>) -> io::Result<Self> {
        let now = End::own(pipe.into())?;
        Ok(Self { watched: runtime.watch(now.try_clone()?)?, now })
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.watched.poll_read(cx, buf)
    }

    /// What is in the pipe now.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.now.read(buf)
    }
}

/// Waits for the end of the child, without taking its status: as long as that is there, its number means
/// nobody else.
pub(super) enum Watch<R: Runtime> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Descriptor(R::Fd),
    /// Where a process is no descriptor, a thread asks for it.
    Thread(Bell, std::marker::PhantomData<fn() -> R>),
}

impl<R: Runtime> Watch<R> {
    pub(super) fn new(runtime: &R, child: &Arc<Mutex<Child>>) -> io::Result<Self> {
        let pid = Pid::from_child(&lock(child));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Ok(end) = End::of_process(pid) {
            return Ok(Self::Descriptor(runtime.watch(end)?));
        }
        let _ = runtime;
        Ok(Self::Thread(Bell::new(move || has_ended(pid))?, std::marker::PhantomData))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Descriptor(fd) => fd.poll_read(cx, &mut [0]).map(|_| ()),
            Self::Thread(bell, _) => bell.poll(cx),
        }
    }
}

/// Whether the child has ended. Its status stays where it is.
pub(super) fn is_over(child: &mut Child) -> bool {
    has_ended(Pid::from_child(child))
}

fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(pid), options) {
        Ok(status) => status.is_some(),
        Err(rustix::io::Errno::INTR) => false,
        // Somebody else has taken its status: there is no child any more.
        Err(_) => true,
    }
}

/// Asks the child and its group to end. To be called only before its status is taken.
pub(super) fn terminate(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::TERM);
}

/// Ends the child and its group. To be called only before its status is taken.
pub(super) fn kill(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// "was ended by signal 9".
pub(super) fn describe(status: ExitStatus) -> Option<String> {
    status.signal().map(|signal| format!("was ended by signal {signal}"))
}
