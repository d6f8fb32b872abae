//! Between the pipes of a client and those of its server program.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::tape::{Lines, Party};
use super::{Shared, on_signals, say};
use crate::subject::process;

/// How often the end of the server is looked for while nothing else happens.
const LOOK: Duration = Duration::from_millis(10);

/// What a server started may hold its output open when the server has ended; it is not waited for longer.
const DRAIN: Duration = Duration::from_secs(2);

/// A server that was told to end has so long for it.
const GRACE: Duration = Duration::from_secs(5);

enum Event {
    /// The server's output has ended, or nobody reads it any more.
    Silent,
    /// This program was told to end.
    Signal(i32),
}

/// Is the server program for whoever started this, until the server ends.
///
/// # Errors
///
/// The server cannot be started, or the recording cannot be written.
pub(super) fn record(line: &str, shared: &Shared) -> Result<ExitCode, String> {
    let words = shlex::split(line)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("`--stdio`: expected a command with closed quotes, got `{line}`"))?;
    let failed = |error: io::Error| format!("`--stdio`: cannot start `{}`: {error}", words[0]);
    let mut command = process::command(&words).map_err(failed)?;
    // Its standard error is that of this program: nothing comes between.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // A signal must not end this program once there is a server that it would leave behind.
    let (tell, told) = channel();
    let signals = tell.clone();
    on_signals(move |signal| {
        let _ = signals.send(Event::Signal(signal));
    });
    let mut child = command.spawn().map_err(failed)?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        let _ = child.kill();
        return Err("the server has no pipes".to_owned());
    };
    let up = shared.clone();
    thread::spawn(move || {
        if carry(io::stdin(), input, Party::Client, &up) {
            up.tape().closed();
        }
        // The client may end this program before the server has ended.
        if let Err(problem) = up.save() {
            say(&problem);
        }
    });
    let down = shared.clone();
    thread::spawn(move || {
        carry(output, io::stdout(), Party::Server, &down);
        let _ = tell.send(Event::Silent);
    });
    let mut silent = false;
    let mut kill_at: Option<Instant> = None;
    let status = loop {
        match told.recv_timeout(LOOK) {
            Ok(Event::Silent) => silent = true,
            Ok(Event::Signal(signal)) => {
                if let Err(problem) = shared.save() {
                    say(&problem);
                }
                let again = kill_at.is_some();
                end(&mut child, (!again).then_some(signal));
                kill_at.get_or_insert_with(|| Instant::now() + GRACE);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
        }
        if kill_at.is_some_and(|at| Instant::now() >= at) {
            end(&mut child, None);
        }
        if let Some(status) = child.try_wait().map_err(|error| format!("the server is lost: {error}"))? {
            break status;
        }
    };
    let until = Instant::now() + DRAIN;
    while !silent && Instant::now() < until {
        silent = matches!(told.recv_timeout(until - Instant::now()), Ok(Event::Silent));
    }
    let code = code(status);
    shared.tape().exited(code);
    shared.save()?;
    Ok(ExitCode::from(code))
}

/// Passes bytes on, each piece at once, and notes it before. Whether it came to the end of what there was to read.
fn carry(mut from: impl Read, mut to: impl Write, party: Party, shared: &Shared) -> bool {
    let mut buffer = vec![0; 64 << 10];
    let mut lines = Lines::default();
    let ended = loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break true,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break false,
        };
        let mut tape = shared.tape();
        lines.take(&buffer[..read], |line| tape.line(party, line));
        drop(tape);
        if to.write_all(&buffer[..read]).and_then(|()| to.flush()).is_err() {
            break false;
        }
    };
    let mut tape = shared.tape();
    lines.end(|line| tape.line(party, line));
    ended
}

/// Passes a signal on to the server and what it has started; without one it is ended at once.
fn end(child: &mut Child, signal: Option<i32>) {
    #[cfg(unix)]
    if let (Some(group), Ok(None)) =
        (rustix::process::Pid::from_raw(child.id().cast_signed()), child.try_wait())
    {
        let signal = signal.and_then(rustix::process::Signal::from_named_raw);
        let signal = signal.unwrap_or(rustix::process::Signal::KILL);
        let _ = rustix::process::kill_process_group(group, signal);
        return;
    }
    let _ = signal;
    let _ = child.kill();
}

/// The exit code; what a shell makes of a signal.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().map_or(1, |code| code as u8)
}
