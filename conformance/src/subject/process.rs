//! A program as a subject: spoken to over the pipes of a child process.

use std::io;
use std::process::{Child, ExitStatus, Stdio};

use super::{Exit, Life, Link, Subject};
use crate::revision::Revision;

/// A program with its arguments.
#[derive(Debug, Clone)]
pub struct Command {
    words: Vec<String>,
    runtime: String,
}

impl Command {
    /// Splits a command line as a shell would. No shell runs: variables and wildcards stand for themselves.
    ///
    /// # Errors
    ///
    /// The quotes do not close, or there is no word.
    pub fn parse(line: &str) -> Result<Self, String> {
        match shlex::split(line) {
            Some(words) if !words.is_empty() => Ok(Self { words, runtime: "-".to_owned() }),
            Some(_) => Err("expected a command, got nothing".to_owned()),
            None => Err(format!("expected a command with closed quotes, got `{line}`")),
        }
    }

    /// A program of the suite's own, on a runtime that reports name.
    #[must_use]
    pub fn own(words: Vec<String>, runtime: &str) -> Self {
        Self { words, runtime: runtime.to_owned() }
    }
}

impl Subject for Command {
    fn name(&self) -> String {
        self.words.join(" ")
    }

    fn runtime(&self) -> &str {
        &self.runtime
    }

    fn start(&self, _: Revision) -> io::Result<Link> {
        let mut command = command(&self.words)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("the child has no pipe");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let diagnostics = child.stderr.take().ok_or_else(missing)?;
        let life = Process::new(child);
        Ok(Link::new(Box::new(input), Box::new(output), Some(Box::new(diagnostics)), Box::new(life)))
    }
}

/// The command, in a process group of its own.
pub(crate) fn command(words: &[String]) -> io::Result<std::process::Command> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = std::process::Command::new(program);
    command.args(arguments);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

/// The life of a child process.
pub(crate) struct Process {
    child: Child,
    exit: Option<Exit>,
}

impl Process {
    pub(crate) const fn new(child: Child) -> Self {
        Self { child, exit: None }
    }
}

impl Life for Process {
    fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.exit = Some(exit(status));
        }
        self.exit.clone()
    }

    fn kill(&mut self) {
        // A wrapper's own children are in the group that was made for it. While the leader has not been
        // waited for, its id cannot have passed to another process.
        #[cfg(unix)]
        if self.exit().is_none()
            && let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn exit(status: ExitStatus) -> Exit {
    if let Some(code) = status.code() {
        return Exit { code: Some(i64::from(code)), text: format!("exit code {code}") };
    }
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Exit { code: None, text: format!("signal {signal}") };
    }
    Exit { code: None, text: "an unknown end".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_into_words() {
        assert_eq!(Command::parse("a 'b c' \"d\"").unwrap().words, ["a", "b c", "d"]);
        assert!(Command::parse("a 'b").unwrap_err().contains("closed quotes"));
        assert!(Command::parse(" ").unwrap_err().contains("got nothing"));
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        assert!(Command::parse("/no/such/program").unwrap().start(Revision::V2025_11_25).is_err());
    }
}
