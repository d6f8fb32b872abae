//! Instances that live on between exchanges which leave no trace: most of the time of a slow starter is saved.

use crate::bind::Binder;
use crate::exchange::Exchange;
use crate::replay::{Replay, Session, drive_on};
use crate::revision::Revision;
use crate::schema::Schemas;
use crate::subject::{Connection, Subject};

/// As many instances wait for their next exchange.
const KEPT: usize = 10;

/// One worker's waiting instances, the latest used last.
#[derive(Debug, Default)]
pub(super) struct Pool {
    waiting: Vec<(Key, Connection, Session)>,
}

/// Subject, revision, and what the client side declared.
type Key = (usize, Revision, String);

impl Pool {
    /// Whether the exchange passes on a waiting instance, or a new one that waits from now on.
    ///
    /// Anything but a clean pass is no verdict: the instance is ended, and a fresh one has to decide.
    pub(super) fn passes<'e>(
        &mut self,
        (number, revision): (usize, Revision),
        exchange: &'e Exchange,
        subject: &dyn Subject,
        schemas: Option<&'e Schemas>,
        prepare: impl Fn(Replay<'e>) -> Replay<'e>,
    ) -> bool {
        let Ok(binder) = Binder::new(revision, &exchange.head.client_capabilities) else { return false };
        let key = (number, revision, binder.capabilities().to_string());
        let waiting = self.waiting.iter().position(|(known, ..)| *known == key);
        let transport = subject.transport();
        let (mut connection, replay) = match waiting.map(|index| self.waiting.remove(index)) {
            Some((_, connection, session)) => {
                (connection, Replay::resume(exchange, revision, transport, schemas, session))
            }
            None => {
                let Ok(link) = subject.start(revision) else { return false };
                (Connection::open(link), Replay::new(exchange, revision, transport, schemas))
            }
        };
        let Ok(replay) = replay else { return false };
        let replay = prepare(replay).with_sync();
        let Some(session) = drive_on(replay, &mut connection) else { return false };
        if self.waiting.len() == KEPT {
            self.waiting.remove(0);
        }
        self.waiting.push((key, connection, session));
        true
    }
}
