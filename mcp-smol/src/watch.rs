//! Pipes and sockets that smol watches.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::task::{Context, Poll, ready};

use mcp_io::Io;
use smol::Async;

/// What is watched, and whether to wait before it is tried again.
#[derive(Debug)]
struct Watched<T> {
    end: Async<T>,
    /// The last call left nothing to move: the next one would only say so.
    dry: Dry,
}

#[derive(Debug, Default)]
struct Dry {
    read: bool,
    write: bool,
}

impl<T> Watched<T> {
    fn new(end: Async<T>) -> Self {
        Self { end, dry: Dry::default() }
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        mut read: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.dry.read {
                ready!(self.end.poll_readable(cx))?;
                self.dry.read = false;
            }
            match read(self.end.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.dry.read = true,
                got => {
                    self.dry.read = got.as_ref().is_ok_and(|&got| 0 < got && got < room);
                    return Poll::Ready(got);
                }
            }
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        len: usize,
        mut write: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.dry.write {
                ready!(self.end.poll_writable(cx))?;
                self.dry.write = false;
            }
            match write(self.end.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.dry.write = true,
                written => {
                    self.dry.write = written.as_ref().is_ok_and(|&written| written < len);
                    return Poll::Ready(written);
                }
            }
        }
    }
}

/// A TCP connection that smol watches.
#[derive(Debug)]
pub struct Socket(Watched<TcpStream>);

impl Socket {
    pub(crate) fn new(stream: Async<TcpStream>) -> Self {
        // All that is due goes out in one write, so nothing is gained by waiting for more.
        let _ = stream.get_ref().set_nodelay(true);
        Self(Watched::new(stream))
    }
}

impl Io for Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buf.len(), |mut stream| again(|| stream.read(buf)))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf.len(), |mut stream| again(|| stream.write(buf)))
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        self.0.poll_write(cx, len, |mut stream| again(|| stream.write_vectored(pieces)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.end.get_ref().shutdown(Shutdown::Write))
    }
}

/// A signal is no reason to give up.
fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A pipe or a socket that smol watches.
#[cfg(unix)]
#[derive(Debug)]
pub struct Fd(Watched<mcp_io::End>);

#[cfg(unix)]
impl Fd {
    pub(crate) fn new(end: mcp_io::End) -> io::Result<Self> {
        Async::new_nonblocking(end).map(|end| Self(Watched::new(end)))
    }
}

#[cfg(unix)]
impl Io for Fd {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buf.len(), |end| end.read(buf))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf.len(), |end| end.write(buf))
    }
}
