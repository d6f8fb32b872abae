//! Tokio's byte streams as those of the loop, and the reverse.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_io::Io;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A tokio stream that is read and written in one.
#[derive(Debug)]
pub struct Duplex<S>(S);

impl<S> Duplex<S> {
    /// Wraps it.
    pub const fn new(stream: S) -> Self {
        Self(stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for Duplex<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        read(&mut self.0, cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Two tokio streams, one for each direction.
#[derive(Debug)]
pub struct Split<I, O> {
    input: I,
    output: O,
}

impl<I, O> Split<I, O> {
    pub(crate) fn new(input: I, output: O) -> Self {
        Self { input, output }
    }
}

impl<I: AsyncRead + Send + Unpin, O: AsyncWrite + Send + Unpin> Io for Split<I, O> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        read(&mut self.input, cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.output).poll_write(cx, buf)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}

fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    buf: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buf = ReadBuf::new(buf);
    ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
    Poll::Ready(Ok(buf.filled().len()))
}

/// A stream of the loop as one of tokio.
#[derive(Debug)]
pub struct Stream<I>(I);

impl<I: Io> Stream<I> {
    /// Wraps it.
    pub fn new(io: I) -> Self {
        Self(io)
    }
}

impl<I: Io + Unpin> AsyncRead for Stream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.initialize_unfilled();
        let got = if room.is_empty() { 0 } else { ready!(self.0.poll_read(cx, room))? };
        buf.advance(got);
        Poll::Ready(Ok(()))
    }
}

impl<I: Io + Unpin> AsyncWrite for Stream<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_flush(cx))?;
        self.0.poll_close(cx)
    }
}
