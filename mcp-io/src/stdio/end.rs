//! One end of a pipe or a socket, used without blocking whatever the mode of its description.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// A standard stream of this process, or our end of one of a child's, that never blocks: a read or a write that
/// would have to wait fails with `WouldBlock`.
///
/// Whether a description blocks is a property of the description, which the parent, a sibling or a child
/// may share. So that property is left alone where it is not ours.
#[derive(Debug)]
pub struct End {
    fd: OwnedFd,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Pipe,
    Socket,
    /// A process: its end is the end of the stream.
    Process,
}

impl End {
    /// The same stream as `fd`, if it can be had without blocking.
    pub(super) fn of(fd: &OwnedFd, access: OFlags) -> io::Result<Option<Self>> {
        match FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) {
            FileType::Socket => Ok(Some(Self { fd: fd.try_clone()?, kind: Kind::Socket })),
            FileType::Fifo => Ok(reopen(fd, access).map(|fd| Self { fd, kind: Kind::Pipe })),
            _ => Ok(None),
        }
    }

    /// A pipe of which we alone have this end.
    pub(crate) fn own(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, kind: Kind::Pipe })
    }

    /// The same once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, kind: self.kind })
    }

    /// A child of this process: reading from it waits for its end.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn of_process(pid: rustix::process::Pid) -> io::Result<Self> {
        let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        Ok(Self { fd, kind: Kind::Process })
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if nothing is there.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let got = again(|| match self.kind {
            Kind::Socket => rustix::net::recv(&self.fd, &mut *buf, RecvFlags::DONTWAIT).map(|(got, _)| got),
            Kind::Pipe => rustix::io::read(&self.fd, &mut *buf),
            Kind::Process => {
                let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
                match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
                    0 => Err(Errno::AGAIN),
                    _ => Ok(0),
                }
            }
        })?;
        Ok(got)
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if there is no room.
    pub fn write(&self, buf: &[u8]) -> io::Result<usize> {
        let written = again(|| match self.kind {
            Kind::Socket => rustix::net::send(&self.fd, buf, SEND),
            Kind::Pipe | Kind::Process => rustix::io::write(&self.fd, buf),
        })?;
        Ok(written)
    }
}

#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for End {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A description of the same pipe that nobody shares. `None` where the system has no such way, or where
/// the pipe belongs to someone else.
fn reopen(fd: &OwnedFd, access: OFlags) -> Option<OwnedFd> {
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return None;
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn is_nonblocking(fd: impl AsFd) -> bool {
        rustix::fs::fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_does_not_block_here_and_blocks_elsewhere_as_before() {
        let (mut input, output) = std::io::pipe().unwrap();
        let output = OwnedFd::from(output);
        let end = End::of(&output, OFlags::WRONLY).unwrap().unwrap();
        let mut written = 0;
        let why = loop {
            match end.write(&[7; 4096]) {
                Ok(some) => written += some,
                Err(why) => break why.kind(),
            }
        };
        assert_eq!((why, is_nonblocking(&output)), (ErrorKind::WouldBlock, false));
        drop((end, output));
        assert_eq!(input.read_to_end(&mut Vec::new()).unwrap(), written);

        let (input, mut output) = std::io::pipe().unwrap();
        let input = OwnedFd::from(input);
        let end = End::of(&input, OFlags::RDONLY).unwrap().unwrap();
        let mut buf = [0; 8];
        assert_eq!(end.read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!is_nonblocking(&input));
        output.write_all(b"abc").unwrap();
        assert_eq!(end.read(&mut buf).unwrap(), 3);
        drop(output);
        assert_eq!(end.read(&mut buf).unwrap(), 0);
    }

    #[test]
    fn a_socket_does_not_block_here_and_blocks_elsewhere_as_before() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let near = OwnedFd::from(near);
        let end = End::of(&near, OFlags::RDWR).unwrap().unwrap();
        let mut buf = [0; 8];
        assert_eq!(end.read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!is_nonblocking(&near));
        far.write_all(b"abc").unwrap();
        assert_eq!(end.read(&mut buf).unwrap(), 3);
        assert_eq!(end.write(b"xyz").unwrap(), 3);
        drop(far);
        assert_eq!(end.write(b"xyz").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_file_is_left_to_a_thread() {
        let file = OwnedFd::from(std::fs::File::open("Cargo.toml").unwrap());
        assert!(End::of(&file, OFlags::RDONLY).unwrap().is_none());
    }
}
