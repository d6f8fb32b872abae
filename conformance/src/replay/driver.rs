//! The driver: carries bytes between a replay and a running instance.

use std::time::Duration;

use super::findings::Finding;
use super::machine::{Next, Replay, Session};
use super::transcript::Entry;
use crate::http::{Answer, Order};
use crate::subject::{Connection, Event, Link};

/// After the last step the instance's input ends, and what it still says within this time is looked at, too.
const SETTLE: Duration = Duration::from_millis(250);

/// How long the answer to the end of a session is waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// Between the end of the output and the end of the instance there is a moment.
const LAST_BREATH: Duration = Duration::from_millis(200);

/// Plays the exchange on a fresh instance to its end, and ends the instance.
#[must_use]
pub fn drive(mut replay: Replay<'_>, link: Link) -> (Vec<Finding>, Vec<Entry>) {
    let mut connection = Connection::open(link);
    replay.reach(&connection);
    let mut open = play(&mut replay, &mut connection);
    if open && !replay.has_failed() {
        connection.close_input();
        let until = connection.now() + SETTLE;
        while open && connection.now() < until && !replay.is_quiet() {
            let event = connection.wait(until, false);
            open = take(&mut replay, &mut connection, event);
        }
    }
    leave(&mut replay, &mut connection);
    // What the instance had to say for itself, where that may explain a failure.
    if replay.has_failed() {
        let until = connection.now() + Duration::from_millis(20);
        while let Some(event) = connection.wait(until, false) {
            if let Event::Diagnostic(text) = event {
                replay.diagnostic(&text, connection.now());
            }
        }
    }
    replay.into_parts()
}

/// Plays the exchange on an instance that is to live on. What follows on it, if it is as good as a fresh one.
#[must_use]
pub fn drive_on(mut replay: Replay<'_>, connection: &mut Connection) -> Option<Session> {
    replay.reach(connection);
    play(&mut replay, connection);
    let session = replay.session();
    if session.is_none() {
        leave(&mut replay, connection);
    }
    session
}

/// Plays one of several exchanges on an instance: what follows on it, and what was found. What is left over and every
/// rule has seen is no reason to end the instance.
#[must_use]
pub(crate) fn drive_through(
    mut replay: Replay<'_>,
    connection: &mut Connection,
    last: bool,
) -> (Option<Session>, Vec<Finding>) {
    replay.reach(connection);
    play(&mut replay, connection);
    replay.clear();
    let session = replay.session();
    if session.is_none() || last {
        leave(&mut replay, connection);
    }
    (session, replay.into_parts().0)
}

/// Ends the session over HTTP, if there is one.
fn leave(replay: &mut Replay<'_>, connection: &mut Connection) {
    let Some((stream, order)) = replay.farewell() else { return };
    connection.carry_out(order);
    let until = connection.now() + FAREWELL;
    while connection.now() < until {
        match connection.wait(until, false) {
            Some(Event::Answer(answered, _)) if answered == stream => return,
            _ => {}
        }
    }
}

/// Plays to the last step. Whether the output is still open.
fn play(replay: &mut Replay<'_>, connection: &mut Connection) -> bool {
    let mut open = true;
    loop {
        match replay.next(connection.now()) {
            Next::Write(pieces) => connection.write(pieces),
            Next::Request { stream, bytes, is_head } => {
                connection.carry_out(Order::Request { stream, bytes, is_head });
            }
            Next::HangUp { stream } => connection.carry_out(Order::HangUp { stream }),
            Next::CloseInput => connection.close_input(),
            Next::Wait { until, exit } => {
                let event = connection.wait(until, exit);
                open &= take(replay, connection, event);
            }
            Next::Finished => return open,
        }
    }
}

/// Whether the output is still open.
fn take(replay: &mut Replay<'_>, connection: &mut Connection, event: Option<Event>) -> bool {
    let now = connection.now();
    match event {
        Some(Event::Line(line)) => replay.received(&line, now),
        Some(Event::Diagnostic(text)) => replay.diagnostic(&text, now),
        Some(Event::Exit(exit)) => replay.exited(exit, now),
        Some(Event::Answer(stream, answer)) => {
            if matches!(answer, Answer::End(_)) {
                connection.forget(stream);
            }
            replay.answered(stream, answer, now);
        }
        Some(Event::End) => {
            if let Some(exit) = connection.exit_within(LAST_BREATH) {
                replay.exited(exit, now);
            }
            replay.ended("the output ended", now);
            return false;
        }
        None => {}
    }
    true
}
