//! A byte stream as hyper wants it, plain or encrypted.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{self, ReadBufCursor};

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
use super::tls::TlsStream;
use crate::{Io, room};

pub(super) enum Wire<I> {
    Plain(I),
    #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
    Tls(Box<TlsStream<I>>),
}

impl<I: Io> Wire<I> {
    fn io(&mut self) -> &mut dyn Io {
        match self {
            Self::Plain(io) => io,
            #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
            Self::Tls(io) => &mut **io,
        }
    }
}

pub(super) struct Stream<I> {
    wire: Wire<I>,
}

impl<I> Stream<I> {
    pub(super) fn new(wire: Wire<I>) -> Self {
        Self { wire }
    }
}

// It is never pinned: `Io` is polled by reference.
impl<I> Unpin for Stream<I> {}

impl<I: Io> rt::Read for Stream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        room::with(|room| {
            let most = buf.remaining().min(room.len());
            if most > 0 {
                let got = ready!(self.wire.io().poll_read(cx, &mut room[..most]))?;
                buf.put_slice(&room[..got]);
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl<I: Io> rt::Write for Stream<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.wire.io().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.io().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.wire.io().poll_flush(cx))?;
        self.wire.io().poll_close(cx)
    }
}
