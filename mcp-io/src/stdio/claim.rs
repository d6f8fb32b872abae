//! Taking the standard streams from the rest of the process, and giving them back.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(unix)]
use super::End;

/// How one stream is used.
pub(super) enum Way<T: ?Sized> {
    /// Without blocking, when it is ready.
    #[cfg(unix)]
    Watch(End),
    /// By a thread.
    Block(Box<T>),
}

type Input = Way<dyn Read + Send>;
type Output = Way<dyn Write + Send>;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The right to the standard streams. Gives them back when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    #[cfg(unix)]
    real: [std::os::fd::OwnedFd; 2],
}

impl Claim {
    pub(super) fn take() -> io::Result<(Self, Input, Output)> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the standard streams are in use"));
        }
        let taken = Self::redirect();
        if taken.is_err() {
            TAKEN.store(false, Ordering::Release);
        }
        taken
    }

    #[cfg(not(unix))]
    fn redirect() -> io::Result<(Self, Input, Output)> {
        Ok((Self {}, Way::Block(Box::new(io::stdin())), Way::Block(Box::new(io::stdout()))))
    }

    #[cfg(unix)]
    fn redirect() -> io::Result<(Self, Input, Output)> {
        use std::fs::File;
        use std::os::fd::AsFd;

        use rustix::fs::{Mode, OFlags, open};
        use rustix::io::fcntl_dupfd_cloexec;
        use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

        // Not below 3: a stream that was closed leaves a number that means something to children.
        let real = [fcntl_dupfd_cloexec(stdin(), 3)?, fcntl_dupfd_cloexec(stdout(), 3)?];
        let input = match End::of(&real[0], OFlags::RDONLY)? {
            Some(end) => Input::Watch(end),
            None => Input::Block(Box::new(File::from(real[0].try_clone()?))),
        };
        let output = match End::of(&real[1], OFlags::WRONLY)? {
            Some(end) => Output::Watch(end),
            None => Output::Block(Box::new(File::from(real[1].try_clone()?))),
        };
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // From here on an error gives back what was taken.
        let claim = Self { real };
        dup2_stdin(&null)?;
        let nowhere = is_protocol(&claim.real[1], stderr())?;
        dup2_stdout(if nowhere { null.as_fd() } else { stderr() })?;
        // What was printed without a line end before has not gone out yet. Not a message either.
        let _ = io::stdout().flush();
        Ok((claim, input, output))
    }

    #[cfg(unix)]
    fn give_back(&self) {
        let _ = io::stdout().flush();
        let _ = rustix::stdio::dup2_stdin(&self.real[0]);
        let _ = rustix::stdio::dup2_stdout(&self.real[1]);
    }

    #[cfg(not(unix))]
    fn give_back(&self) {}
}

/// Whether standard error leads into the same pipe or socket (`2>&1`): no place for what is printed.
#[cfg(unix)]
fn is_protocol(stdout: &std::os::fd::OwnedFd, stderr: std::os::fd::BorrowedFd<'_>) -> io::Result<bool> {
    use rustix::fs::{FileType, fstat};

    let (out, err) = (fstat(stdout)?, fstat(stderr)?);
    let is_stream = matches!(FileType::from_raw_mode(out.st_mode), FileType::Fifo | FileType::Socket);
    Ok(is_stream && (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino))
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_back();
        TAKEN.store(false, Ordering::Release);
    }
}
