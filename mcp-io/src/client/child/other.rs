//! Pipes and the end of a child where neither can be watched: threads. What the child has started is not ended
//! with it, and there is no signal that it could meet: to ask it to end is to end it.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use super::bell::Bell;
use crate::Runtime;
use crate::stdio::thread::{Reader, Writer};

pub(super) fn prepare(_: &mut Command) {}

pub(super) struct Writing<R>(Writer, PhantomData<fn() -> R>);

impl<R: Runtime> Writing<R> {
    pub(super) fn new(_: &R, pipe: impl Write + Send + 'static) -> io::Result<Self> {
        Ok(Self(Writer::new(Box::new(pipe))?, PhantomData))
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf)
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }
}

pub(super) struct Reading<R>(Reader, PhantomData<fn() -> R>);

impl<R: Runtime> Reading<R> {
    pub(super) fn new(_: &R, pipe: impl Read + Send + 'static) -> io::Result<Self> {
        Ok(Self(Reader::new(Box::new(pipe))?, PhantomData))
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buf)
    }

    /// Only its thread knows.
    pub(super) fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub(super) struct Watch<R>(Bell, PhantomData<fn() -> R>);

impl<R: Runtime> Watch<R> {
    pub(super) fn new(_: &R, child: &Arc<Mutex<Child>>) -> io::Result<Self> {
        let child = Arc::downgrade(child);
        let is_over = move || match child.upgrade() {
            Some(child) => is_over(&mut child.lock().unwrap_or_else(PoisonError::into_inner)),
            None => true,
        };
        Ok(Self(Bell::new(is_over)?, PhantomData))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }
}

pub(super) fn is_over(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

pub(super) fn terminate(child: &mut Child) {
    let _ = child.kill();
}

pub(super) fn kill(child: &mut Child) {
    let _ = child.kill();
}

pub(super) fn describe(_: ExitStatus) -> Option<String> {
    None
}
